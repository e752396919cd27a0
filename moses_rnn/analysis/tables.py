"""Table 2 of the paper (section 4.3): the best targets of a source by the translation model and by the RNN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moses_rnn.analysis.selection import Limits, Targets, Wanted
from moses_rnn.formats.grids import Cell, Grid, readable
from moses_rnn.formats.phrase_table import DIRECT_COLUMN

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
class SourceGroup:
    """Sources under a title, such as the long and rare ones; `note` says how they were chosen."""

    title: str
    sources: Sequence[Targets]
    note: str = ""


@dataclass(frozen=True)
class Pick:
    """The targets of one rank by both: what they are and their probabilities."""

    by_table: bytes
    table_probability: float
    by_rnn: bytes
    rnn_probability: float


def picks(targets: Targets, column: int, top: int) -> list[Pick]:
    """The best targets of a source by both, best first.

    Args:
        targets: the source with its targets.
        column: the RNN's score, from 0.
        top: how many ranks at most.
    """
    both = zip(targets.best(DIRECT_COLUMN, top), targets.best(column, top), strict=True)
    return [Pick(*left, *right) for left, right in both]


def long_sources(how_many: int, *, min_words: int, min_targets: int, seed: int) -> list[Wanted]:
    """The paper's two kinds of sources: the most frequent ones, and rare ones.

    Args:
        how_many: of each kind.
        min_words: the least length of a long source.
        min_targets: the fewest targets to choose from.
        seed: of what is drawn.
    """
    frequent, rare = Limits(min_words, min_targets), Limits(min_words, min_targets, 1.0, MOST_OF_RARE)
    return [
        Wanted("Long, frequent source phrases", frequent, how_many, None),
        Wanted("Long, rare source phrases", rare, how_many, seed),
    ]


def side_by_side(targets: Targets, column: int, top: int) -> list[str]:
    """A source and its best targets before and after, as lines of text."""
    ranks = picks(targets, column, top)
    width = max(8, *(len(readable(rank.by_table)) + 2 for rank in ranks))
    seen = f"seen {targets.frequency:g} times, " if targets.frequency else ""
    title = f"{readable(targets.source)}   ({seen}{len(targets.targets)} targets)"
    lines = [title, f"    {'p(target|source)':<{width + 10}}RNN"]
    for rank in ranks:
        left = f"{rank.table_probability:<8.3g}  {readable(rank.by_table):<{width}}"
        lines.append(f"    {left}{rank.rnn_probability:<8.3g}  {readable(rank.by_rnn)}")
    return lines


def as_text(sections: Sequence[SourceGroup], column: int, top: int) -> str:
    """All sections for people to read in a terminal."""
    lines: list[str] = []
    for section in sections:
        lines += [section.note or section.title, ""] if section.title else []
        for targets in section.sources:
            lines += [*side_by_side(targets, column, top), ""]
    return "\n".join(lines)


def as_grid(sections: Sequence[SourceGroup], column: int, top: int) -> Grid:
    """All sections as one table of a row for each rank, to be rendered by `grids`."""
    rows = [row for section in sections for targets in section.sources for row in _rows(section, targets, column, top)]
    title = "Best targets by the translation model and by the RNN"
    return Grid(title, GRID_HEADER, rows, group_columns=4)


def _rows(section: SourceGroup, targets: Targets, column: int, top: int) -> Iterator[Sequence[Cell]]:
    group = section.title, targets.source, targets.frequency or None, len(targets.targets)
    for i, rank in enumerate(picks(targets, column, top), start=1):
        yield (*group, i, rank.by_table, rank.table_probability, rank.by_rnn, rank.rnn_probability)
