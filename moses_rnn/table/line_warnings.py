"""Lines of a phrase table that are odd but can be scored: counted, so that nothing odd passes silently."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError, number_of, shown
from moses_rnn.files.streams import BYTE_ORDER_MARK
from moses_rnn.table.phrase_table import SEPARATOR, TableLine
from moses_rnn.table.phrases import ALIGNMENT_POINT, is_utf8, words

FLOAT32_TINY = 2.0**-150  # up to here, a float32 is 0
# White space at which Moses does not split words, and other control characters, as UTF-8
OTHER_BLANKS = re.compile(
    rb"[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8b\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
)
LONG_SCORE = re.compile(rb"[^ \t]{24}")
MOST_FIELDS = 7

EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
NOT_POSITIVE = "score of 0 or below"
NOT_UTF8 = "not UTF-8"
NUL = "NUL byte"
CRLF = "CRLF line end"
BOM = "byte order mark"
BLANK_IN_WORD = "odd white space or control character in a word"
SCORE_BLANKS = "more than one blank between scores"
LONG_NUMBER = "score of 24 or more characters"
BAD_ALIGNMENT = "invalid alignment field"
ALIGNMENT_RANGE = "alignment point outside the phrases"
MANY_FIELDS = "more than 7 fields"
MEANINGS = {
    EMPTY_SOURCE: "Moses skips such lines",
    EMPTY_TARGET: "scored as the end symbol alone; Moses reads it as a deletion, but its on-disk tables refuse it",
    NOT_POSITIVE: (
        "Moses takes the logarithm: 0 becomes Moses's floor of -100, and a pair with a negative score is lost"
    ),
    NOT_UTF8: "kept byte for byte; such words are <unk>",
    NUL: "kept; tools written in C cut a text there",
    CRLF: "kept; Moses's text loader strips the CR, but several of its tools do not",
    BOM: "it is part of the first source word; most likely an editor put it there",
    BLANK_IN_WORD: "Moses splits words only at blanks and tabs, but other tools often split here too",
    SCORE_BLANKS: "CreateProbingPT and filter-model-given-input.pl split at single blanks",
    LONG_NUMBER: "sigtest-filter copies scores into 24 bytes",
    BAD_ALIGNMENT: "Moses stops at it",
    ALIGNMENT_RANGE: "nothing in Moses checks it",
    MANY_FIELDS: "unless it is inside a property, '|||' there starts fields that Moses does not know",
}


@dataclass
class LineWarnings:
    """Counts odd lines; `strict` makes them errors, `thorough` adds checks that scoring does not need."""

    name: str  # of the table, for messages
    strict: bool = False
    thorough: bool = False
    counts: dict[str, list[int]] = field(default_factory=dict)  # by kind: the number of lines and the first one

    def passing(self, lines: Iterable[TableLine]) -> Iterator[TableLine]:
        """Yield the lines after checking each; raises as `look` does."""
        for line in lines:
            self.look([line])
            yield line

    def look(self, lines: Iterable[TableLine]) -> None:
        """Count the oddities of lines; if `strict`, raise FormatError."""
        for line in lines:
            for kind in itertools.chain(_oddities(line), _finer_oddities(line) if self.thorough else ()):
                if self.strict:
                    advice = f"Without --strict, this is only a warning: {MEANINGS[kind]}."
                    raise FormatError(self.name, line.number, f"no {kind} (--strict)", shown(line.line), advice)
                self.counts.setdefault(kind, [0, line.number])[0] += 1

    def messages(self) -> Iterator[str]:
        """Yield one message for each kind found."""
        for kind, (count, first) in self.counts.items():
            lines = number_of(count, "line")
            yield f"{self.name}:{first}: {kind} ({lines}): {MEANINGS[kind]}"


def _oddities(line: TableLine) -> Iterator[str]:
    if line.number == 1 and line.line.startswith(BYTE_ORDER_MARK):
        yield BOM
    if not line.source:
        yield EMPTY_SOURCE
    if not line.target:
        yield EMPTY_TARGET
    if b"\0" in line.line:
        yield NUL
    if line.line.endswith(b"\r\n"):
        yield CRLF
    if not is_utf8(line.line):
        yield NOT_UTF8
    if min(map(float, words(line.scores))) <= FLOAT32_TINY:
        yield NOT_POSITIVE


def _finer_oddities(line: TableLine) -> Iterator[str]:
    if OTHER_BLANKS.search(line.source) or OTHER_BLANKS.search(line.target):
        yield BLANK_IN_WORD
    if b"  " in line.scores or b"\t" in line.scores:
        yield SCORE_BLANKS
    if LONG_SCORE.search(line.scores):
        yield LONG_NUMBER
    fields = line.line[line.spans.scores_end :].split(SEPARATOR)
    if len(fields) > MOST_FIELDS - 2:
        yield MANY_FIELDS
    if len(fields) > 1:
        yield from _alignment_oddities(words(fields[1].rstrip(b"\r\n")), line)


def _alignment_oddities(points: list[bytes], line: TableLine) -> Iterator[str]:
    matches = [ALIGNMENT_POINT.fullmatch(point) for point in points]
    if not all(matches):
        yield BAD_ALIGNMENT
        return
    lengths = len(words(line.source)), len(words(line.target))
    if any(int(s) >= lengths[0] or int(t) >= lengths[1] for s, t in (point.groups() for point in matches if point)):
        yield ALIGNMENT_RANGE
