"""Moses's text phrase table: ``source ||| target ||| scores [||| alignment [||| counts [||| …]]]``.

Only the end of the third field is ever touched. Moses splits at the bare three characters ``|||`` and takes words
between spaces and tabs (LoaderStandard.cpp); so do we. Scores are probabilities: the decoder takes their logarithm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn

from moses_rnn.errors import FormatError, shown

Rejected = Callable[[bytes, FormatError], None]

SEPARATOR = b"|||"
# What Moses's double-conversion reads as a number; no nan, inf, hexadecimal, underscores or other digits.
NUMBER = rb"[-+]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
# A single `|` inside a word would be a factor, so no phrase holds one here. Possessive, so that no line takes
# quadratic time; the blanks behind a phrase are stripped afterwards for the same reason.
LINE = re.compile(
    rb"[ \t]*+([^|]*+)\|\|\|[ \t]*+([^|]*+)\|\|\|[ \t]*+(" + NUMBER + rb"(?:[ \t]++" + NUMBER + rb")*+)"
    rb"(?=[ \t]*+(?:\|\|\||\r?\n|\r?\Z))"  # a \r counts as part of the line's end and nowhere else
)
ONE_NUMBER = re.compile(NUMBER)
BLANKS = b" \t"
# Numbers that float32, in which Moses holds them, may not be able to hold: too many digits or a large exponent.
MAYBE_INFINITE = re.compile(rb"[eE]\+?[0-9]{2}|[0-9]{39}")
FLOAT32_LIMIT = 2.0**128 * (1 - 2.0**-25)  # and from there on infinite


class Places(NamedTuple):
    """Where the fields of a line begin and end, without the blanks around them; bytes from the line's beginning."""

    source: int
    source_end: int
    target: int
    target_end: int
    scores_end: int


class TableLine(NamedTuple):
    """One line of a phrase table and where its fields stand."""

    source: bytes
    target: bytes
    scores: bytes
    places: Places
    line: bytes
    number: int  # of the line in its file, from 1

    def with_scores(self, added: bytes) -> bytes:
        """The line with further scores, parted by blanks, behind its own; every other byte as it came."""
        line, end = self.line, self.places.scores_end
        return b"%b %b%b" % (line[:end], added, line[end:])


def words(phrase: bytes) -> list[bytes]:
    """Words of a phrase: between spaces and tabs only, as Moses splits them (U+00A0 and the like stay inside)."""
    if b"\t" in phrase:
        phrase = phrase.replace(b"\t", b" ")
    split = phrase.split(b" ")
    return [word for word in split if word] if b"" in split else split


def score_words(scores: bytes) -> list[bytes]:
    """The numbers of a third field, unparsed."""
    return words(scores)


def parse_line(line: bytes, name: str, number: int) -> TableLine:
    """Parse one line.

    Args:
        line: as read, with its line end.
        name: of the table, for messages.
        number: of the line, from 1, for messages.

    Raises:
        FormatError: the line is none that this package can score.
    """
    match = LINE.match(line)
    if match is None:
        _explain(line, name, number)
    source, target, scores = match.groups()
    source, target = source.rstrip(BLANKS), target.rstrip(BLANKS)
    if b"]" in source or b"]" in target:
        _refuse_brackets(source, target, name, number)
    if MAYBE_INFINITE.search(scores):
        _refuse_infinite(scores, name, number)
    (source_at, target_at), scores_end = match.regs[1:3], match.end(3)
    places = Places(source_at[0], source_at[0] + len(source), target_at[0], target_at[0] + len(target), scores_end)
    return TableLine(source, target, scores, places, line, number)


class LineParser:
    """Parses the lines of one table: all must have as many scores as the first.

    Args:
        name: of the table, for messages.
        rejected: told of every line that is none, which is then left out; it may raise. None: such a line is an error.
    """

    def __init__(self, name: str, rejected: Rejected | None = None) -> None:
        self.name = name
        self.columns = 0  # scores of each line, once a line was seen
        self._first: TableLine | None = None
        self._rejected = rejected

    def parse(self, line: bytes, number: int) -> TableLine | None:
        """The line, or None if it was rejected.

        Raises:
            FormatError: it is not one of such a table, and nobody is told of it.
        """
        try:
            parsed = parse_line(line, self.name, number)
            self._check_columns(parsed)
        except FormatError as error:
            if self._rejected is None:
                raise
            self._rejected(line, error)
            return None
        return parsed

    def _check_columns(self, line: TableLine) -> None:
        found = len(words(line.scores))
        if self._first is None:
            self._first, self.columns = line, found
        elif found != self.columns:
            raise FormatError(
                self.name,
                line.number,
                f"{self.columns} scores as on line {self._first.number}",
                f"{found}: {shown(line.scores)}",
                "Moses stops at such a line; was the table put together from two?",
            )


def parse_table(lines: Iterable[bytes], name: str, rejected: Rejected | None = None) -> Iterator[TableLine]:
    """Parse a table line by line; see `LineParser`. For many lines at once there is `table_blocks.parse_blocks`.

    Raises:
        FormatError: at the first line that is not one of such a table, if nobody is told of it.
    """
    parser = LineParser(name, rejected)
    for number, line in enumerate(lines, start=1):
        parsed = parser.parse(line, number)
        if parsed is not None:
            yield parsed


def _refuse_brackets(source: bytes, target: bytes, name: str, number: int) -> None:
    for phrase in (source, target):
        if any(len(word) > 1 and word.startswith(b"[") and word.endswith(b"]") for word in words(phrase)):
            raise FormatError(
                name,
                number,
                "words without brackets, as a phrase-based table has them",
                shown(phrase),
                "Hierarchical tables are not scored; in a phrase-based one, brackets are escaped as &#91; and &#93;.",
            )


def _refuse_infinite(scores: bytes, name: str, number: int) -> None:
    for i, score in enumerate(words(scores), start=1):
        if abs(float(score)) >= FLOAT32_LIMIT:
            raise FormatError(name, number, f"a finite number as score {i}", shown(score))


def _explain(line: bytes, name: str, number: int) -> NoReturn:
    """Say what is wrong with a line that is not one of a phrase table."""
    fields = line.split(SEPARATOR)
    if not line.strip():
        raise FormatError(name, number, "a phrase pair", "a blank line", "Moses stops at blank lines.")
    if len(fields) < 3:
        raise FormatError(name, number, "at least 3 fields separated by '|||'", f"{len(fields)}: {shown(line)}")
    for side, phrase in zip(("source", "target"), fields, strict=False):
        if b"|" in phrase:
            raise FormatError(
                name,
                number,
                f"{side} words without factors",
                shown(phrase),
                "Factored tables are not scored; in an unfactored one, '|' is escaped as &#124;.",
            )
    numbers = words(fields[2].rstrip(b"\n"))
    if not b"".join(numbers).strip(b"\r"):
        raise FormatError(name, number, "scores in field 3", "none")
    bad = [(i, text) for i, text in enumerate(numbers, start=1) if not ONE_NUMBER.fullmatch(text)]
    position, text = bad[0] if bad else (len(numbers), fields[2])
    raise FormatError(name, number, f"a number as score {position} of {len(numbers)}", shown(text), _likely(text))


def _likely(score: bytes) -> str:
    """What probably happened to a score that is none."""
    if b"," in score:
        return "Written under a locale with decimal commas? LC_ALL=C makes points of them."
    if score.lstrip(b"+-").lower() in (b"nan", b"inf", b"infinity"):
        return "Moses stops at it or prefers it to everything; the tool that made the table failed at this line."
    return ""
