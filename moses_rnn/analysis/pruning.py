"""Prune a phrase table: drop the pairs that a score finds least likely, and keep a given share.

Johnson et al. 2007 drop pairs whose co-occurrence is no more than chance would bring about, and halve tables and more
without loss; Zens et al. 2012 compare such criteria and find it best to drop what the rest of the model can do without.
Here the criterion is a score that the table has already, and its threshold is one for the whole table:

- ``direct``: p(target | source), from counts. It finds what is rare for a frequent source, and takes every target of a
  source that was seen once for certain.
- ``rnn``: the RNN's score, which knows no counts. It finds targets that do not read as translations, seen once or not;
  being a product over words, it falls with a target's length.
- ``both``: the mean of the two rank quantiles, that is of the shares of the table's pairs that score lower. The two
  scores cannot be added as they are: the RNN's logarithms spread over some 40 nats and those of relative frequencies
  over a few, so their sum would be the RNN's order alone. Quantiles have one scale, do not change with any monotone
  change of a score (a temperature, a floor), and a pair goes that both place low, or one of them very low.

Pairs within 0.0001 nats, or a millionth of the quantiles, of the threshold are ties, of which evenly spread ones stay,
so that the share is exact and a run can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress, islice

import numpy as np

from moses_rnn.analysis.agreement import ranks
from moses_rnn.analysis.grids import Grid
from moses_rnn.analysis.scored_table import Floats, Ints, Mask, Pairs, ScoredTable
from moses_rnn.errors import InputError
from moses_rnn.files.streams import Advanced, read_lines, show_nothing
from moses_rnn.table.phrase_table import LOWEST

Append = Callable[[bytes], None]

WRITTEN_AT_ONCE = 20_000  # lines: compressed outputs are made of few and long members
STEPS_PER_NAT = 10_000  # finer differences are ties
QUANTILE_STEPS = 1_000_000
MANY_TIES = 0.01  # of all lines: from this share of equal ones that go, the user is warned


@dataclass(frozen=True)
class Pruned:
    """The result of pruning a table.

    `wanted` lines were to stay; more do where more sources keep their best target. `lost_words` are single words that
    have no line left. `tied` lines were at the threshold, of which `tied_stay` stay.
    """

    table: str
    by: str
    wanted: int
    lines: tuple[int, int]  # before and after, as what follows
    sources: tuple[int, int]
    bytes: tuple[int, int]  # of the lines, before any compression
    lost_words: int
    tied: int
    tied_stay: int

    @property
    def lost(self) -> int:
        """Number of sources without a remaining line."""
        return self.sources[0] - self.sources[1]


def prune_table(
    table: ScoredTable,
    append: Append,
    *,
    keep: float,
    by: str,
    keep_best: float = math.inf,
    advanced: Advanced = show_nothing,
) -> Pruned:
    """Write the lines that stay, byte for byte and in their order; `by` is one of CRITERIA.

    `keep` is the share of lines that stay, rounded to whole lines. Sources of at most `keep_best` words do not lose
    the target that is best by it, the first of equal ones: by default none does, so that no word becomes unknown. The
    share counts these targets; it is exceeded if they alone are more, as most sources of a raw table have one target
    only. `advanced` is told of both passes as of one.
    """
    pairs = table.pairs(lambda lines, share: advanced(lines, share and share / 2))
    count = len(pairs.logs)
    wanted = int(keep * count + 0.5)
    if not wanted:
        raise InputError(f"{table.path}: expected a share that keeps some lines, found {keep:g} of {count:,} lines")
    stay, tied, tied_stay = _choose(pairs, by, keep_best, wanted)
    read, stayed = _write(table, stay, append, advanced)
    lost = np.bincount(pairs.source[stay], minlength=len(pairs.source_words)) == 0
    return Pruned(
        table=table.path,
        by=by,
        wanted=wanted,
        lines=(count, int(stay.sum())),
        sources=(len(lost), int((~lost).sum())),
        bytes=(read, stayed),
        lost_words=int((pairs.source_words[lost] == 1).sum()),
        tied=tied,
        tied_stay=tied_stay,
    )


def _goodness(logs: Floats, by: str) -> Ints:
    """Return the quality of each pair by one of CRITERIA, in steps; higher is better."""
    steps = np.minimum(((logs - LOWEST) * STEPS_PER_NAT + 0.5).astype(np.int64), int(-LOWEST) * STEPS_PER_NAT)
    if by != "both":
        return steps[:, 0 if by == "direct" else -1]
    left, right = _quantiles(steps[:, 0]), _quantiles(steps[:, -1])
    return ((left + right) / 2 * (QUANTILE_STEPS - 1)).astype(np.int64)


def _quantiles(values: Ints) -> Floats:
    """The share of pairs below each, those that are equal counted half: 0 to 1, and 1/2 if all are equal."""
    return (ranks(values) - 0.5) / len(values)


def _choose(pairs: Pairs, by: str, keep_best: float, wanted: int) -> tuple[Mask, int, int]:
    """Which pairs stay: the best of a protected source, the first of equal ones; and the best of all others.

    Also how many were at the threshold, and how many of these stay.
    """
    goodness = _goodness(pairs.logs, by)
    best = np.lexsort((-goodness, pairs.source))[pairs.begins]  # the first of equal ones, as it is stable
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


def _write(table: ScoredTable, stay: Mask, append: Append, advanced: Advanced) -> tuple[int, int]:
    """Write the lines that stay; the bytes of all lines, and of these."""
    read = stayed = 0
    lines = read_lines(table.path)
    for first in range(0, len(stay), WRITTEN_AT_ONCE):
        advanced(len(stay) + first, (1 + first / len(stay)) / 2)
        block = [*islice(lines, WRITTEN_AT_ONCE)]
        data = b"".join(compress(block, stay[first : first + WRITTEN_AT_ONCE].tolist()))
        read, stayed = read + sum(map(len, block)), stayed + len(data)
        if data:
            append(data)
    table.check_unchanged()
    return read, stayed


def as_grid(pruned: Pruned) -> Grid:
    """Return the counts of kept and dropped lines as a table, to be rendered by `grids`."""
    rows = []
    for name in ("lines", "sources", "bytes"):
        before, after = getattr(pruned, name)
        rows.append((name, before, after, before - after, f"{after / before:.1%}"))
    return Grid(f"{pruned.table}, pruned by {pruned.by}", ("", "before", "after", "dropped", "kept"), rows)


def warnings(pruned: Pruned) -> Iterator[str]:
    """Yield warnings about the result."""
    lines, stay = pruned.lines
    if stay > pruned.wanted:
        yield (
            f"the {stay:,} best targets alone exceed the {pruned.wanted:,} lines to keep, so nothing else stays "
            "(--keep-best-words 1 protects only sources of one word)"
        )
    if pruned.lost:
        words = f"{pruned.lost_words:,} of them single words, which are now unknown" if pruned.lost_words else (
            "none of them a single word")  # fmt: skip
        yield f"{pruned.lost:,} sources lost all their targets, {words}"
    if pruned.tied - pruned.tied_stay > MANY_TIES * lines:
        yield (
            f"{pruned.tied:,} pairs are equally good at the threshold: {pruned.tied_stay:,} of them stay, spread "
            "evenly over the table"
        )
