"""What is odd in a phrase table though it can be scored: counted, so that nothing odd passes in silence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError, shown
from moses_rnn.formats.phrase_table import TableLine, words

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FLOAT32_TINY = 2.0**-150  # what is not larger is 0 as a float32
# A number that could be 0 or less as a float32: it has a sign, only zeros before an exponent, or a small exponent.
MAYBE_NOT_POSITIVE = re.compile(rb"(?<![^ \t])(?:-|\+?[0.]++(?![0-9.]))|[eE]-0*[1-9][0-9]|[0.]{40}")

EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
NOT_POSITIVE = "score not above 0"
NOT_UTF8 = "not UTF-8"
NUL = "NUL byte"
CRLF = "CRLF line end"
BOM = "byte order mark"
MEANINGS = {
    EMPTY_SOURCE: "Moses skips such lines",
    EMPTY_TARGET: "scored as the end symbol alone; Moses reads it as a deletion, its on-disk tables refuse it",
    NOT_POSITIVE: "Moses takes its logarithm: 0 becomes its floor of -100, a negative number loses the phrase pair",
    NOT_UTF8: "kept byte for byte; such words are <unk>",
    NUL: "kept; tools written in C end a text there",
    CRLF: "kept; Moses's text loader strips the CR, several of its tools do not",
    BOM: "it is part of the first source word; most likely an editor put it there",
}


@dataclass
class Oddity:
    """How many lines have it, and the first of them."""

    lines: int = 0
    first: int = 0


@dataclass
class Census:
    """Counts oddities; a strict one refuses them."""

    name: str  # of the table, for messages
    strict: bool = False
    oddities: dict[str, Oddity] = field(default_factory=dict)

    def passing(self, lines: Iterable[TableLine]) -> Iterator[TableLine]:
        """The same lines, looked at.

        Raises:
            FormatError: a line is odd, and this census is strict.
        """
        for line in lines:
            if _may_be_odd(line):
                for kind in _oddities(line):
                    self._count(kind, line)
            yield line

    def _count(self, kind: str, line: TableLine) -> None:
        if self.strict:
            raise FormatError(
                self.name,
                line.number,
                f"no {kind} (--strict)",
                shown(line.line),
                f"Without --strict: {MEANINGS[kind]}.",
            )
        oddity = self.oddities.setdefault(kind, Oddity(first=line.number))
        oddity.lines += 1

    def warnings(self) -> Iterator[str]:
        """One line for each kind that was met."""
        for kind, oddity in self.oddities.items():
            lines = "1 line" if oddity.lines == 1 else f"{oddity.lines:,} lines"
            yield f"{self.name}:{oddity.first}: {kind} ({lines}): {MEANINGS[kind]}"


def _may_be_odd(line: TableLine) -> bool:
    """A quick look that lets most lines pass."""
    text = line.line
    return (
        not line.source
        or not line.target
        or not text.isascii()
        or b"\0" in text
        or text.endswith(b"\r\n")
        or MAYBE_NOT_POSITIVE.search(line.scores) is not None
    )


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
    if not _is_utf8(line.line):
        yield NOT_UTF8
    if MAYBE_NOT_POSITIVE.search(line.scores) and any(float(score) <= FLOAT32_TINY for score in words(line.scores)):
        yield NOT_POSITIVE


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
