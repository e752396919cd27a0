"""BLEU by the length of the source sentence or the rarity of its words, and on sentences without unknown words.

Bahdanau et al. (2015), figure 2 and table 1; Luong et al. (2015), section 5.1.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moses_rnn.analysis.grids import Cell, Grid
from moses_rnn.analysis.results import open_bleu
from moses_rnn.errors import InputError, number_of
from moses_rnn.nbest.bleu import WordNumbers
from moses_rnn.networks.vocabulary import UNKNOWN_ID, Vocabulary
from moses_rnn.table.phrases import words

Lines = Sequence[bytes]

LAST_OF_BINS = 8, 10, 12, 15, 20  # most source words of each bin; a last bin has the longer sentences
RARITY_BINS = 6  # with equally many sentences, except that sentences of equal rarity stay together
ANY, ALL, NO_UNKNOWN = "any", "All", "No UNK"
LENGTH, RARITY = "source words", "mean frequency rank of the source words"


@dataclass(frozen=True)
class LengthScores:
    """BLEU of systems on the parts of a test set: the bins, then ALL, then NO_UNKNOWN if a model's words are known."""

    measure: str  # what the bins are made by: LENGTH or RARITY
    bins: list[str]  # titles, in ascending order
    parts: dict[str, list[int]]  # the sentences of each part, from 0
    bleu: dict[str, list[float | None]]  # of each system, on each part; 0 to 100; None: the part has no sentence


def compare_lengths(
    sources: Lines,
    references: Lines,
    outputs: Mapping[str, Lines],
    known: tuple[Vocabulary, Vocabulary] | None = None,
    text: Iterable[bytes] | None = None,
) -> LengthScores:
    """Compare systems on sentences of different lengths or, if a `text` is given, of different rarity.

    The rarity of a sentence is the mean rank of its words by their frequency in the text, rounded up. Words that the
    text lacks come last. `known` are a network's words in the sources' language and in the references'; if they are
    given, systems are also compared on sentences with only these words. Raises InputError if texts differ in their
    number of lines.
    """
    for name, lines in {"reference": references, **outputs}.items():
        if len(lines) != len(sources):
            raise InputError(
                f"{name}: expected {number_of(len(sources), 'line')}, as the source has, found {len(lines):,}"
            )
    if text is None:
        values, last = [len(words(line)) for line in sources], [*LAST_OF_BINS]
    else:
        values = _rarities(sources, text)
        last = _last_of_equal_bins(sorted(values))
    bin_of, titles = np.searchsorted(last, values), _titles(last)
    parts = {title: np.flatnonzero(bin_of == i).tolist() for i, title in enumerate(titles)}
    parts[ALL] = list(range(len(sources)))
    if known:
        pairs = [zip(known, both, strict=True) for both in zip(sources, references, strict=True)]
        has_unknown = [any(UNKNOWN_ID in vocabulary.ids(words(line)) for vocabulary, line in pair) for pair in pairs]
        parts[NO_UNKNOWN] = np.flatnonzero(~np.array(has_unknown, np.bool_)).tolist()
    numbers = WordNumbers()
    judged, *numbered = [[numbers.of(line) for line in lines] for lines in (references, *outputs.values())]
    bleu = {
        name: [_bleu(lines, judged, part) for part in parts.values()]
        for name, lines in zip(outputs, numbered, strict=True)
    }
    return LengthScores(LENGTH if text is None else RARITY, titles, parts, bleu)


def _rarities(sources: Lines, text: Iterable[bytes]) -> list[int]:
    counts = Counter(word for line in text for word in words(line))
    ranks = {word: rank for rank, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word)), start=1)}
    of_each = [[ranks.get(word, len(ranks) + 1) for word in words(line)] for line in sources]
    return [math.ceil(sum(one) / max(len(one), 1)) for one in of_each]


def _last_of_equal_bins(ascending: Sequence[int]) -> list[int]:
    """Return the highest value of each bin except the last one. If many values are equal, there are fewer bins."""
    at = [len(ascending) * i // RARITY_BINS - 1 for i in range(1, RARITY_BINS)]
    return sorted({ascending[i] for i in at if i >= 0} - {*ascending[-1:]})


def _titles(last: Sequence[int]) -> list[str]:
    """Return the titles of bins, given the highest value of each bin except the last one."""
    between = [f"{low + 1}–{high}" if low + 1 < high else str(high) for low, high in itertools.pairwise(last)]
    return [f"≤ {last[0]}", *between, f"> {last[-1]}"] if last else [ANY]


def _bleu(lines: Sequence[str], references: Sequence[str], sentences: Sequence[int]) -> float | None:
    if not sentences:
        return None
    chosen = [[text[i] for i in sentences] for text in (lines, references)]
    return float(open_bleu().corpus_score(chosen[0], [chosen[1]]).score)


def as_grid(scores: LengthScores) -> Grid:
    """Return a row with the numbers of sentences, then a row for each system."""
    counts: list[Cell] = ["sentences", *map(len, scores.parts.values())]
    rows = [[name, *(None if b is None else round(b, 2) for b in bleu)] for name, bleu in scores.bleu.items()]
    return Grid(f"BLEU by {scores.measure}", ["system", *scores.parts], [counts, *rows], decimals=2)
