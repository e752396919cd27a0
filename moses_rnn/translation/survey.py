"""What a table and a text tell an extension: columns, word links, sources with few targets, missing phrases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from moses_rnn.errors import FormatError
from moses_rnn.files.streams import sort_command
from moses_rnn.table.phrase_table import DEFAULT_FLOOR, SEPARATOR, Shape, TableLine
from moses_rnn.table.phrases import normalised, words
from moses_rnn.translation.lexical_weights import LexicalWeights

PARTED = b" " + SEPARATOR + b" "
LEAST = math.exp(DEFAULT_FLOOR)  # lowest value with full precision in float32


def is_regular(line: TableLine) -> bool:
    """Whether a line begins with its source in single blanks, so that all such lines of a source are adjacent."""
    return normalised(line.source) == line.source and line.line.startswith(line.source + PARTED)


def key_of(line: TableLine) -> bytes:
    """Return a line's sort key: its bytes before the scores."""
    return line.line[: line.spans.scores_end - len(line.scores)]


class Survey:
    """Statistics of a table's lines and words; lines must be added in the order of their bytes.

    `shape` and `fields` are the first line's; `lacking` are the given phrases that are no source; `apart` has, by
    source, what is on lines that are not next to the source's other lines.
    """

    def __init__(self, table: str, first: TableLine, phrases: Iterable[bytes]) -> None:
        self._table = table
        self.shape = Shape.of(first)
        self.fields = first.line.count(SEPARATOR) + 1
        self.lacking = set(phrases)
        self.lines = 0
        self.weights = LexicalWeights()
        self.apart: dict[bytes, Apart] = {}
        self._lowest = [math.inf] * self.shape.columns  # lowest positive values
        self._least = [math.inf] * self.shape.columns
        self._highest = [-math.inf] * self.shape.columns
        self._key_before = b""

    def add(self, line: TableLine) -> None:
        """Count a line in; raise FormatError if it belongs before the last one."""
        key = key_of(line)
        if key < self._key_before and not self._key_before.startswith(key):  # equal pairs may differ in blanks there
            expected = "the order of LC_ALL=C sort, so that new lines find their place"
            found = "a line that belongs before the one above it"
            raise FormatError(self._table, line.number, expected, found, sort_command(self._table))
        self._key_before = key
        self.lines += 1
        for column, score in enumerate(map(float, words(line.scores))):
            if 0 < score < self._lowest[column]:
                self._lowest[column] = score
            self._least[column] = min(self._least[column], score)
            self._highest[column] = max(self._highest[column], score)
        self.weights.add(line)
        if not is_regular(line):
            of_source = self.apart.setdefault(normalised(line.source), Apart(set(), line.counts.source))
            of_source.targets.add(normalised(line.target))
        if self.lacking:
            self.lacking.discard(normalised(line.source))

    @property
    def columns(self) -> list[tuple[float, float]]:
        """Lowest positive and highest value of each column; if all its lines have one value, that value twice."""
        every = zip(self._lowest, self._least, self._highest, strict=True)
        return [
            (least if least == highest else lowest if lowest < math.inf else LEAST, highest)
            for lowest, least, highest in every
        ]


class Apart(NamedTuple):
    """Targets of a source on lines with unusual blanks, and its count in field 5."""

    targets: set[bytes]
    source_count: float


@dataclass(frozen=True)
class Wanted:
    """A source phrase to extend, its targets (words in single blanks), and its count.

    `count` is from field 5 of the table; 0 if the table lacks the source.
    """

    source: bytes
    targets: frozenset[bytes] = frozenset()
    count: bytes = b"0"

    @property
    def key(self) -> bytes:
        """The beginning of its lines."""
        return self.source + PARTED


def find_few(lines: Iterable[TableLine], fewer_than: int, apart: Mapping[bytes, Apart]) -> Iterator[Wanted]:
    """Yield the sources with a regular line and fewer than `fewer_than` targets, in table order.

    `apart` is from `Survey`.
    """
    for source, of_source in itertools.groupby(filter(is_regular, lines), lambda line: line.source):
        first = next(of_source)
        targets = {normalised(first.target), *(apart[source].targets if source in apart else ())}
        while len(targets) < fewer_than and (line := next(of_source, None)):
            targets.add(normalised(line.target))
        if source and len(targets) < fewer_than:
            yield Wanted(source, frozenset(targets), b"%.9g" % first.counts.source)


def find_few_apart(lines: Iterable[TableLine], fewer_than: int, apart: Mapping[bytes, Apart]) -> Iterator[Wanted]:
    """Yield the sources without a regular line and with fewer than `fewer_than` targets, in no order."""
    regular = {line.source for line in lines if line.source in apart and is_regular(line)}
    for source, (targets, count) in apart.items():
        if source and source not in regular and len(targets) < fewer_than:
            yield Wanted(source, frozenset(targets), b"%.9g" % count)


def find_phrases(lines: Iterable[bytes], longest: int, known: Collection[bytes]) -> tuple[set[bytes], set[bytes]]:
    """Return all phrases of a text, of up to `longest` known words, and all words of the text."""
    phrases, every = set[bytes](), set[bytes]()
    for line in lines:
        sentence = words(line.rstrip(b"\r\n"))
        every.update(sentence)
        for is_known, group in itertools.groupby(sentence, lambda word: word in known):
            run = list(group) if is_known else []
            spans = ((i, j) for i in range(len(run)) for j in range(i + 1, min(i + longest, len(run)) + 1))
            phrases.update(b" ".join(run[i:j]) for i, j in spans)
    return phrases, every
