"""Moses's text phrase table: ``source ||| target ||| scores [||| alignment [||| counts [||| …]]]``.

Only the end of the third field is ever touched. Moses splits at the bare three characters ``|||`` and takes words
between spaces and tabs (LoaderStandard.cpp); so do we. Scores are probabilities: the decoder takes their logarithm.

Here one line is read with care: all that Moses reads is, and of the rest it is said what is wrong. Many lines at once
are read by `table_blocks`.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

from moses_rnn.errors import FormatError, shown
from moses_rnn.files.streams import read_lines
from moses_rnn.table.phrase_forms import BLANKS, LEFT_HAND_SIDE, PLAIN, PhraseForm, is_rule, words

Rejected = Callable[[bytes, FormatError], None]  # called with an invalid line and why it is one

SEPARATOR = b"|||"
LINE_BLANKS = b" \t\r\n"
LOWEST = -100.0  # Moses's own floor of a feature, which a score of 0 becomes
# Moses holds probabilities as float32: exp(-87) is near the smallest one of full precision (exp(-87.34)), and below
# exp(-100) the decoder would see its own floor. Scores are raised to this one unless a user wants otherwise.
DEFAULT_FLOOR = -87.0
DIRECT_COLUMN = 2  # p(target | source) in the order in which phrase-extract writes its scores
# What Moses's double-conversion reads as a number; no nan, inf, hexadecimal, underscores or other digits.
NUMBER = re.compile(rb"[-+]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?")
# A single `|` inside a word would be a factor, so no phrase holds one here. Nothing is tried twice, so that no line
# takes quadratic time; the blanks behind a phrase are stripped afterwards for the same reason. Repeated groups are
# atomic, `(?>(…)*)`: possessive ones, `(…)*+`, match wrongly before Python 3.11.5 (python/cpython#106052).
LINE = re.compile(
    rb"[ \t]*+([^|]*+)\|\|\|[ \t]*+([^|]*+)\|\|\|[ \t]*+"
    rb"(" + NUMBER.pattern + rb"(?>(?:[ \t]++" + NUMBER.pattern + rb")*))"
    rb"(?=[ \t]*+(?:\|\|\||\r?\n|\r?\Z))"  # a \r counts as part of the line's end and nowhere else
)
# The same where a `|` parts factors
FACTORED_LINE = re.compile(LINE.pattern.replace(rb"[^|]*+", rb"(?>(?:[^|]|\|(?!\|\|))*)"))
# Numbers that float32, in which Moses holds them, may not be able to hold: too many digits or a large exponent.
MAYBE_INFINITE = re.compile(rb"[eE]\+?[0-9]{2}|[0-9]{39}")
FLOAT32_LIMIT = 2.0**128 * (1 - 2.0**-25)  # and from there on infinite


class Spans(NamedTuple):
    """Where the fields of a line begin and end, without the blanks around them; bytes from the line's beginning."""

    source: int
    source_end: int
    target: int
    target_end: int
    scores_end: int
    alignment: int  # of a line without field 4, both are the scores' end
    alignment_end: int


class Counts(NamedTuple):
    """Field 5 of a line: how often target, source and pair were extracted; 0 for what it does not say."""

    target: float = 0.0
    source: float = 0.0
    pair: float = 0.0


class TableLine(NamedTuple):
    """One line of a phrase table and where its fields stand."""

    source: bytes
    target: bytes
    scores: bytes
    spans: Spans
    line: bytes
    number: int  # of the line in its file, from 1

    @property
    def alignment(self) -> bytes:
        """Field 4, or nothing."""
        return self.line[self.spans.alignment : self.spans.alignment_end]

    @property
    def counts(self) -> Counts:
        """Field 5; a field that is missing or odd says nothing."""
        fields = self.line[self.spans.alignment_end :].split(SEPARATOR, 2)
        return _parse_counts(fields[1]) if len(fields) > 1 else Counts()

    def with_scores(self, added: bytes) -> bytes:
        """The line with further scores, parted by blanks, behind its own; every other byte as it came."""
        line, end = self.line, self.spans.scores_end
        return b"%b %b%b" % (line[:end], added, line[end:])


@functools.lru_cache(maxsize=1 << 16)  # most lines have one of few fields, such as "1 1 1"
def _parse_counts(field: bytes) -> Counts:
    numbers = words(field.strip())[:3]
    if not all(map(NUMBER.fullmatch, numbers)):
        return Counts()
    counts = Counts(*map(float, numbers))
    return counts if all(map(math.isfinite, counts)) else Counts()


@dataclass(frozen=True)
class Shape:
    """What a binariser must know of a table.

    How many scores it has, how many factors source and target words have, and whether lines have alignments.
    """

    columns: int
    factors: tuple[int, int] = (1, 1)
    aligned: bool = True

    @classmethod
    def of(cls, line: TableLine) -> Shape:
        """As a table's first line shows it."""
        factors = [words(phrase)[0].count(b"|") + 1 if phrase else 1 for phrase in (line.source, line.target)]
        return cls(len(words(line.scores)), (factors[0], factors[1]), bool(line.alignment))


def log_of(score: float) -> float:
    """What Moses makes of a score: its natural logarithm, LOWEST at least."""
    return max(math.log(score), LOWEST) if score > 0 else LOWEST


# --- one line --------------------------------------------------------------------------------------------------------


def parse_line(line: bytes, name: str, number: int, form: PhraseForm = PLAIN) -> TableLine:
    """Parse one line.

    Args:
        line: as read, with its line end.
        name: of the table, for messages.
        number: of the line, from 1, for messages.
        form: of its phrases.

    Raises:
        FormatError: this package cannot score the line.
    """
    parsed = _split(line, name, number, form)
    _check_form(parsed, name, form)
    return parsed


def _split(line: bytes, name: str, number: int, form: PhraseForm) -> TableLine:
    match = (FACTORED_LINE if form.is_factored else LINE).match(line)
    if match is None:
        _explain(line, name, number, form)
    source, target, scores = match.groups()
    source, target = source.rstrip(BLANKS), target.rstrip(BLANKS)
    for side, phrase, factor in (("source", source, form.source_factor), ("target", target, form.target_factor)):
        if factor is None and b"|" in phrase:  # the other side's words have factors
            _refuse_factors(side, phrase, name, number)
    _refuse_infinite(scores, name, number)
    (source_at, target_at), scores_end = (match.start(1), match.start(2)), match.end(3)
    alignment = alignment_span(line, scores_end, len(line))
    ends = source_at + len(source), target_at + len(target)
    spans = Spans(source_at, ends[0], target_at, ends[1], scores_end, *alignment)
    return TableLine(source, target, scores, spans, line, number)


def alignment_span(text: bytes, scores_end: int, line_end: int) -> tuple[int, int]:
    """Where field 4 of a line begins and ends, without the blanks around it; without such a field, the scores' end."""
    bars = text.find(SEPARATOR, scores_end, line_end)
    if bars < 0:
        return scores_end, scores_end
    begin, end = bars + len(SEPARATOR), text.find(SEPARATOR, bars + len(SEPARATOR), line_end)
    field = text[begin : line_end if end < 0 else end].rstrip(LINE_BLANKS)
    return begin + len(field) - len(field.lstrip(LINE_BLANKS)), begin + len(field)


def _check_form(line: TableLine, name: str, form: PhraseForm) -> None:
    if not form.is_plain or b"]" in line.source or b"]" in line.target:
        form.check(line.source, line.target, line.alignment, name, line.number)


# --- a table ---------------------------------------------------------------------------------------------------------


class LineParser:
    """Parses the lines of one table: all must have as many scores as the first.

    Whether the table is hierarchical is seen by the first line: then both its phrases end with a left-hand side.

    Args:
        name: of the table, for messages.
        rejected: called with every invalid line, which is then left out; it may raise. None: such a line is an error.
        form: which factors its words have, if any.
    """

    def __init__(self, name: str, rejected: Rejected | None = None, form: PhraseForm = PLAIN) -> None:
        self.name = name
        self.form = form
        self.first: TableLine | None = None  # sound line; None: not yet read
        self.columns = 0  # scores of each line; 0: not yet known
        self._factors: list[int | None] = [None, None]  # of source and target words, once words were seen
        self._rejected = rejected

    def parse(self, line: bytes, number: int) -> TableLine | None:
        """The line, or None if it was rejected.

        Raises:
            FormatError: it is not a line of such a table, and `rejected` is None.
        """
        try:
            return self._parsed(line, number)
        except FormatError as error:
            if self._rejected is None:
                raise
            self._rejected(line, error)
            return None

    def _parsed(self, line: bytes, number: int) -> TableLine:
        parsed = _split(line, self.name, number, self.form)
        columns = len(words(parsed.scores))
        if self.first is None:
            form = replace(self.form, hierarchical=is_rule(parsed.source, parsed.target))
            _check_form(parsed, self.name, form)
            self.first, self.form, self.columns = parsed, form, columns
        else:
            _check_form(parsed, self.name, self.form)
        if self.form.is_factored:
            self._check_factors(parsed)
        if columns != self.columns:
            raise FormatError(
                self.name,
                number,
                f"{self.columns} scores as on line {self.first.number}",
                f"{columns}: {shown(parsed.scores)}",
                "Moses stops at such a line; was the table put together from two?",
            )
        return parsed

    def _check_factors(self, line: TableLine) -> None:
        """Raise FormatError unless words have as many factors as on the lines before, which Moses expects."""
        counts = self.form.factor_counts(line.source, line.target)
        for side, known, found in zip(("source", "target"), self._factors, counts, strict=True):
            if known and found and found != known:
                expected = f"{known} factors in {side} words, as on the lines before"
                raise FormatError(self.name, line.number, expected, f"{found} in {shown(line.line)}")
        self._factors = [known or found for known, found in zip(self._factors, counts, strict=True)]

    def lines(self, lines: Iterable[bytes]) -> Iterator[TableLine]:
        """The sound lines of a table, one by one; raises as `parse`."""
        for number, line in enumerate(lines, start=1):
            parsed = self.parse(line, number)
            if parsed is not None:
                yield parsed


def parse_table(
    lines: Iterable[bytes], name: str, rejected: Rejected | None = None, form: PhraseForm = PLAIN
) -> Iterator[TableLine]:
    """Parse a table line by line; see `LineParser`."""
    return LineParser(name, rejected, form).lines(lines)


def form_of(first: bytes, table: str) -> PhraseForm:
    """The form of a table's words by its first line: the first factor of each side, or plain words."""
    for form in (PLAIN, PhraseForm(0, 0)):
        with contextlib.suppress(FormatError):
            LineParser(table, form=form).parse(first, 1)
            return form
    return PLAIN


def read_first_line(table: str, form: PhraseForm | None = None) -> tuple[TableLine, PhraseForm]:
    """The first line of a table, and the form of its phrases.

    Args:
        table: the file.
        form: which factors its words have, if any; None: as `form_of` finds.

    Raises:
        InputError: it is not a phrase table.
    """
    for first in read_lines(table):
        parser = LineParser(table, form=form_of(first, table) if form is None else form)
        for line in parser.lines([first]):
            return line, parser.form
    raise FormatError(table, None, "at least one line", "none")


# --- what is wrong with a line ---------------------------------------------------------------------------------------


def _refuse_factors(side: str, phrase: bytes, name: str, number: int) -> NoReturn:
    """Say that words have factors that are not expected."""
    advice = (
        f"If these are factors, moses-rnn-train --{side}-factor says which one is the word; if not, '|' is escaped as "
        "&#124; in an unfactored table."
    )
    raise FormatError(name, number, f"{side} words without factors", shown(phrase), advice)


def _refuse_infinite(scores: bytes, name: str, number: int) -> None:
    """Raise FormatError if a score is too large for a float32."""
    if not MAYBE_INFINITE.search(scores):
        return
    for i, score in enumerate(words(scores), start=1):
        if abs(float(score)) >= FLOAT32_LIMIT:
            raise FormatError(name, number, f"a finite number as score {i}", shown(score))


def _explain(line: bytes, name: str, number: int, form: PhraseForm) -> NoReturn:
    """Say what is wrong with a line that is not one of a phrase table."""
    fields = line.split(SEPARATOR)
    if not line.strip():
        raise FormatError(name, number, "a phrase pair", "a blank line", "Moses stops at blank lines.")
    if len(fields) < 3:
        expected = "at least 3 fields separated by '|||'"
        raise FormatError(name, number, expected, f"{len(fields)}: {shown(line)}", _other_file(line))
    if LEFT_HAND_SIDE.fullmatch(fields[0].strip(BLANKS)):
        raise FormatError(
            name,
            number,
            "source ||| target ||| scores",
            shown(line),
            "Rules that begin with their left-hand side are those of Hiero or cdec; train-model.perl --hierarchical "
            "writes Moses's own format, with the left-hand side behind the words.",
        )
    for side, phrase, factor in zip(
        ("source", "target"), fields, (form.source_factor, form.target_factor), strict=False
    ):
        if factor is None and b"|" in phrase:
            _refuse_factors(side, phrase.strip(BLANKS), name, number)
    numbers = words(fields[2].rstrip(b"\n"))
    if not b"".join(numbers).strip(b"\r"):
        raise FormatError(name, number, "scores in field 3", "none")
    bad = [(i, text) for i, text in enumerate(numbers, start=1) if not NUMBER.fullmatch(text)]
    position, text = bad[0] if bad else (len(numbers), fields[2])
    raise FormatError(name, number, f"a number as score {position} of {len(numbers)}", shown(text), _likely(text))


def _other_file(line: bytes) -> str:
    """What a file probably is whose lines are no phrase pairs."""
    if SEPARATOR in line:
        return ""
    if b"\t" in line:
        return "Tab-separated source and target? Give --format tsv to moses-rnn-train or moses-rnn-score."
    if NUMBER.fullmatch(line.strip()):
        return "One number per line is a column of scores. Give the phrase table."
    return (
        "A line of text? `paste SOURCE TARGET` makes pairs of two texts for moses-rnn-train and moses-rnn-score with "
        "--format tsv. moses-rnn nmt reads texts."
    )


def _likely(score: bytes) -> str:
    """What probably happened to a score that is not a number."""
    if b"," in score:
        return "Written under a locale with decimal commas? LC_ALL=C makes points of them."
    if score.lstrip(b"+-").lower() in (b"nan", b"inf", b"infinity"):
        return "Moses stops at it or prefers it to everything; the tool that made the table failed at this line."
    if score.endswith(b"="):
        return "An n-best list? Give it to moses-rnn nbest."
    return ""
