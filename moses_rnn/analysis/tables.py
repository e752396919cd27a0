"""Table 2 of the paper: the best targets of a source by the translation model and by the RNN."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import DIRECT_COLUMN, SEPARATOR, TableLine, score_words

COUNTS_FIELD = 4  # count(target) count(source) count(both)


@dataclass(frozen=True)
class Targets:
    """A source with all its targets and their scores; `frequency` is how often it was extracted (0 if unknown)."""

    source: bytes
    frequency: float
    targets: list[tuple[bytes, list[float]]]

    def best(self, column: int, count: int) -> list[tuple[bytes, float]]:
        """Targets with the highest value in one column; of equal ones the first in the table."""
        ranked = sorted(self.targets, key=lambda target: -target[1][column])
        return [(target, scores[column]) for target, scores in ranked[:count]]


def targets_of(lines: Iterable[TableLine], sources: Collection[bytes]) -> Iterator[Targets]:
    """The targets of some sources, as they come; a source's lines are expected to stand together."""
    wanted = frozenset(sources)
    for source, group in groupby(lines, key=lambda line: line.source):
        if source in wanted:
            yield _targets(source, list(group))


def frequent_sources(
    lines: Iterable[TableLine], count: int, *, min_words: int = 3, min_targets: int = 3
) -> list[Targets]:
    """The most frequent sources of at least some words and some targets; memory holds only `count` of them."""
    best: list[tuple[float, int, Targets]] = []
    for order, (source, group) in enumerate(groupby(lines, key=lambda line: line.source)):
        if len(words(source)) < min_words:
            continue
        members = list(group)
        if len(members) < min_targets:
            continue
        found = _targets(source, members)
        heapq.heappush(best, (found.frequency, -order, found))
        if len(best) > count:
            heapq.heappop(best)
    return [found for _, _, found in sorted(best, reverse=True)]


def _targets(source: bytes, lines: list[TableLine]) -> Targets:
    scored = [(line.target, [float(score) for score in score_words(line.scores)]) for line in lines]
    return Targets(source, _source_count(lines[0]), scored)


def _source_count(line: TableLine) -> float:
    fields = line.line.split(SEPARATOR)
    counts = words(fields[COUNTS_FIELD].strip()) if len(fields) > COUNTS_FIELD else []
    try:
        return float(counts[1])
    except (IndexError, ValueError):
        return 0.0


def side_by_side(found: Targets, column: int, count: int) -> list[str]:
    """A source and its best targets before and after, as lines of text."""
    before, after = found.best(DIRECT_COLUMN, count), found.best(column, count)
    width = max(8, *(len(_text(target)) + 2 for target, _ in before))
    title = f"{_text(found.source)}   (seen {found.frequency:g} times, {len(found.targets)} targets)"
    lines = [title, f"    {'p(target|source)':<{width + 10}}RNN"]
    for (left, p), (right, q) in zip(before, after, strict=True):
        lines.append(f"    {p:<8.3g}  {_text(left):<{width}}{q:<8.3g}  {_text(right)}")
    return lines


def _text(phrase: bytes) -> str:
    """As it can be shown: what is no character, or commands a terminal, is escaped."""
    text = phrase.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
