"""Prune a phrase table: keep a given share of the pairs, and drop those that a score finds least likely.

Johnson et al. 2007 drop pairs that co-occur no more often than by chance, and halve tables without loss. Zens et al.
2012 compare such criteria. Here the criterion is a score in the table, with one threshold for all pairs:

- ``direct``: p(target | source), from counts. It is 1 for a source that was seen once.
- ``rnn``: the RNN's score, which does not know counts. It is a product over words, so longer targets have lower scores.
- ``both``: the mean of the two rank quantiles. A rank quantile is the share of pairs that score lower. A sum of both
  scores would follow the RNN alone: its logarithms range over some 40 nats, those of frequencies over a few.

Pairs within 0.0001 nats of the threshold, or within a millionth of the quantiles, are ties. Some of them stay, evenly
spread over the table, so that the share is exact and every run gives the same table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress, islice

import numpy as np

from moses_rnn.analysis.agreement import ranks
from moses_rnn.analysis.grids import Grid
from moses_rnn.analysis.scored_table import ComparedPairs, Floats, Ints, Mask, ScoredTable
from moses_rnn.errors import InputError, number_of
from moses_rnn.files.streams import Advanced, check_unchanged, read_lines, show_nothing
from moses_rnn.table.phrase_table import LOWEST

WRITTEN_AT_ONCE = 20_000  # lines; so that a compressed output has few, long members
STEPS_PER_NAT = 10_000  # finer differences are ties
QUANTILE_STEPS = 1_000_000
MANY_TIES = 0.01  # warn if ties that are dropped exceed this share of all lines


@dataclass(frozen=True)
class Pruned:
    """Counts before and after pruning."""

    wanted: int  # lines to keep; more stay if the best targets of sources exceed them
    lines: tuple[int, int]
    sources: tuple[int, int]
    bytes: tuple[int, int]  # before compression
    lost_words: int  # sources of one word that have lost all lines
    tied: int  # lines at the threshold
    tied_stay: int


def prune_table(
    table: ScoredTable,
    append: Callable[[bytes], None],
    *,
    keep: float,
    by: str,
    keep_best: float = math.inf,
    advanced: Advanced = show_nothing,
) -> Pruned:
    """Write the lines that stay, unchanged and in their order. `by` is "rnn", "direct" or "both".

    `keep` is the share of lines that stay, rounded to whole lines. Sources of at most `keep_best` words keep their best
    target, the first of equal ones. These targets count towards the share. More lines stay if there are more of them,
    because most sources of a raw table have a single target. `advanced` counts the lines of both passes.
    """
    pairs = table.pairs(lambda lines, share: advanced(lines, share and share / 2))
    count = len(pairs.logs)
    wanted = int(keep * count + 0.5)
    if not wanted:
        raise InputError(
            f"{table.path}: expected a share that keeps some lines, found {keep:g} of {number_of(count, 'line')}"
        )
    stay, tied, tied_stay = _choose(pairs, by, keep_best, wanted)
    read, stayed = _write(table, stay, append, advanced)
    lost = np.bincount(pairs.source[stay], minlength=len(pairs.source_words)) == 0
    return Pruned(
        wanted=wanted,
        lines=(count, int(stay.sum())),
        sources=(len(lost), int((~lost).sum())),
        bytes=(read, stayed),
        lost_words=int((pairs.source_words[lost] == 1).sum()),
        tied=tied,
        tied_stay=tied_stay,
    )


def _goodness(logs: Floats, by: str) -> Ints:
    """Return the quality of each pair by a criterion, in steps; higher is better."""
    steps = ((logs - LOWEST) * STEPS_PER_NAT + 0.5).astype(np.int64)
    if by != "both":
        return steps[:, 0 if by == "direct" else -1]
    # from 0 to 1: the share of pairs below each, with half of the equal ones
    left, right = ((ranks(column) - 0.5) / len(steps) for column in (steps[:, 0], steps[:, -1]))
    return ((left + right) / 2 * (QUANTILE_STEPS - 1)).astype(np.int64)


def _choose(pairs: ComparedPairs, by: str, keep_best: float, wanted: int) -> tuple[Mask, int, int]:
    """Return a mask of the pairs that stay, the number of pairs at the threshold, and how many of these stay."""
    goodness = _goodness(pairs.logs, by)
    best = np.lexsort((-goodness, pairs.source))[pairs.begins]  # lexsort is stable: the first of equal ones
    stay = np.zeros(len(goodness), np.bool_)
    stay[best[pairs.source_words <= keep_best]] = True
    free = np.flatnonzero(~stay)
    room = min(wanted - int(stay.sum()), len(free))
    if room <= 0:
        return stay, 0, 0
    values = goodness[free]
    threshold = np.partition(values, len(free) - room)[len(free) - room]
    ties = free[values == threshold]
    stay[free[values > threshold]] = True
    tied_stay = room - int((values > threshold).sum())
    passed = np.arange(len(ties) + 1) * tied_stay // len(ties)
    stay[ties[np.diff(passed) > 0]] = True
    return stay, len(ties), tied_stay


def _write(table: ScoredTable, stay: Mask, append: Callable[[bytes], None], advanced: Advanced) -> tuple[int, int]:
    """Write the lines that stay; return the bytes of all lines and of these."""
    read = stayed = 0
    lines = read_lines(table.path)
    for first in range(0, len(stay), WRITTEN_AT_ONCE):
        advanced(len(stay) + first, (1 + first / len(stay)) / 2)
        block = [*islice(lines, WRITTEN_AT_ONCE)]
        data = b"".join(compress(block, stay[first : first + WRITTEN_AT_ONCE].tolist()))
        read, stayed = read + sum(map(len, block)), stayed + len(data)
        if data:
            append(data)
    check_unchanged(table.path, table.stamp)
    return read, stayed


def as_grid(pruned: Pruned, title: str) -> Grid:
    """Return the counts of kept and dropped lines as a table."""
    counts = {"lines": pruned.lines, "sources": pruned.sources, "bytes": pruned.bytes}
    rows = [(name, before, after, before - after, f"{after / before:.1%}") for name, (before, after) in counts.items()]
    return Grid(title, ("", "before", "after", "dropped", "kept"), rows)


def warnings(pruned: Pruned) -> Iterator[str]:
    """Yield warnings about the result."""
    lines, stay = pruned.lines
    if stay > pruned.wanted:
        yield (
            f"the {stay:,} best targets alone exceed the {number_of(pruned.wanted, 'line')} to keep, so no "
            "other line stays "
            "(--keep-best-words 1 protects only sources of one word)"
        )
    if lost := pruned.sources[0] - pruned.sources[1]:
        of_one = "none of them a single word"
        if pruned.lost_words:
            of_one = number_of(
                pruned.lost_words,
                "of them a single word, which is now unknown",
                "of them single words, which are now unknown",
            )
        yield f"{number_of(lost, 'source lost all its', 'sources lost all their')} targets, {of_one}"
    if pruned.tied - pruned.tied_stay > MANY_TIES * lines:
        yield (
            f"{number_of(pruned.tied, 'pair is', 'pairs are')} equally good at the threshold: "
            f"{pruned.tied_stay:,} of them stay, spread "
            "evenly over the table"
        )
