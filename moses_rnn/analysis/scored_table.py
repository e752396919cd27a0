"""A scored phrase table as the analyses read it: source by source, or all pairs as arrays of what counts of them.

The table must be in the order of ``LC_ALL=C sort``, which is how train-model.perl leaves it: there a source's lines
follow each other, and whether they do can be seen without remembering all sources.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import FormatError, InputError, printable, shown
from moses_rnn.files.streams import (
    STANDARD_STREAM,
    Advanced,
    Meter,
    change_stamp,
    read_lines,
    show_nothing,
    sort_command,
)
from moses_rnn.table.phrase_table import (
    DIRECT_COLUMN,
    LEFT_HAND_SIDE,
    SEPARATOR,
    PhraseForm,
    TableLine,
    log_of,
    parse_line,
    parse_table,
    read_first_line,
    words,
)
from moses_rnn.table.signatures import recorded_columns
from moses_rnn.table.validation import signature_of

TABLE_SCORES = 4  # what phrase-extract writes
RNN = "RNN"  # what the score of a network of p(target | source) is called as a rule
OF_TARGETS = ("log p(target | source)", "s(source, target)")  # in the meaning of such a network's score
HOW_TO_SAY = "Or name the network's score with --column."
LINES_BETWEEN_LOOKS = 10_000
ALL = "all"  # pairs or sources, whatever their count
CLASSES = ("seen once", "seen 2–9 times", "seen 10 times or more", "without a count")
FIRST_COUNTS = (2, 10)  # of the second and the third class

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Look = Callable[[list[TableLine]], None]


def split_by_count(counts: Floats) -> Iterator[tuple[str, Mask]]:
    """All of them, then those of each of CLASSES that there are."""
    yield ALL, np.ones(len(counts), np.bool_)
    classes = np.where(counts > 0, np.searchsorted(FIRST_COUNTS, counts, side="right"), len(FIRST_COUNTS) + 1)
    for number, name in enumerate(CLASSES):
        if (classes == number).any():
            yield name, classes == number


def length(phrase: bytes) -> int:
    """Words of a phrase, gaps included, the left-hand side of a rule not."""
    all_words = words(phrase)
    return len(all_words) - bool(all_words and LEFT_HAND_SIDE.fullmatch(all_words[-1]))


@dataclass(frozen=True)
class Pairs:
    """All pairs of a table in its order, and its sources; counts are 0 where the table does not say."""

    logs: Floats  # natural logarithms of the scores that are compared, as Moses takes them; pairs × columns
    counts: Floats  # how often each pair was extracted
    target_words: Floats
    source: Ints  # number of each pair's source, from 0
    source_counts: Floats  # how often each source was extracted
    source_words: Floats


def best_of_sources(pairs: Pairs) -> tuple[Mask, Ints]:
    """Which targets of a source have its best score, by each column (pairs × columns), and where sources begin."""
    begins = np.searchsorted(pairs.source, np.arange(len(pairs.source_words)))
    best: Mask = pairs.logs == np.maximum.reduceat(pairs.logs, begins)[pairs.source]
    return best, begins


@dataclass(frozen=True)
class ScoredTable:
    """A scored table.

    `columns` are those that are compared, from 0: p(target | source), where it is known, and last the network's score.
    `scores` is how many there are. `form` is that of its phrases, `stamp` tells whether the file is still what it was;
    `signature` is what is recorded of it. See `open`.
    """

    path: str
    scores: int
    columns: tuple[int, ...]
    form: PhraseForm
    stamp: tuple[int, ...]
    signature: Mapping[str, Any]

    @classmethod
    def open(cls, path: str, column: int | None = None, name: str = "", *, by_table: bool = True) -> ScoredTable:
        """Look at a table's first line and its signature; refuse it if it is not known which column is which.

        `column` is the network's score, from 0 or from the end; None: the signature says which, by the `name` of that
        score or, without one, the RNN's or else another network's. `by_table` is whether p(target | source) is needed.
        """
        if path == STANDARD_STREAM or not Path(path).is_file():
            raise InputError(f"{path}: expected a regular file, which can be read more than once")
        stamp = change_stamp(path)
        line, form = read_first_line(path)
        scores = len(words(line.scores))
        signature = _signature(path, scores, needed=column is None)
        column = _recorded(path, signature, scores, name) if column is None else _checked(path, scores, column)
        own = min([column, *recorded_columns(signature)])
        if own >= TABLE_SCORES:
            return cls(path, scores, (DIRECT_COLUMN, column), form, stamp, signature)
        if by_table:
            raise InputError(
                f"{path}: expected the {TABLE_SCORES} scores of phrase-extract before the network's, of which number "
                f"{DIRECT_COLUMN + 1} is p(target|source), found {own}",
                advice="prune --by rnn and explain work without p(target|source).",
            )
        return cls(path, scores, (column,), form, stamp, signature)

    @property
    def column(self) -> int:
        """The network's score, from 0."""
        return self.columns[-1]

    def lines(self, advanced: Advanced = show_nothing) -> Iterator[TableLine]:
        """All lines, once more; refused if the table was changed meanwhile, or has logarithms for probabilities."""
        meter = Meter()
        for line in parse_table(read_lines(self.path, meter=meter), self.path, form=self.form):
            if line.number % LINES_BETWEEN_LOOKS == 0:
                advanced(line.number, meter.share)
            if b"-" in line.scores:
                self._check(line)
            yield line
        if change_stamp(self.path) != self.stamp:
            raise InputError(f"{self.path}: was changed while it was read")

    def sources(self, advanced: Advanced = show_nothing) -> Iterator[list[TableLine]]:
        """The lines of one source after the other; see `by_source`."""
        return by_source(self.lines(advanced), self.path)

    def pairs(self, advanced: Advanced = show_nothing, *looks: Look) -> Pairs:
        """All pairs; `looks` are given the lines of one source after the other as they pass."""
        logs, of_pairs, of_sources = array("d"), array("d"), array("d")
        for number, lines in enumerate(self.sources(advanced)):
            for look in looks:
                look(lines)
            of_sources.extend((lines[0].counts.source, length(lines[0].source)))
            for line in lines:
                logs.extend(self.log_probs(line))
                of_pairs.extend((line.counts.pair, length(line.target), number))
        counts, target_words, source = np.frombuffer(of_pairs).reshape(-1, 3).T
        columns = np.frombuffer(logs).reshape(-1, len(self.columns))
        return Pairs(
            columns, counts, target_words, source.astype(np.int64), *np.frombuffer(of_sources).reshape(-1, 2).T
        )

    def some_lines(self, first: int, count: int) -> list[TableLine]:
        """So many lines from the `first` one, which counts from 0."""
        some = enumerate(islice(read_lines(self.path), first, first + count), start=first + 1)
        return [parse_line(line, self.path, number, self.form) for number, line in some]

    def log_probs(self, line: TableLine) -> tuple[float, ...]:
        """Natural logarithms of the scores in `columns`, as Moses takes them."""
        scores = words(line.scores)
        return tuple(log_of(float(scores[column])) for column in self.columns)

    def _check(self, line: TableLine) -> None:
        scores = words(line.scores)
        for column in self.columns:
            if float(scores[column]) < 0:
                advice = "Moses cannot use a table of logarithms: score it again without --log."
                expected = f"a probability as score {column + 1}"
                raise FormatError(self.path, line.number, expected, shown(scores[column]), advice)


def _signature(path: str, scores: int, *, needed: bool) -> dict[str, Any]:
    """The table's signature; without --column, one of another file or none is an error."""
    try:
        signature = signature_of(path)
    except InputError as error:
        if not needed:
            return {}
        error.add_advice(HOW_TO_SAY)
        raise
    if needed and not signature:
        raise InputError(
            f"{path}: expected a scored table and its signature, {path}.json, found {scores} scores and no signature",
            advice=f"Score it with moses-rnn-score {path}\n{HOW_TO_SAY}",
        )
    return signature


def _recorded(path: str, signature: Mapping[str, Any], scores: int, name: str) -> int:
    """The column of a network that a signature names."""
    records = {column: record for column, record in recorded_columns(signature).items() if column < scores}
    columns = [column for column, record in records.items() if record["name"] == (name or RNN)]
    if not columns and not name:
        columns = [c for c, record in records.items() if any(of in str(record.get("meaning")) for of in OF_TARGETS)]
    if len(columns) != 1:
        found = ", ".join(f"{printable(record['name'])} as score {c + 1}" for c, record in records.items()) or "none"
        raise InputError(
            f"{path}: expected one score named {name or RNN} in its signature, found {found}",
            advice="Choose a score with --column; 0 is the first.",
        )
    return columns[0]


def _checked(path: str, scores: int, column: int) -> int:
    if not -scores <= column < scores:
        raise InputError(f"{path}: expected --column from 0 to {scores - 1}, the scores of this table, found {column}")
    return column % scores


def by_source(lines: Iterable[TableLine], name: str) -> Iterator[list[TableLine]]:
    """The lines of one source after the other, of a table of that name, which must be sorted."""
    before = b""
    for source, group in groupby(lines, key=lambda line: line.source):
        members = list(group)
        key = source + b" " + SEPARATOR  # whole lines are sorted: "a b |||" before "a |||"
        if key <= before:
            raise FormatError(
                name,
                members[0].number,
                "sources in the order of LC_ALL=C sort, so that the lines of each follow each other",
                shown(source),
                sort_command(name),
            )
        before = key
        yield members
