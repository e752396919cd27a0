"""A scored phrase table as arrays of its pairs and sources.

The table must be in the order of ``LC_ALL=C sort``, as train-model.perl leaves it, so that the lines of each source are
together.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import FormatError, InputError, number_of, printable, shown
from moses_rnn.files.streams import (
    Advanced,
    Meter,
    check_unchanged,
    fingerprint,
    read_blocks,
    read_lines,
    regular_file,
    show_nothing,
    sort_command,
)
from moses_rnn.table.phrase_table import DIRECT_COLUMN, SEPARATOR, TableLine, log_of, parse_line, read_first_line
from moses_rnn.table.phrases import LEFT_HAND_SIDE, PhraseForm, normalised, words
from moses_rnn.table.signatures import Signature, own_columns, signature_of
from moses_rnn.table.table_blocks import TableLines, parse_blocks

SEED = 1  # for all random samples in this package
TABLE_COLUMNS = (
    "inverse phrase",
    "inverse lexical",
    "direct phrase",
    "direct lexical",
)  # as phrase-extract has them
LEXICAL_COLUMN = 3  # lex(target | source)
RNN = "RNN"  # the usual name of the score of a network of p(target | source)
OF_TARGETS = ("log p(target | source)", "s(source, target)")  # the meaning of such a score has one of these
NO_LOGARITHMS = "Moses takes probabilities: are these logarithms?"
HOW_TO_SAY = "Or give the position of the network's score with --column."
ALL = "all"  # pairs or sources, whatever their count
CLASSES = ("seen once", "seen 2 to 9 times", "seen 10+ times", "without a count")
FIRST_COUNTS = (2, 10)  # where the second and the third class begin

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def split_by_count(counts: Floats) -> Iterator[tuple[str, Mask]]:
    """Yield ALL and a mask of everything, then the name and mask of each of CLASSES that is not empty."""
    yield ALL, np.ones(len(counts), np.bool_)
    classes = np.where(counts > 0, np.searchsorted(FIRST_COUNTS, counts, side="right"), len(FIRST_COUNTS) + 1)
    for number, name in enumerate(CLASSES):
        if (classes == number).any():
            yield name, classes == number


def length(phrase: bytes) -> int:
    """Count the words of a phrase. The gaps of a rule count, its left-hand side does not."""
    all_words = words(phrase)
    has_left_hand_side = all_words and LEFT_HAND_SIDE.fullmatch(all_words[-1])
    return len(all_words) - 1 if has_left_hand_side else len(all_words)


def sample_key(*phrases: bytes) -> int:
    """Return a pseudo-random number that depends only on the words of phrases. Those with the smallest are drawn."""
    return int.from_bytes(blake2b(b"\n".join(phrases), digest_size=8, key=b"%d" % SEED).digest())


@dataclass(frozen=True)
class ComparedPairs:
    """All pairs of a table in its order, and its sources. Counts are 0 if the table has none."""

    logs: Floats  # natural logarithms of the compared scores, as Moses takes them; pairs × columns
    lexical: Floats  # natural logarithm of lex(target | source), if the table has it
    counts: Floats  # how often each pair was extracted
    target_words: Floats
    source: Ints  # number of each pair's source, from 0
    source_counts: Floats  # how often each source was extracted
    source_words: Floats
    source_keys: npt.NDArray[np.uint64]  # see `sample_key`

    @cached_property
    def begins(self) -> Ints:
        """The first pair of each source."""
        return np.searchsorted(self.source, np.arange(len(self.source_words)))

    @cached_property
    def sizes(self) -> Ints:
        """The number of targets of each source."""
        return np.diff(self.begins, append=len(self.source))

    @cached_property
    def best(self) -> Mask:
        """Whether each pair has the best score of its source; pairs × columns."""
        best: Mask = self.logs == np.maximum.reduceat(self.logs, self.begins)[self.source]
        return best

    def pairs_of(self, source: int) -> range:
        """Return the pairs of a source."""
        return range(self.begins[source], self.begins[source] + self.sizes[source])


@dataclass(frozen=True)
class ScoredTable:
    """A scored table; see `open`."""

    path: str
    scores: int  # on each line
    columns: tuple[int, ...]  # the compared scores, from 0: p(target | source), if known, then the network's
    form: PhraseForm
    stamp: Mapping[str, object]  # identifies the state of the file
    signature: Signature  # the record beside the table

    @classmethod
    def open(cls, table: str, column: int | None = None, name: str = "", *, by_table: bool = True) -> ScoredTable:
        """Read a table's first line and its signature. Raise InputError if the columns are not known.

        `column` is the position of the network's score, from 0 or, if negative, from the end. If it is None, the
        signature decides: the network's score is that of this `name`; if no name is given, the RNN's, otherwise that of
        another network. `by_table` is whether p(target | source) is needed.
        """
        path = regular_file(table)
        stamp = fingerprint(path)
        line, form = read_first_line(path)
        scores = len(words(line.scores))
        signature = _signature(path, scores, needed=column is None)
        if column is None:
            column = _recorded(path, signature, scores, name)
        elif not -scores <= column < scores:
            expected = (
                f"expected --column from {-scores} to {scores - 1}, as this table has {number_of(scores, 'score')}"
            )
            raise InputError(f"{path}: {expected}, found {column}")
        column %= scores
        own = own_columns(column, signature.columns)
        if own >= len(TABLE_COLUMNS):
            return cls(path, scores, (DIRECT_COLUMN, column), form, stamp, signature)
        if by_table:
            raise InputError(
                f"{path}: expected the {len(TABLE_COLUMNS)} scores of phrase-extract before the network's, with "
                f"p(target|source) as number {DIRECT_COLUMN + 1}, found {own}",
                advice="prune --by rnn and explain work without p(target|source).",
            )
        return cls(path, scores, (column,), form, stamp, signature)

    @property
    def column(self) -> int:
        """Index of the network's score, from 0."""
        return self.columns[-1]

    def blocks(self, advanced: Advanced = show_nothing) -> Iterator[TableLines]:
        """Yield all lines. Raise an error at the end if the table has changed."""
        meter = Meter()
        for block in parse_blocks(read_blocks(self.path, meter=meter), self.path, form=self.form):
            advanced(meter.lines_read, meter.share)
            yield block
        check_unchanged(self.path, self.stamp)

    def pairs(self, advanced: Advanced = show_nothing) -> ComparedPairs:
        """Read all pairs. Raise FormatError if scores are logarithms or if sources are not sorted."""
        of_pairs, of_sources, keys, before, head_before = [], array("d"), array("Q"), b"", b""
        for block in self.blocks(advanced):
            sources = array("q")
            counts = block.counts()
            lines = zip(block.numbers.tolist(), block.field("source"), block.heads(), counts, strict=True)
            for number, source, head, (_, count, _) in lines:
                key = normalised(source) + b" " + SEPARATOR  # whole lines are sorted: "a b |||" before "a |||"
                if key != before:
                    if key < before and head < head_before:  # "a b  |||" stands before "a b c |||"
                        expected = (
                            "sources in the order of LC_ALL=C sort, so that the lines of each source stay together"
                        )
                        raise FormatError(self.path, number, expected, shown(source), sort_command(self.path))
                    before = key
                    of_sources.extend((count, length(source)))
                    keys.append(sample_key(normalised(source)))
                head_before = head
                sources.append(len(keys) - 1)
            lengths = [length(target) for target in block.field("target")]
            of_pairs.append((self._logs(block), [count.pair for count in counts], lengths, sources))
        logs, pair_counts, target_words, numbers = (np.concatenate(column) for column in zip(*of_pairs, strict=True))
        self._check_together(np.asarray(keys), numbers)
        source_counts, source_words = np.asarray(of_sources).reshape(-1, 2).T
        of_sources_alone = source_counts, source_words, np.asarray(keys)
        return ComparedPairs(logs[:, :-1], logs[:, -1], pair_counts, target_words, numbers, *of_sources_alone)

    def _check_together(self, keys: npt.NDArray[np.uint64], sources: Ints) -> None:
        """Raise FormatError if the lines of a source are not together, because they differ in blanks."""
        again = np.setdiff1d(np.arange(len(keys)), np.unique(keys, return_index=True)[1])
        if len(again):
            row = int(np.searchsorted(sources, again[0]))
            source, sorting = self.lines([row])[row].source, sort_command(self.path)
            one_blank = "| tr -s '\\t ' ' ' | sed 's/^ //; s/ *|||/ |||/' | LC_ALL=C sort |"
            raise FormatError(
                self.path,
                row + 1,
                "all lines of a source together",
                f"more of {shown(source)}",
                "Blanks part lines when sorted. Use one before ||| and between words, and score that table:\n"
                + sorting.replace("| LC_ALL=C sort |", one_blank),
            )

    def _logs(self, block: TableLines) -> Floats:
        """Return natural logarithms of the scores in `columns` and in LEXICAL_COLUMN; lines × (columns + 1)."""
        scores = b" ".join(field.partition(SEPARATOR)[2] for field in block.field("target_end")).split()
        columns = [scores[column :: self.scores] for column in (*self.columns, min(LEXICAL_COLUMN, self.scores - 1))]
        numbers = [[*map(float, column)] for column in columns]
        for column, texts, values in zip(self.columns, columns, numbers, strict=False):
            for line in (i for i, value in enumerate(values) if value < 0):
                expected = f"a probability as score {column + 1}"
                raise FormatError(self.path, int(block.numbers[line]), expected, shown(texts[line]), NO_LOGARITHMS)
        return np.array([[*map(log_of, values)] for values in numbers]).T

    def lines(self, numbers: Iterable[int]) -> dict[int, TableLine]:
        """Read the lines with these numbers, from 0."""
        wanted = frozenset(numbers)
        lines = enumerate(read_lines(self.path))
        found = {i: parse_line(line, self.path, i + 1, self.form) for i, line in lines if i in wanted}
        check_unchanged(self.path, self.stamp)
        return found


def _signature(path: str, scores: int, *, needed: bool) -> Signature:
    """Return the table's signature. If it is `needed`, it must exist and fit the table."""
    try:
        signature = signature_of(path)
    except InputError as error:
        if not needed:
            return Signature()
        error.add_advice(HOW_TO_SAY)
        raise
    if needed and not signature:
        raise InputError(
            f"{path}: expected a scored table and its signature, {path}.json, found "
            f"{number_of(scores, 'score')} and no signature",
            advice=f"Score it with moses-rnn-score {path}\n{HOW_TO_SAY}",
        )
    return signature


def _recorded(path: str, signature: Signature, scores: int, name: str) -> int:
    """Return the column of the network's score, as the signature says."""
    added = [column for column in signature.columns.values() if column.index < scores]
    chosen = [column.index for column in added if column.name == (name or RNN)]
    if not chosen and not name:
        chosen = [column.index for column in added if any(of in column.meaning for of in OF_TARGETS)]
    if len(chosen) != 1:
        found = ", ".join(f"{printable(column.name)} as score {column.index + 1}" for column in added) or "none"
        raise InputError(
            f"{path}: expected one score named {name or RNN} in its signature, found {found}",
            advice="Choose a score with --column; 0 is the first.",
        )
    return chosen[0]
