"""What is odd in a phrase table though it can be scored: counted, so that nothing odd passes in silence."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError, shown
from moses_rnn.table.phrase_forms import ALIGNMENT_POINT, is_utf8, words
from moses_rnn.table.phrase_table import SEPARATOR, TableLine

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FLOAT32_TINY = 2.0**-150  # what is not larger is 0 as a float32
# A number that could be 0 or less as a float32: it has a sign, only zeros before an exponent, or a small exponent.
MAYBE_NOT_POSITIVE = re.compile(rb"(?<![^ \t])(?:-|\+?[0.]++(?![0-9.]))|[eE]-0*[1-9][0-9]|[0.]{30}")

# White space that Moses does not part words at, and other control characters, as UTF-8
OTHER_BLANKS = re.compile(
    rb"[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8b\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
)
LONG_SCORE = re.compile(rb"[^ \t]{24}")
MOST_FIELDS = 7

EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
NOT_POSITIVE = "score not above 0"
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
    EMPTY_TARGET: "scored as the end symbol alone; Moses reads it as a deletion, its on-disk tables refuse it",
    NOT_POSITIVE: "Moses takes its logarithm: 0 becomes its floor of -100, a negative number loses the phrase pair",
    NOT_UTF8: "kept byte for byte; such words are <unk>",
    NUL: "kept; tools written in C end a text there",
    CRLF: "kept; Moses's text loader strips the CR, several of its tools do not",
    BOM: "it is part of the first source word; most likely an editor put it there",
    BLANK_IN_WORD: "Moses parts words at blanks and tabs only, other tools often part them there too",
    SCORE_BLANKS: "CreateProbingPT and filter-model-given-input.pl split at single blanks",
    LONG_NUMBER: "sigtest-filter copies scores into 24 bytes",
    BAD_ALIGNMENT: "Moses stops at it",
    ALIGNMENT_RANGE: "nothing in Moses checks it",
    MANY_FIELDS: "unless it stands in a property, '|||' there parts fields that Moses does not know",
}


@dataclass
class LineWarnings:
    """Counts what is odd; a strict one refuses it, a thorough one also looks where scoring does not."""

    name: str  # of the table, for messages
    strict: bool = False
    thorough: bool = False
    counts: dict[str, list[int]] = field(default_factory=dict)  # of each kind: how many lines, and the first of them

    def passing(self, lines: Iterable[TableLine]) -> Iterator[TableLine]:
        """The same lines, looked at; raises as `look`."""
        for line in lines:
            self.look([line])
            yield line

    def look(self, lines: Iterable[TableLine]) -> None:
        """Look at lines.

        Raises:
            FormatError: a line is odd, and this is strict.
        """
        for line in lines:
            for kind in itertools.chain(_oddities(line), _finer_oddities(line) if self.thorough else ()):
                if self.strict:
                    advice = f"Without --strict: {MEANINGS[kind]}."
                    raise FormatError(self.name, line.number, f"no {kind} (--strict)", shown(line.line), advice)
                self.counts.setdefault(kind, [0, line.number])[0] += 1

    def messages(self) -> Iterator[str]:
        """One line for each kind that was met."""
        for kind, (count, first) in self.counts.items():
            lines = "1 line" if count == 1 else f"{count:,} lines"
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
    if MAYBE_NOT_POSITIVE.search(line.scores) and any(float(score) <= FLOAT32_TINY for score in words(line.scores)):
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
