"""Table 2 of the paper (section 4.3): the best targets of a source by the translation model and by the RNN.

Sources are given, or chosen while a table streams by: long ones, seen often or seldom.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from moses_rnn.analysis.grids import Cell, Grid, readable
from moses_rnn.analysis.scored_table import length
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.phrase_table import DIRECT_COLUMN, TableLine

HASH_BYTES = 8
MOST_OF_RARE = 3.0  # times that a rare source was extracted
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
class Limits:
    """Which sources fit.

    By their words (a rule's gaps included, its left-hand side not), their targets, and how often they were extracted. A
    source without a count fits only where `min_count` is 0.
    """

    min_words: int = 4
    min_targets: int = 3
    min_count: float = 0.0
    max_count: float = math.inf

    def admit(self, lines: Sequence[TableLine]) -> bool:
        """Whether the source of these lines fits."""
        if len(lines) < self.min_targets or length(lines[0].source) < self.min_words:
            return False
        return self.min_count <= lines[0].counts.source <= self.max_count

    def __str__(self) -> str:
        parts = [f"at least {self.min_words} words", f"at least {self.min_targets} targets"]
        if self.max_count < math.inf:
            parts.append(f"seen {self.min_count:g} to {self.max_count:g} times")
        return ", ".join(parts)


@dataclass(frozen=True)
class Wanted:
    """So many of the sources that fit: the most frequent ones, or with a `seed` any.

    Whether a source is drawn depends on the seed and its own words: a table that was filtered or scored again gives the
    same ones as far as it has them.
    """

    title: str
    limits: Limits
    how_many: int
    seed: int | None = None

    def priority(self, lines: Sequence[TableLine]) -> float:
        """The sources of highest priority are taken."""
        if self.seed is None:
            return lines[0].counts.source
        key = str(self.seed).encode()
        return float(int.from_bytes(blake2b(lines[0].source, key=key, digest_size=HASH_BYTES).digest()))


@dataclass(frozen=True)
class SourceGroup:
    """Sources under a title, such as the long and rare ones; `note` says how they were chosen."""

    title: str
    sources: Sequence[Targets]
    note: str = ""


def select(sources: Iterable[Sequence[TableLine]], wanted: Sequence[Wanted]) -> list[SourceGroup]:
    """Make one or more choices, which do not know of each other, in one pass over the lines of each source.

    In a group, sources are in order of priority.
    """
    fitting = [0] * len(wanted)
    heaps: list[list[tuple[float, int, Sequence[TableLine]]]] = [[] for _ in wanted]
    for order, lines in enumerate(sources):
        for i, (one, heap) in enumerate(zip(wanted, heaps, strict=True)):
            if one.limits.admit(lines):
                fitting[i] += 1
                heapq.heappush(heap, (one.priority(lines), -order, lines))
                if len(heap) > one.how_many:
                    heapq.heappop(heap)
    return [_group(*choice) for choice in zip(wanted, fitting, heaps, strict=True)]


def _group(wanted: Wanted, fitting: int, heap: Sequence[tuple[float, int, Sequence[TableLine]]]) -> SourceGroup:
    sources = [Targets(lines) for _, _, lines in sorted(heap, reverse=True)]
    drawn = "the most frequent" if wanted.seed is None else f"drawn with seed {wanted.seed}"
    return SourceGroup(wanted.title, sources, f"{wanted.limits}; {len(sources):,} of {fitting:,}, {drawn}")


def long_sources(how_many: int, *, min_words: int, min_targets: int, seed: int) -> list[Wanted]:
    """The paper's two kinds of sources, so many of each: the most frequent ones, and rare ones that are drawn."""
    frequent, rare = Limits(min_words, min_targets), Limits(min_words, min_targets, 1.0, MOST_OF_RARE)
    return [
        Wanted("Long, frequent source phrases", frequent, how_many, None),
        Wanted("Long, rare source phrases", rare, how_many, seed),
    ]


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
