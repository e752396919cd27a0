"""What a table and a text tell an extension: columns, word links, missing phrases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable

from moses_rnn.errors import FormatError
from moses_rnn.files.streams import sort_command
from moses_rnn.table.phrase_table import DEFAULT_FLOOR, SEPARATOR, Shape, TableLine
from moses_rnn.table.phrases import normalised, words
from moses_rnn.translation.lexical_weights import LexicalWeights

PARTED = b" " + SEPARATOR + b" "
LEAST = math.exp(DEFAULT_FLOOR)  # lowest value with full precision in float32


def key_of(line: TableLine) -> bytes:
    """Return a line's sort key: its bytes before the scores."""
    return line.line[: line.spans.scores_end - len(line.scores)]


class Survey:
    """Statistics of a table's lines and words; lines must be added in the order of their bytes.

    `shape` and `fields` are the first line's; `lacking` are the given phrases that are no source.
    """

    def __init__(self, table: str, first: TableLine, phrases: Iterable[bytes]) -> None:
        self._table = table
        self.shape = Shape.of(first)
        self.fields = first.line.count(SEPARATOR) + 1
        self.lacking = set(phrases)
        self.lines = 0
        self.weights = LexicalWeights()
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
