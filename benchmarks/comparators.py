"""Networks of phrase pairs against each other, on the pairs that all of them held out.

    python benchmarks/comparators.py PHRASE_TABLE MODEL MODEL... [--corruptions 10]

The share of pairs that score above the same pair with one target word replaced, the last or any, by a word that is
drawn from the shortlist: what a ranker learns (moses-rnn-train --architecture ranker), asked of every network. And the
rank correlations of their scores. The models have learned from PHRASE_TABLE with the same shortlists and seed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import moses_rnn
from moses_rnn.analysis.correlation import spearman
from moses_rnn.files.streams import read_blocks
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.table_blocks import parse_blocks
from moses_rnn.models.slots import in_slots
from moses_rnn.producers.open import OpenModel, open_model
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.ranking import HELD_OUT, corrupted, hashes_of

Pairs = list[tuple[bytes, bytes]]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Questions:
    """Held-out pairs, and the same with a word replaced, once for each corruption."""

    right: Pairs
    last: list[Pairs]
    any: list[Pairs]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("models", metavar="MODEL", nargs="+", type=Path)
    parser.add_argument("--corruptions", type=int, default=10)
    return parser.parse_args()


def corpus_config(models: Iterable[OpenModel]) -> CorpusConfig:
    """What all of the models made of the table; a longest length that left nothing out is none."""
    provenances = [model.checkpoint.provenance for model in models]
    first, *others = (
        made["corpus_options"] | ({} if made["corpus"]["too_long"] else {"max_length": 0}) for made in provenances
    )
    if any(options != first for options in others):
        sys.exit("comparators: expected models of the same --shortlist, --held-out, --max-length and --seed")
    return CorpusConfig(**first)


def texts(rows: Iterable[npt.NDArray[np.int64]], vocabulary: list[bytes]) -> Iterator[bytes]:
    """Ids in slots as words; what is beyond the vocabulary is no word."""
    for row in rows:
        yield b" ".join(vocabulary[i] for i in row if i < len(vocabulary))


def questions(corpus: Corpus, seed: int, corruptions: int) -> Questions:
    """What the networks are asked."""
    rows = corpus.held_out
    vocabularies = corpus.source_vocabulary.words, corpus.target_vocabulary.words
    taken = corpus.source.take(rows), corpus.target.take(rows)
    slotted = [
        in_slots(ids, lengths, int(lengths.max()), len(known))
        for (ids, lengths), known in zip(taken, vocabularies, strict=True)
    ]
    sources = list(texts(slotted[0], vocabularies[0]))

    def wrong(number: int, *, last_only: bool) -> Pairs:
        hashes = hashes_of(rows, seed, number, HELD_OUT)  # as a ranker's training evaluates
        targets = corrupted(slotted[1], taken[1][1], hashes, len(vocabularies[1]), last_only=last_only)
        return list(zip(sources, texts(targets, vocabularies[1]), strict=True))

    return Questions(
        list(zip(sources, texts(slotted[1], vocabularies[1]), strict=True)),
        [wrong(number, last_only=True) for number in range(corruptions)],
        [wrong(number, last_only=False) for number in range(corruptions)],
    )


def main() -> None:
    """Print both tables."""
    given = arguments()
    models = [open_model(folder) for folder in given.models]
    config = corpus_config(models)
    pairs = (pair for block in parse_blocks(read_blocks(given.table), given.table) for pair in block.pairs())
    with tempfile.TemporaryDirectory(prefix="comparators") as folder:
        asked = questions(build_corpus(pairs, Path(folder), config), config.seed, given.corruptions)
    scores: dict[str, Scores] = {}
    print(f"{len(asked.right):,} held-out pairs, {given.corruptions} corruptions of each\n")
    print("| network | last word: ranked right | any word: ranked right |\n|---|---|---|")
    for folder_given, opened in zip(given.models, models, strict=True):
        name = f"{opened.title}, {folder_given}"
        score = moses_rnn.load(folder_given).score
        scores[name] = score(asked.right)
        shares = [np.mean([scores[name] > score(pairs) for pairs in kind]) for kind in (asked.last, asked.any)]
        print(f"| {name} | {' | '.join(f'{share:.2%}' for share in shares)} |", flush=True)
    long = np.array([len(words(target)) for _, target in asked.right])
    print(
        f"\n| rank correlation of scores | {' | '.join(scores)} | words of the target |\n|{'---|' * (len(scores) + 2)}"
    )
    for name, column in scores.items():
        cells = [spearman(column, other) for other in [*scores.values(), long.astype(np.float64)]]
        print(f"| {name} | {' | '.join('constant' if cell is None else f'{cell:.3f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
