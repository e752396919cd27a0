"""Table 2 of the paper (section 4.3): the best targets of a source by the translation model and by the RNN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moses_rnn.analysis.selection import Limits, Targets, Wanted
from moses_rnn.formats.grids import Cell, Grid, readable
from moses_rnn.formats.phrase_table import DIRECT_COLUMN

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


def long_sources(
    how_many: int, *, min_words: int, min_targets: int, min_count: float | None, max_count: float, seed: int
) -> dict[str, Wanted]:
    """The paper's two kinds of sources.

    Args:
        how_many: of each kind.
        min_words: the least length of a long source.
        min_targets: the fewest targets to choose from.
        min_count: frequent sources are drawn from those extracted at least this often; None: the most frequent ones.
        max_count: a rare source was extracted at most this often.
        seed: of what is drawn.
    """
    frequent = Limits(min_words, min_targets, min_count or 0.0)
    rare = Limits(min_words, min_targets, 1.0, max_count)
    return {
        "frequent": Wanted("Long, frequent source phrases", frequent, how_many, None if min_count is None else seed),
        "rare": Wanted("Long, rare source phrases", rare, how_many, seed),
    }


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
