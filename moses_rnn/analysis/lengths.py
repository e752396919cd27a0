"""BLEU by the length of the source sentence, and where nothing is unknown (Bahdanau et al. 2015, figure 2, table 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moses_rnn.analysis.grids import Cell, Grid
from moses_rnn.analysis.results import open_bleu
from moses_rnn.errors import InputError
from moses_rnn.networks.vocabulary import UNKNOWN_ID, Vocabulary
from moses_rnn.table.phrase_table import words

Lines = Sequence[bytes]

LAST_OF_BINS = (8, 10, 12, 15, 20)  # source words; one more bin is of longer sentences
BINS = ("≤ 8", "9–10", "11–12", "13–15", "16–20", "> 20")
ALL, NO_UNKNOWN = "All", "No UNK"


@dataclass(frozen=True)
class LengthScores:
    """BLEU of systems on the parts of a test set, 0 to 100; None where a part has no sentence."""

    parts: dict[str, list[int]]  # sentences, from 0, of BINS, then ALL, then NO_UNKNOWN if a model's words are known
    bleu: dict[str, list[float | None]]  # by system, of each part


def compare_lengths(
    sources: Lines, references: Lines, outputs: Mapping[str, Lines], known: tuple[Vocabulary, Vocabulary] | None = None
) -> LengthScores:
    """Compare systems on sentences of different lengths, and on those with only `known` words.

    `known` are a network's words of the sources' language and of the references'. Raises InputError if texts differ in
    their lines.
    """
    for name, lines in {"reference": references, **outputs}.items():
        if len(lines) != len(sources):
            raise InputError(f"{name}: expected {len(sources):,} lines as the source has, found {len(lines):,}")
    bin_of = np.searchsorted(LAST_OF_BINS, [len(words(line)) for line in sources])
    parts = {title: np.flatnonzero(bin_of == i).tolist() for i, title in enumerate(BINS)}
    parts[ALL] = list(range(len(sources)))
    if known:
        pairs = [zip(known, both, strict=True) for both in zip(sources, references, strict=True)]
        has_unknown = [any(UNKNOWN_ID in vocabulary.ids(words(line)) for vocabulary, line in pair) for pair in pairs]
        parts[NO_UNKNOWN] = np.flatnonzero(~np.array(has_unknown, np.bool_)).tolist()
    bleu = {name: [_bleu(lines, references, part) for part in parts.values()] for name, lines in outputs.items()}
    return LengthScores(parts, bleu)


def _bleu(lines: Lines, references: Lines, sentences: Sequence[int]) -> float | None:
    if not sentences:
        return None
    chosen = [[text[i].decode("utf-8", "replace") for i in sentences] for text in (lines, references)]
    return float(open_bleu().corpus_score(chosen[0], [chosen[1]]).score)


def as_grid(scores: LengthScores) -> Grid:
    """Return one row per system, below the numbers of sentences."""
    counts: list[Cell] = ["sentences", *map(len, scores.parts.values())]
    rows = [[name, *(None if b is None else f"{b:.2f}" for b in bleu)] for name, bleu in scores.bleu.items()]
    return Grid("BLEU by source words", ["system", *scores.parts], [counts, *rows])
