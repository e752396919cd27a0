"""Tables 2 and 3 of the paper (section 4.3): the best targets of a source by the table and the RNN, and samples.

The user names the sources; otherwise long ones are chosen, frequent and rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from moses_rnn.analysis.grids import Cell, Grid, readable
from moses_rnn.analysis.scored_table import SEED, ComparedPairs, Ints, ScoredTable, sample_key
from moses_rnn.errors import number_of
from moses_rnn.table.phrase_table import DIRECT_COLUMN, TableLine
from moses_rnn.table.phrases import normalised, words

Samples = Mapping[bytes, Sequence[bytes]]  # the RNN's of each source, best first

MOST_OF_RARE = 3  # a rare source was extracted at most so often


@dataclass(frozen=True)
class Targets:
    """A source with the lines of all its targets, in the table's order."""

    lines: Sequence[TableLine]

    @property
    def source(self) -> bytes:
        """The source phrase."""
        return self.lines[0].source

    @property
    def frequency(self) -> float:
        """How often the source was extracted; 0 if unknown."""
        return self.lines[0].counts.source

    def picks(self, column: int, top: int) -> list[tuple[bytes, float, bytes, float]]:
        """Return the best targets, up to `top`: by p(target | source) with its value, and by a column with its value.

        Equal targets keep the table's order.
        """
        left, right = (
            sorted(((line.target, float(words(line.scores)[at])) for line in self.lines), key=lambda one: -one[1])
            for at in (DIRECT_COLUMN, column)
        )
        return [(*a, *b) for a, b in zip(left[:top], right[:top], strict=True)]


@dataclass(frozen=True)
class SourceGroup:
    """Sources under a title, such as the long and rare ones. `note` says how they were chosen."""

    title: str
    sources: Sequence[Targets]
    note: str = ""


def long_sources(
    table: ScoredTable, pairs: ComparedPairs, count: int, *, min_words: int, min_targets: int
) -> list[SourceGroup]:
    """Choose the paper's two kinds of sources, `count` of each: the most frequent, and a random sample of rare ones.

    The sample depends only on the words of the sources. A table that was filtered or scored again gives the same
    sources, as far as it has them.
    """
    fitting = np.flatnonzero((pairs.sizes >= min_targets) & (pairs.source_words >= min_words))
    seen = pairs.source_counts[fitting]
    rare = fitting[(seen >= 1) & (seen <= MOST_OF_RARE)]
    has_counts = bool(pairs.source_counts.any())
    first = ("Long, frequent", "the most frequent") if has_counts else ("Long", "the first; the table has no counts")
    kinds = (
        (f"{first[0]} source phrases", "", fitting[np.argsort(-seen, kind="stable")], first[1]),
        (
            "Long, rare source phrases",
            f", seen 1 to {MOST_OF_RARE} times",
            rare[np.argsort(pairs.source_keys[rare])[::-1]],
            f"drawn with seed {SEED}",
        ),
    )
    groups = []
    for title, limit, sources, how in kinds:
        chosen = _read_targets(table, pairs, sources[:count])
        limits = f"at least {number_of(min_words, 'word')}, at least {number_of(min_targets, 'target')}{limit}"
        groups.append(SourceGroup(title, chosen, f"{limits}; {len(chosen):,} of {len(sources):,}, {how}"))
    return groups


def find_sources(table: ScoredTable, pairs: ComparedPairs, names: Sequence[bytes]) -> list[Targets]:
    """Find sources with all their targets, in the table's order. The number of blanks between words does not matter."""
    wanted = set(map(normalised, names))
    keys = np.array([sample_key(name) for name in wanted], np.uint64)
    found = _read_targets(table, pairs, np.flatnonzero(np.isin(pairs.source_keys, keys)))
    return [one for one in found if normalised(one.source) in wanted]


def _read_targets(table: ScoredTable, pairs: ComparedPairs, sources: Ints) -> list[Targets]:
    ranges = [pairs.pairs_of(source) for source in sources]
    lines = table.lines(pair for pairs_of_source in ranges for pair in pairs_of_source)
    return [Targets([lines[pair] for pair in pairs_of_source]) for pairs_of_source in ranges]


def as_text(groups: Sequence[SourceGroup], column: int, top: int, samples: Samples) -> str:
    """Format sources, with the best targets by each score side by side, and below them the best samples."""
    lines: list[str] = []
    for group in groups:
        lines += [f"{group.title} ({group.note})", ""] if group.title else []
        for targets in group.sources:
            ranks = [(readable(left), p, readable(right), q) for left, p, right, q in targets.picks(column, top)]
            width = max(8, *(len(left) + 2 for left, *_ in ranks))
            seen = f"seen {targets.frequency:g} times, " if targets.frequency else ""
            lines.append(f"{readable(targets.source)}   ({seen}{number_of(len(targets.lines), 'target')})")
            lines.append(f"    {'p(target|source)':<{width + 10}}RNN")
            lines += [f"    {p:<8.3g}  {left:<{width}}{q:<8.3g}  {right}" for left, p, right, q in ranks]
            lines += [f"    {'sample':<8}  {readable(one)}" for one in samples.get(targets.source, ())[:top]]
            lines.append("")
    return "\n".join(lines)


def as_grid(groups: Sequence[SourceGroup], column: int, top: int, samples: Samples) -> Grid:
    """Return all sources as one table with a row for each rank."""
    rows: list[Sequence[Cell]] = []
    for group in groups:
        for targets in group.sources:
            own = group.title, targets.source, targets.frequency or None, len(targets.lines)
            ranks = zip_longest(targets.picks(column, top), samples.get(targets.source, ())[:top])
            rows += [(*own, i, *(pick or [None] * 4), sample) for i, (pick, sample) in enumerate(ranks, start=1)]
    header = ("source phrases", "source", "times seen", "targets", "rank", "by p(target|source)", "p(target|source)",
              "by RNN", "RNN", "sample")  # fmt: skip
    shown = len(header) if samples else -1
    cells = [row[:shown] for row in rows]
    return Grid("Best targets by the translation model and by the RNN", header[:shown], cells, group_columns=4)
