"""Word alignments of a tokenised parallel text, as train-model.perl reads them: grow-diag-final-and of two directions.

    python moses_configs/align.py train.en train.fr > aligned.grow-diag-final-and

Made with sil-thot (extra `align`), whose eflomal model needs half a minute for 30 000 sentence pairs. For large corpora
use fast_align or mgiza, which keep only their tables in memory.
"""

from __future__ import annotations

import sys
from pathlib import Path

from thot.alignment import EflomalAlignmentModel, SymmetrizationHeuristic, SymmetrizedAlignmentModel

Sentence = list[str]


def sentences(path: str) -> list[Sentence]:
    """The words of all lines; lines end at line feeds and words at blanks only, as they do for Moses."""
    with Path(path).open(encoding="utf-8-sig", errors="backslashreplace", newline="\n") as text:
        return [[word for word in line.rstrip("\n").split(" ") if word] for line in text]


def trained(read: list[Sentence], written: list[Sentence]) -> EflomalAlignmentModel:
    """A model of one direction."""
    model = EflomalAlignmentModel()
    model.emit_training_alignments = True
    model.deterministic = True
    for pair in zip(read, written, strict=True):
        model.add_sentence_pair(*pair)
    model.start_training()
    for _ in range(model.scheduled_iterations):
        model.train()
    model.end_training()
    return model


def main(source_path: str, target_path: str) -> None:
    """Print a line of points for each sentence pair."""
    source, target = sentences(source_path), sentences(target_path)
    if len(source) != len(target):
        sys.exit(f"{source_path}: {len(source)} lines, expected {len(target)} as in {target_path}")
    both = SymmetrizedAlignmentModel(trained(source, target), trained(target, source))
    both.heuristic = SymmetrizationHeuristic.GROW_DIAG_FINAL_AND
    for i in range(len(source)):
        matrix = both.get_training_alignment(i)[1].to_numpy()
        print(" ".join(f"{s}-{t}" for s, t in zip(*matrix.nonzero(), strict=True)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} SOURCE_TEXT TARGET_TEXT")
    try:
        main(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"{error.filename or 'standard output'}: {error.strerror}")
