"""The first reading of a table that is to be extended: what its lines are like, and what they say of words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError
from moses_rnn.files.streams import sorting
from moses_rnn.formats.lexical_weights import LinkCounts
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR, SEPARATOR, Shape, TableLine
from moses_rnn.translation.extension.sources import is_regular, normalised


@dataclass
class ColumnValues:
    """The values of a column: the lowest above 0, and the highest."""

    lowest: float = math.inf
    highest: float = -math.inf

    def add(self, value: float) -> None:
        """Take a line's value in."""
        if 0 < value < self.lowest:
            self.lowest = value
        self.highest = max(self.highest, value)

    @property
    def least(self) -> float:
        """The lowest one that has a logarithm."""
        return self.lowest if self.lowest < math.inf else math.exp(DEFAULT_FLOOR)

    @property
    def is_constant(self) -> bool:
        """Whether every line has the same."""
        return self.lowest == self.highest


@dataclass
class Survey:
    """What a table is like; `shape` and `fields` are those of its first line."""

    shape: Shape
    fields: int
    columns: list[ColumnValues]
    lacking: set[bytes]  # source phrases
    lines: int = 0
    links: LinkCounts = field(default_factory=LinkCounts)
    apart: dict[bytes, set[bytes]] = field(default_factory=dict)  # targets on lines that stand elsewhere, by source

    def add(self, line: TableLine) -> None:
        """Count a line in."""
        self.lines += 1
        for column, score in zip(self.columns, words(line.scores), strict=True):
            column.add(float(score))
        self.links.add(line)
        if not is_regular(line):
            self.apart.setdefault(normalised(line.source), set()).add(normalised(line.target))
        if self.lacking:
            self.lacking.discard(normalised(line.source))


def look_over(table: str, lines: Iterable[TableLine], phrases: Iterable[bytes]) -> Survey:
    """Look at all lines of a table.

    Args:
        table: its name.
        lines: of the table.
        phrases: sources, of which it is looked for those that the table lacks.

    Raises:
        FormatError: there are no lines, or they are not in the order of their bytes.
    """
    survey, key_before = None, b""
    for line in lines:
        if survey is None:
            columns = [ColumnValues() for _ in words(line.scores)]
            survey = Survey(Shape.of(line), line.line.count(SEPARATOR) + 1, columns, set(phrases))
        key = key_of(line)
        if key < key_before:
            expected, found = "the order of LC_ALL=C sort", "a line that belongs before the one above it"
            raise FormatError(table, line.number, f"{expected}, into which new lines are put", found, sorting(table))
        key_before = key
        survey.add(line)
    if survey is None:
        raise FormatError(table, None, "at least one line", "none")
    return survey


def key_of(line: TableLine) -> bytes:
    """What a line is sorted by: its bytes before the scores."""
    return line.line[: line.places.scores_end - len(line.scores)]
