"""The first reading of a table that is to be extended: what its lines are like, and what they say of words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.streams import sorting
from moses_rnn.formats.dictionaries import Shape
from moses_rnn.formats.lexical_weights import LinkCounts
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR, SEPARATOR, TableLine, log_of
from moses_rnn.translation.extension.sources import is_regular, normalised


@dataclass
class ColumnValues:
    """The values of a column: the lowest above 0, the highest, and the sum of their logarithms, as Moses takes them."""

    lowest: float = math.inf
    highest: float = -math.inf
    logs: float = 0.0

    def add(self, value: float) -> None:
        """Take a line's value in."""
        if 0 < value < self.lowest:
            self.lowest = value
        self.highest = max(self.highest, value)
        self.logs += log_of(value)

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
    """What a table is like.

    Args:
        table: its name.
        lacking: source phrases; those that the table has are taken out of them.
    """

    table: str
    lacking: set[bytes]
    lines: int = 0
    first: TableLine | None = None
    columns: list[ColumnValues] = field(default_factory=list)
    links: LinkCounts = field(default_factory=LinkCounts)
    apart: dict[bytes, set[bytes]] = field(default_factory=dict)  # targets on lines that stand elsewhere, by source

    def read(self, lines: Iterable[TableLine]) -> None:
        """Look at all lines.

        Raises:
            FormatError: there are none, or they are not in the order of their bytes.
        """
        key_before = b""
        for line in lines:
            key = key_of(line)
            if key < key_before:
                raise _unsorted(self.table, line)
            key_before = key
            self._look(line)
        if self.first is None:
            raise FormatError(self.table, None, "at least one line", "none")

    def _look(self, line: TableLine) -> None:
        if self.first is None:
            self.first = line
            self.columns = [ColumnValues() for _ in words(line.scores)]
        self.lines += 1
        for column, score in zip(self.columns, words(line.scores), strict=True):
            column.add(float(score))
        self.links.add(line)
        if not is_regular(line):
            self.apart.setdefault(normalised(line.source), set()).add(normalised(line.target))
        if self.lacking:
            self.lacking.discard(normalised(line.source))

    @property
    def shape(self) -> Shape:
        """The table's, by its first line."""
        return Shape.of(self._first_line)

    @property
    def fields(self) -> int:
        """How many its first line has."""
        return self._first_line.line.count(SEPARATOR) + 1

    @property
    def _first_line(self) -> TableLine:
        if self.first is None:
            raise InputError(f"{self.table}: expected to be read before, found not to be")
        return self.first


def key_of(line: TableLine) -> bytes:
    """What a line is sorted by: its bytes before the scores."""
    return line.line[: line.places.scores_end - len(line.scores)]


def _unsorted(table: str, line: TableLine) -> FormatError:
    return FormatError(
        table,
        line.number,
        "the order of LC_ALL=C sort, into which new lines are put",
        "a line that belongs before the one above it",
        sorting(table),
    )
