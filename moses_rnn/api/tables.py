"""Phrase tables as columns, for numpy and pandas."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from moses_rnn.analysis.explain import column_names
from moses_rnn.api.chunks import in_chunks
from moses_rnn.api.pairs import PathLike, Row, as_str, check_range
from moses_rnn.errors import ArgumentError
from moses_rnn.files.streams import STANDARD_STREAM, checked_path, read_lines, regular_file
from moses_rnn.table.phrase_table import parse_table, read_first_line
from moses_rnn.table.phrases import words
from moses_rnn.table.signatures import signature_of
from moses_rnn.table.table_blocks import Floats

ROWS = 65_536  # per batch
TEXTS = "source", "target", "alignment"
COUNTS = "target_count", "source_count", "pair_count"

Column = list[str] | Floats


class Table:
    """A phrase table, scored or not, as `moses_rnn.read_table` returns it; the file is read anew by every method.

    Attributes:
        path: the file.
        scores: names of the scores: ``inverse_phrase``, ``inverse_lexical``, ``direct_phrase`` and ``direct_lexical``,
            where it has the four of Moses, and what the signature beside it says, ``RNN`` as a rule.
        columns: names of all columns.
    """

    def __init__(self, path: str) -> None:
        line, self._form = read_first_line(path)
        names = column_names(len(words(line.scores)), signature_of(path).names)
        self.path: str = path
        self.scores: tuple[str, ...] = tuple(_distinct([name.replace(" ", "_") for name in names]))
        self.columns: tuple[str, ...] = (*TEXTS, *self.scores, *COUNTS)

    def __repr__(self) -> str:
        return f"<moses_rnn.Table {self.path!r}: {', '.join(self.columns)}>"

    def __iter__(self) -> Iterator[Row]:
        """Yield the lines of a table of any length; raise InputError for an invalid line."""
        for line in parse_table(read_lines(self.path), self.path, form=self._form):
            scores = tuple(map(float, words(line.scores)))
            alignment = as_str(line.alignment)
            yield Row(as_str(line.source), as_str(line.target), scores, alignment, line.counts)

    def batches(self, rows: int = ROWS) -> Iterator[dict[str, Column]]:
        """Yield parts of `rows` rows: lists of str and arrays of float64 by name; raises as iterating does."""
        return map(self._by_name, in_chunks(self, check_range("rows", rows, most=sys.maxsize)))

    def to_columns(self) -> dict[str, Column]:
        """Return the whole table, like one batch; raises as iterating does."""
        return self._by_name(list(self))

    def _by_name(self, rows: Sequence[Row]) -> dict[str, Column]:
        numbers = np.array([(*row.scores, *row.counts) for row in rows], np.float64)
        numbers = numbers.reshape(len(rows), len(self.scores) + len(COUNTS))
        texts: dict[str, Column] = {name: [getattr(row, name) for row in rows] for name in TEXTS}
        by_name = dict(zip((*self.scores, *COUNTS), numbers.T.copy(), strict=True))
        return {name: texts[name] if name in texts else by_name[name] for name in self.columns}


def read_table(path: PathLike) -> Table:
    """Look at a phrase table, plain or compressed, with or without added scores.

    Raises:
        ArgumentError: it is standard input, which cannot be read twice.
        InputError: it is missing, a pipe or no phrase table, or the signature beside it is of another table.
    """
    name = checked_path("path", path)
    if name == STANDARD_STREAM:
        raise ArgumentError("path", "a file, which can be read more than once", "standard input")
    return Table(regular_file(name))


def _distinct(names: Sequence[str]) -> Iterator[str]:
    """Yield names, adding a number to repeated ones, since columns are identified by name."""
    times: Counter[str] = Counter()
    for name in names:
        times[name] += 1
        yield name if times[name] == 1 else f"{name}_{times[name]}"
