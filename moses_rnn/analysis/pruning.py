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

Memory holds histograms of a fixed size. Pairs in the cell of the threshold (0.0001 nats, or a millionth of the
quantiles, wide) are ties, of which evenly spread ones stay, so that the share is exact and a run can be repeated.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from moses_rnn.analysis.scored_table import ScoredTable, length
from moses_rnn.analysis.thresholds import MOST_CELLS, CellOf, Chooser, criterion, zeros
from moses_rnn.errors import InputError
from moses_rnn.files.metered import Advanced, show_nothing
from moses_rnn.formats.grids import Grid
from moses_rnn.formats.phrase_table import TableLine

WRITTEN_AT_ONCE = 1 << 20  # bytes
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
        table: is read twice, for ``both`` three times.
        kept: is given the smaller table.
        dropped: is given the other lines, if they are wanted.
        keep: the share of lines that stay, above 0 and up to 1; the number is rounded.
        by: one of CRITERIA; logarithms that differ by less than 1 / CELLS_PER_NAT are equal, and a score above 1
            counts as 1.
        keep_best: sources of at most this many words do not lose the target that is best by this criterion (the first
            of equal ones): all of them by default, so that no word becomes unknown; none with 0. The share counts these
            targets; it is exceeded if they alone are more, as most sources of a raw table have one target only.
        advanced: called now and then with how many lines were read, all passes together, and the share of the work.

    Raises:
        InputError: the table is not sorted, has negative scores, was changed meanwhile, or is so small that no line
            would stay.
    """
    passes = _Passes(table, 3 if by == "both" else 2, advanced)
    cell_of = criterion(table, by, passes.lines())
    counts = _counted(passes.sources(), cell_of, keep_best)
    pruned = Pruned(table.path, by, wanted=_wanted(table, keep, counts.lines))
    chooser = Chooser(counts.free, pruned.wanted - counts.forced)
    pruned.tied, pruned.tied_stay = chooser.ties
    outputs = _Buffered(kept), _Buffered(dropped)
    for lines in passes.sources():
        parts = _parted(lines, cell_of, chooser, keep_best)
        pruned.add(lines, parts[0])
        for output, part in zip(outputs, parts, strict=True):
            output.append(part)
    for output in outputs:
        output.flush()
    return pruned


class _Passes:
    """Reads a table several times and shows the progress of all passes as that of one work."""

    def __init__(self, table: ScoredTable, count: int, advanced: Advanced) -> None:
        self._table = table
        self._count = count
        self._advanced = advanced
        self._done = self._lines_before = 0

    def sources(self) -> Iterator[list[TableLine]]:
        lines = 0
        for members in self._table.sources(self._show):
            lines = members[-1].number
            yield members
        self._done += 1
        self._lines_before += lines

    def lines(self) -> Iterator[TableLine]:
        for members in self.sources():
            yield from members

    def _show(self, lines: int, share: float | None) -> None:
        whole = None if share is None else (self._done + share) / self._count
        self._advanced(self._lines_before + lines, whole)


@dataclass
class _Counts:
    """`forced` lines stay whatever the threshold; the others are in the histogram `free`."""

    free: array[int]
    forced: int = 0
    lines: int = 0


def _counted(sources: Iterable[list[TableLine]], cell_of: CellOf, keep_best: float) -> _Counts:
    counts = _Counts(zeros(MOST_CELLS))
    for lines in sources:
        cells = [cell_of(line) for line in lines]
        for cell in cells:
            counts.free[cell] += 1
        if length(lines[0].source) <= keep_best:
            counts.free[max(cells)] -= 1
            counts.forced += 1
        counts.lines += len(lines)
    return counts


def _parted(
    lines: list[TableLine], cell_of: CellOf, chooser: Chooser, keep_best: float
) -> tuple[list[TableLine], list[TableLine]]:
    """Those lines of a source that stay, and those that go."""
    cells = [cell_of(line) for line in lines]
    best = cells.index(max(cells)) if length(lines[0].source) <= keep_best else -1  # the first of equal ones
    parts: tuple[list[TableLine], list[TableLine]] = [], []
    for i, (line, cell) in enumerate(zip(lines, cells, strict=True)):
        parts[0 if i == best or chooser(cell) else 1].append(line)
    return parts


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
