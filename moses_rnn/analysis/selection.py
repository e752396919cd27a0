"""Source phrases that stand for many: long ones, seen often or seldom, chosen while a table streams by."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from moses_rnn.analysis.scored_table import counts_of, length
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import TableLine

HASH_BYTES = 8


class Target(NamedTuple):
    """A target of a source: its scores as the table has them, and how often the pair was extracted (0 if unknown)."""

    phrase: bytes
    scores: tuple[float, ...]
    times: float


@dataclass(frozen=True)
class Targets:
    """A source with all its targets, in the table's order; `frequency` is how often it was extracted (0 if unknown)."""

    source: bytes
    frequency: float
    targets: list[Target]

    @classmethod
    def of(cls, lines: Sequence[TableLine]) -> Targets:
        """From the lines of a source."""
        targets = [Target(line.target, tuple(map(float, words(line.scores))), counts_of(line).pair) for line in lines]
        return cls(lines[0].source, counts_of(lines[0]).source, targets)

    def best(self, column: int, count: int) -> list[tuple[bytes, float]]:
        """Targets with the highest value in one column; of equal ones the first in the table."""
        ranked = sorted(self.targets, key=lambda target: -target.scores[column])
        return [(target.phrase, target.scores[column]) for target in ranked[:count]]


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
        return self.min_count <= counts_of(lines[0]).source <= self.max_count

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
            return counts_of(lines[0]).source
        key = str(self.seed).encode()
        return float(int.from_bytes(blake2b(lines[0].source, key=key, digest_size=HASH_BYTES).digest()))


@dataclass
class Selection:
    """What was chosen, in order of priority; `fitting` is how many sources there were to choose from."""

    wanted: Wanted
    fitting: int = 0
    sources: list[Targets] = field(default_factory=list)

    def __str__(self) -> str:
        drawn = "the most frequent" if self.wanted.seed is None else f"drawn with seed {self.wanted.seed}"
        chosen = f"{len(self.sources):,} of {self.fitting:,}, {drawn}"
        return f"{self.wanted.title} ({self.wanted.limits}; {chosen})"


def select(sources: Iterable[Sequence[TableLine]], wanted: Sequence[Wanted]) -> list[Selection]:
    """Choose sources in one pass; memory holds only those that are wanted.

    Args:
        sources: the lines of each, as `scored_table.by_source` gives them.
        wanted: one or more choices, which do not know of each other.
    """
    selections = [Selection(one) for one in wanted]
    heaps: list[list[tuple[float, int, Targets]]] = [[] for _ in wanted]
    for order, lines in enumerate(sources):
        for selection, heap in zip(selections, heaps, strict=True):
            if selection.wanted.limits.admit(lines):
                selection.fitting += 1
                _offer(heap, selection.wanted, order, lines)
    for selection, heap in zip(selections, heaps, strict=True):
        selection.sources = [targets for _, _, targets in sorted(heap, reverse=True)]
    return selections


def _offer(heap: list[tuple[float, int, Targets]], wanted: Wanted, order: int, lines: Sequence[TableLine]) -> None:
    rank = wanted.priority(lines), -order
    if len(heap) < wanted.how_many:
        heapq.heappush(heap, (*rank, Targets.of(lines)))
    elif rank > heap[0][:2]:
        heapq.heapreplace(heap, (*rank, Targets.of(lines)))


def targets_of(sources: Iterable[Sequence[TableLine]], wanted: Collection[bytes]) -> Iterator[Targets]:
    """The sources of some names, in the table's order, with all their targets; blanks between words do not count."""
    names = frozenset(tuple(words(name)) for name in wanted)
    for lines in sources:
        if tuple(words(lines[0].source)) in names:
            yield Targets.of(lines)
