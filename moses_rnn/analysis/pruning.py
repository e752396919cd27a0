"""A smaller phrase table: pairs that a score finds least likely are dropped, a given share of all stays.

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
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import not_
from typing import Protocol

import numpy as np
import numpy.typing as npt

from moses_rnn.analysis.correlation import Floats
from moses_rnn.analysis.scored_table import ScoredTable, length
from moses_rnn.errors import InputError
from moses_rnn.files.metered import Advanced, show_nothing
from moses_rnn.formats.grids import Grid
from moses_rnn.formats.phrase_table import LOWEST, TableLine

Ints = npt.NDArray[np.int64]

WRITTEN_AT_ONCE = 1 << 20  # bytes
STEPS_PER_NAT = 10_000  # finer differences are ties
QUANTILE_STEPS = 1_000_000
MANY_TIES = 0.01  # of all lines: from this share of equal ones that go, the user is warned


class Sink(Protocol):
    """Where bytes go, such as an `OutputFile`."""

    def append(self, data: bytes) -> None:
        """Take them."""


@dataclass
class Side:
    """What stayed or went; `bytes` are those of the lines, before any compression."""

    lines: int = 0
    sources: int = 0
    bytes: int = 0

    def add(self, lines: Sequence[TableLine]) -> None:
        """Count lines of a source in."""
        self.lines += len(lines)
        self.sources += bool(lines)
        self.bytes += sum(len(line.line) for line in lines)


@dataclass
class Pruned:
    """What came of a table.

    `wanted` lines were to stay; more do where more sources keep their best target. `lost` sources have no line left,
    `lost_words` of them are single words. `tied` lines were at the threshold, of which `tied_stay` stay.
    """

    table: str
    by: str
    wanted: int = 0
    lost_words: int = 0
    tied: int = 0
    tied_stay: int = 0
    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)

    def add(self, lines: Sequence[TableLine], stay: Sequence[TableLine]) -> None:
        """Count the lines of a source in, of which some stay."""
        self.before.add(lines)
        self.after.add(stay)
        self.lost_words += not stay and length(lines[0].source) == 1

    @property
    def lost(self) -> int:
        """Sources that are gone."""
        return self.before.sources - self.after.sources


def prune_table(
    table: ScoredTable,
    kept: Sink,
    dropped: Sink | None = None,
    *,
    keep: float,
    by: str,
    keep_best: float = math.inf,
    advanced: Advanced = show_nothing,
) -> Pruned:
    """Write the lines that stay and those that go, each byte for byte and in their order.

    Args:
        table: is read twice.
        kept: is given the smaller table.
        dropped: is given the other lines, if they are wanted.
        keep: the share of lines that stay, above 0 and up to 1; the number is rounded.
        by: one of CRITERIA; logarithms that differ by less than 1 / STEPS_PER_NAT are equal, and a score above 1
            counts as 1.
        keep_best: sources of at most this many words do not lose the target that is best by this criterion (the first
            of equal ones): all of them by default, so that no word becomes unknown; none with 0. The share counts these
            targets; it is exceeded if they alone are more, as most sources of a raw table have one target only.
        advanced: called now and then with how many lines were read, all passes together, and the share of the work.

    Raises:
        InputError: the table is not sorted, has negative scores, was changed meanwhile, or is so small that no line
            would stay.
    """
    before = _read(table, lambda lines, share: advanced(lines, share and share / 2))
    count = len(before.logs)
    pruned = Pruned(table.path, by, wanted=_wanted(table, keep, count))
    stay = _choose(before, by, keep_best, pruned)
    outputs, first = (_Buffered(kept), _Buffered(dropped)), 0
    for lines in table.sources(lambda lines, share: advanced(count + lines, share and (1 + share) / 2)):
        chosen = stay[first : first + len(lines)].tolist()
        parts = list(compress(lines, chosen)), list(compress(lines, map(not_, chosen)))
        pruned.add(lines, parts[0])
        first += len(lines)
        for output, part in zip(outputs, parts, strict=True):
            output.append(part)
    for output in outputs:
        output.flush()
    return pruned


@dataclass(frozen=True)
class _Pairs:
    """All pairs of a table: `logs` of the scores that count [pairs, columns], and the `source` of each, from 0."""

    logs: Floats
    source: Ints
    words: Ints  # of each source


def _read(table: ScoredTable, advanced: Advanced) -> _Pairs:
    logs, source, lengths = array("d"), array("q"), array("q")
    for number, lines in enumerate(table.sources(advanced)):
        for line in lines:
            logs.extend(table.log_probs(line))
        source.extend([number] * len(lines))
        lengths.append(length(lines[0].source))
    columns = len(table.columns)
    return _Pairs(np.array(logs).reshape(-1, columns), np.array(source), np.array(lengths))


def _goodness(logs: Floats, by: str) -> Ints:
    """How good each pair is by one of CRITERIA, in steps: the higher, the better."""
    steps = np.minimum(((logs - LOWEST) * STEPS_PER_NAT + 0.5).astype(np.int64), int(-LOWEST) * STEPS_PER_NAT)
    if by != "both":
        return steps[:, 0 if by == "direct" else -1]
    left, right = _quantiles(steps[:, 0]), _quantiles(steps[:, -1])
    return ((left + right) / 2 * (QUANTILE_STEPS - 1)).astype(np.int64)


def _quantiles(values: Ints) -> Floats:
    """The share of pairs below each, those that are equal counted half: 0 to 1, and 1/2 if all are equal."""
    _, group, here = np.unique(values, return_inverse=True, return_counts=True)
    upto = here.cumsum()
    shares: Floats = (upto - here / 2) / upto[-1]
    return shares[group]


def _choose(pairs: _Pairs, by: str, keep_best: float, pruned: Pruned) -> npt.NDArray[np.bool_]:
    """Which pairs stay: the best of a protected source, the first of equal ones; and the best of all others."""
    goodness = _goodness(pairs.logs, by)
    best_first = np.lexsort((-goodness, pairs.source))  # and in the table's order, as it is stable
    best = best_first[np.unique(pairs.source, return_index=True)[1]]
    stay = np.zeros(len(goodness), np.bool_)
    stay[best[pairs.words <= keep_best]] = True
    free = np.flatnonzero(~stay)
    room = min(pruned.wanted - int(stay.sum()), len(free))
    if room <= 0:
        return stay
    values = goodness[free]
    threshold = np.partition(values, len(free) - room)[len(free) - room]
    ties = free[values == threshold]
    stay[free[values > threshold]] = True
    pruned.tied, pruned.tied_stay = len(ties), room - int((values > threshold).sum())
    passed = np.arange(len(ties) + 1) * pruned.tied_stay // len(ties)
    stay[ties[np.diff(passed) > 0]] = True
    return stay


def _wanted(table: ScoredTable, keep: float, lines: int) -> int:
    wanted = int(keep * lines + 0.5)
    if not wanted:
        raise InputError(f"{table.path}: expected a share of which something stays, found {keep:g} of {lines:,} lines")
    return wanted


class _Buffered:
    """Gathers lines, so that a compressed output is made of few and long members."""

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self._waiting: list[bytes] = []
        self._bytes = 0

    def append(self, lines: Iterable[TableLine]) -> None:
        for line in lines:
            self._waiting.append(line.line)
            self._bytes += len(line.line)
        if self._bytes >= WRITTEN_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if self._waiting and self._sink:
            self._sink.append(b"".join(self._waiting))
        self._waiting, self._bytes = [], 0


def as_grid(pruned: Pruned) -> Grid:
    """What stayed and went as a table, to be rendered by `grids`."""
    rows = []
    for name in ("lines", "sources", "bytes"):
        before, after = getattr(pruned.before, name), getattr(pruned.after, name)
        rows.append((name, before, after, before - after, f"{after / before:.1%}"))
    return Grid(f"{pruned.table}, pruned by {pruned.by}", ("", "before", "after", "dropped", "kept"), rows)


def warnings(pruned: Pruned) -> Iterator[str]:
    """What the user should know of it."""
    if pruned.after.lines > pruned.wanted:
        yield (
            f"the {pruned.after.lines:,} best targets of a source are more than the {pruned.wanted:,} lines that were "
            "to stay: nothing else does (--keep-best-words 1 protects sources of one word only)"
        )
    if pruned.lost:
        words = f"{pruned.lost_words:,} of them single words, which are unknown now" if pruned.lost_words else (
            "none of them a single word")  # fmt: skip
        yield f"{pruned.lost:,} sources lost all their targets, {words}"
    if pruned.tied - pruned.tied_stay > MANY_TIES * pruned.before.lines:
        yield (
            f"{pruned.tied:,} pairs are equally good at the threshold: {pruned.tied_stay:,} of them stay, spread "
            "evenly over the table"
        )
