"""Table 2 of the paper (section 4.3): the best targets of a source by the translation model and by the RNN.

Sources are given, or chosen while a table streams by: long ones, seen often or seldom.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from moses_rnn.analysis.grids import Cell, Grid, readable
from moses_rnn.analysis.scored_table import length
from moses_rnn.table.phrase_table import DIRECT_COLUMN, TableLine, words

HASH_BYTES = 8
MOST_OF_RARE = 3  # times that a rare source was extracted
KINDS = ("Long, frequent source phrases", "Long, rare source phrases")
LIMITS = ("", f", seen 1 to {MOST_OF_RARE} times")
GRID_HEADER = (
    "source phrases",
    "source",
    "times seen",
    "targets",
    "rank",
    "by p(target|source)",
    "p(target|source)",
    "by RNN",
    "RNN",
)

_Candidate = tuple[float, int, Sequence[TableLine]]  # priority, minus the first line, all lines


@dataclass(frozen=True)
class Targets:
    """A source with the lines of all its targets, in the table's order."""

    lines: Sequence[TableLine]

    @property
    def source(self) -> bytes:
        """The phrase."""
        return self.lines[0].source

    @property
    def frequency(self) -> float:
        """How often the source was extracted; 0 if unknown."""
        return self.lines[0].counts.source

    def best(self, column: int, count: int) -> list[tuple[bytes, float]]:
        """Targets with the highest value in one column; of equal ones the first in the table."""
        targets = [(line.target, float(words(line.scores)[column])) for line in self.lines]
        return sorted(targets, key=lambda target: -target[1])[:count]

    def picks(self, column: int, top: int) -> list[tuple[bytes, float, bytes, float]]:
        """The best targets by the table and by a column, each with its probability: at most `top` ranks, best first."""
        both = zip(self.best(DIRECT_COLUMN, top), self.best(column, top), strict=True)
        return [(*left, *right) for left, right in both]


@dataclass(frozen=True)
class SourceGroup:
    """Sources under a title, such as the long and rare ones; `note` says how they were chosen."""

    title: str
    sources: Sequence[Targets]
    note: str = ""


class LongSources:
    """The paper's two kinds of sources, so many of each: the most frequent ones, and rare ones that are drawn.

    A rule's gaps count as words, its left-hand side does not. Whether a source is drawn depends on the seed and its own
    words: a table that was filtered or scored again gives the same ones as far as it has them.
    """

    def __init__(self, how_many: int, *, min_words: int, min_targets: int, seed: int) -> None:
        self._how_many, self._min_words, self._min_targets, self._seed = how_many, min_words, min_targets, seed
        self._best: tuple[list[_Candidate], ...] = [], []
        self._fitting = [0, 0]

    def add(self, lines: Sequence[TableLine]) -> None:
        """Look at all lines of a source."""
        if len(lines) >= self._min_targets and length(lines[0].source) >= self._min_words:
            for kind, priority in enumerate(_priorities(lines[0], self._seed)):
                self._fitting[kind] += 1
                heapq.heappush(self._best[kind], (priority, -lines[0].number, lines))
                if len(self._best[kind]) > self._how_many:
                    heapq.heappop(self._best[kind])

    def groups(self) -> list[SourceGroup]:
        """What was chosen of all that was looked at."""
        groups, hows = [], ("the most frequent", f"drawn with seed {self._seed}")
        for title, limit, how, best, of in zip(KINDS, LIMITS, hows, self._best, self._fitting, strict=True):
            chosen = [Targets(lines) for _, _, lines in sorted(best, reverse=True)]
            limits = f"at least {self._min_words} words, at least {self._min_targets} targets{limit}"
            groups.append(SourceGroup(title, chosen, f"{limits}; {len(chosen):,} of {of:,}, {how}"))
        return groups


def _priorities(line: TableLine, seed: int) -> Iterator[float]:
    """Of a source among the frequent ones and, if it is rare, among those that are drawn: the highest are taken."""
    yield line.counts.source
    if 1 <= line.counts.source <= MOST_OF_RARE:
        key = str(seed).encode()
        yield float(int.from_bytes(blake2b(line.source, key=key, digest_size=HASH_BYTES).digest()))


def targets_of(sources: Iterable[Sequence[TableLine]], wanted: Collection[bytes]) -> Iterator[Targets]:
    """The sources of some names, in the table's order, with all their targets; blanks between words do not count."""
    names = frozenset(tuple(words(name)) for name in wanted)
    for lines in sources:
        if tuple(words(lines[0].source)) in names:
            yield Targets(lines)


def side_by_side(targets: Targets, column: int, top: int) -> list[str]:
    """A source and its best targets before and after, as lines of text."""
    ranks = [(readable(left), p, readable(right), q) for left, p, right, q in targets.picks(column, top)]
    width = max(8, *(len(left) + 2 for left, *_ in ranks))
    seen = f"seen {targets.frequency:g} times, " if targets.frequency else ""
    lines = [f"{readable(targets.source)}   ({seen}{len(targets.lines)} targets)"]
    lines.append(f"    {'p(target|source)':<{width + 10}}RNN")
    return lines + [f"    {p:<8.3g}  {left:<{width}}{q:<8.3g}  {right}" for left, p, right, q in ranks]


def as_text(sections: Sequence[SourceGroup], column: int, top: int) -> str:
    """All sections for people to read in a terminal."""
    lines: list[str] = []
    for section in sections:
        lines += [f"{section.title} ({section.note})", ""] if section.title else []
        for targets in section.sources:
            lines += [*side_by_side(targets, column, top), ""]
    return "\n".join(lines)


def as_grid(sections: Sequence[SourceGroup], column: int, top: int) -> Grid:
    """All sections as one table of a row for each rank, to be rendered by `grids`."""
    rows = [row for section in sections for targets in section.sources for row in _rows(section, targets, column, top)]
    title = "Best targets by the translation model and by the RNN"
    return Grid(title, GRID_HEADER, rows, group_columns=4)


def _rows(section: SourceGroup, targets: Targets, column: int, top: int) -> Iterator[Sequence[Cell]]:
    group = section.title, targets.source, targets.frequency or None, len(targets.lines)
    for i, pick in enumerate(targets.picks(column, top), start=1):
        yield (*group, i, *pick)
