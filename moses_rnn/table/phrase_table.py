"""Moses's text phrase table: ``source ||| target ||| scores [||| alignment [||| counts [||| …]]]``.

Scores are only appended to the third field. Moses splits at the bare three characters ``|||`` and separates words by
spaces and tabs (LoaderStandard.cpp); so do we. Scores are probabilities: the decoder takes their logarithm.

This module parses single lines: it accepts all that Moses accepts, and says what is wrong with the others. `phrases`
says what phrases are made of, `line_warnings` counts odd lines, and `table_blocks` reads many lines at once.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

from moses_rnn.errors import FormatError, number_of, shown
from moses_rnn.files.streams import read_lines
from moses_rnn.table.phrases import BLANKS, LEFT_HAND_SIDE, PLAIN, PhraseForm, is_rule, words

Rejected = Callable[[bytes, FormatError], None]  # called with an invalid line and its error

SEPARATOR = b"|||"
LINE_BLANKS = b" \t\r\n"
LOWEST = -100.0  # Moses's own floor for a feature: the log of a score of 0
# Moses holds probabilities as float32: exp(-87) is near the smallest with full precision (exp(-87.34)), and below
# exp(-100) the decoder would see its own floor. Scores are raised to this floor by default.
DEFAULT_FLOOR = -87.0
CEILING = -DEFAULT_FLOOR  # highest log score whose exponential is written: Moses reads it as float32
DIRECT_COLUMN = 2  # p(target | source) in the order in which phrase-extract writes its scores
# What Moses's double-conversion reads as a number; no nan, inf, hexadecimal, underscores or other digits.
NUMBER = re.compile(rb"[-+]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?")
# A single `|` inside a word would part factors, so no phrase here contains one. The pattern never backtracks, so that
# no line takes quadratic time; trailing blanks of a phrase are stripped later for the same reason. Repeated groups are
# atomic, `(?>(…)*)`: possessive ones, `(…)*+`, match wrongly before Python 3.11.5 (python/cpython#106052).
LINE = re.compile(
    rb"[ \t]*+([^|]*+)\|\|\|[ \t]*+([^|]*+)\|\|\|[ \t]*+"
    rb"(" + NUMBER.pattern + rb"(?>(?:[ \t]++" + NUMBER.pattern + rb")*))"
    rb"(?=[ \t]*+(?:\|\|\||\r?\n|\r?\Z))"  # \r is allowed only in the line end
)
# The same with factors
FACTORED_LINE = re.compile(LINE.pattern.replace(rb"[^|]*+", rb"(?>(?:[^|]|\|(?!\|\|))*)"))
MAYBE_INFINITE = re.compile(rb"[eE]\+?[0-9]{2}|[0-9]{39}")  # too many digits or a large exponent
FLOAT32_LIMIT = 2.0**128 * (1 - 2.0**-25)  # from here on, a float32, which Moses uses, is infinite


# --- fields of a line ------------------------------------------------------------------------------------------------


class Spans(NamedTuple):
    """Byte offsets of a line's fields from its beginning, without surrounding blanks."""

    source: int
    source_end: int
    target: int
    target_end: int
    scores_end: int
    alignment: int  # without field 4, both are the end of the scores
    alignment_end: int


class Counts(NamedTuple):
    """Field 5 of a line: how often target, source and pair were extracted; 0 if missing."""

    target: float = 0.0
    source: float = 0.0
    pair: float = 0.0


class TableLine(NamedTuple):
    """One line of a phrase table and the positions of its fields."""

    source: bytes
    target: bytes
    scores: bytes
    spans: Spans
    line: bytes
    number: int  # of the line in its file, from 1

    @property
    def alignment(self) -> bytes:
        """Field 4, or empty."""
        return self.line[self.spans.alignment : self.spans.alignment_end]

    @property
    def counts(self) -> Counts:
        """Field 5; zeros if it is missing or malformed."""
        return parse_counts(self.counts_field)

    @property
    def is_proposed(self) -> bool:
        """Whether field 5 says that the pair was never extracted, as in lines that an extension adds."""
        numbers = words(self.counts_field)[:3]
        return len(numbers) == 3 and all(map(NUMBER.fullmatch, numbers)) and float(numbers[2]) == 0

    @property
    def counts_field(self) -> bytes:
        """Field 5, or empty."""
        return cut_counts(self.line[self.spans.alignment_end :])


def cut_counts(rest: bytes) -> bytes:
    """Return field 5 of a line, without surrounding blanks, given what follows field 4."""
    return rest.partition(SEPARATOR)[2].partition(SEPARATOR)[0].strip()


@functools.lru_cache(maxsize=1 << 16)  # most lines share a few values, such as "1 1 1"
def parse_counts(field: bytes) -> Counts:
    """Parse field 5 of a line; return zeros if it is malformed."""
    numbers = words(field)[:3]
    if not all(map(NUMBER.fullmatch, numbers)):
        return Counts()
    counts = Counts(*map(float, numbers))
    return counts if all(map(math.isfinite, counts)) else Counts()


@dataclass(frozen=True)
class Shape:
    """The properties of a table that a binariser needs.

    These are the number of scores, the factors per source and target word, and whether lines have alignments.
    """

    columns: int
    factors: tuple[int, int] = (1, 1)
    aligned: bool = True

    @classmethod
    def of(cls, line: TableLine) -> Shape:
        """Derive the shape from a table's first line."""
        factors = [  # non-terminals have none
            max((word.count(b"|") + 1 for word in words(phrase)), default=1) for phrase in (line.source, line.target)
        ]
        return cls(len(words(line.scores)), (factors[0], factors[1]), bool(line.alignment))


def log_of(score: float) -> float:
    """Return a score's natural logarithm, at least LOWEST, as Moses does."""
    return max(math.log(score), LOWEST) if score > 0 else LOWEST


# --- one line --------------------------------------------------------------------------------------------------------


def parse_line(line: bytes, name: str, number: int, form: PhraseForm = PLAIN) -> TableLine:
    """Parse one line, including its line end; raise FormatError if this package cannot score it."""
    parsed = _split(line, name, number, form)
    form.check(parsed.source, parsed.target, parsed.alignment, name, number)
    return parsed


def _split(line: bytes, name: str, number: int, form: PhraseForm) -> TableLine:
    match = (FACTORED_LINE if form.is_factored else LINE).match(line)
    if match is None:
        _explain(line, name, number, form)
    source, target, scores = match.groups()
    source, target = source.rstrip(BLANKS), target.rstrip(BLANKS)
    for side, phrase, factor in (("source", source, form.source_factor), ("target", target, form.target_factor)):
        if factor is None and b"|" in phrase:  # only the other side has factors
            _refuse_factors(side, phrase, name, number)
    if MAYBE_INFINITE.search(scores):
        for i, score in enumerate(words(scores), start=1):
            if abs(float(score)) >= FLOAT32_LIMIT:
                raise FormatError(name, number, f"a finite number as score {i}", shown(score))
    (source_at, target_at), scores_end = (match.start(1), match.start(2)), match.end(3)
    alignment = alignment_span(line, scores_end, len(line))
    ends = source_at + len(source), target_at + len(target)
    spans = Spans(source_at, ends[0], target_at, ends[1], scores_end, *alignment)
    return TableLine(source, target, scores, spans, line, number)


def alignment_span(text: bytes, scores_end: int, line_end: int) -> tuple[int, int]:
    """Return begin and end of field 4, without surrounding blanks; without a field 4, twice the end of the scores."""
    bars = text.find(SEPARATOR, scores_end, line_end)
    if bars < 0:
        return scores_end, scores_end
    begin, end = bars + len(SEPARATOR), text.find(SEPARATOR, bars + len(SEPARATOR), line_end)
    field = text[begin : line_end if end < 0 else end].rstrip(LINE_BLANKS)
    return begin + len(field) - len(field.lstrip(LINE_BLANKS)), begin + len(field)


# --- a table ---------------------------------------------------------------------------------------------------------


class LineParser:
    """Parses the lines of one table, which must all have the same number of scores.

    The table is hierarchical if both phrases of the first line end with a left-hand side. `rejected` is called with
    every invalid line, which is then skipped; it may raise. If it is None, an invalid line is an error.
    """

    def __init__(self, name: str, rejected: Rejected | None = None, form: PhraseForm = PLAIN) -> None:
        self.name = name
        self.form = form
        self.first: TableLine | None = None  # first valid line; None: not yet read
        self.columns = 0  # scores per line; 0: not yet known
        self._factors: list[int | None] = [None, None]  # per source and target word, once known
        self._rejected = rejected

    def parse(self, line: bytes, number: int) -> TableLine | None:
        """Parse a line; return None if it was rejected."""
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
        form = self.form
        if self.first is None:
            form = replace(form, hierarchical=is_rule(parsed.source, parsed.target))
        counts = form.check(parsed.source, parsed.target, parsed.alignment, self.name, number)
        if self.first is None:
            self.first, self.form, self.columns = parsed, form, columns
        if form.is_factored:
            for side, known, found in zip(("source", "target"), self._factors, counts, strict=True):
                if known and found and found != known:
                    expected = (
                        f"{number_of(known, 'factor')} in {side} words, as on the lines before"  # as Moses expects
                    )
                    raise FormatError(self.name, number, expected, f"{found} in {shown(line)}")
            self._factors = [known or found for known, found in zip(self._factors, counts, strict=True)]
        if columns != self.columns:
            raise FormatError(
                self.name,
                number,
                f"{number_of(self.columns, 'score')} as on line {self.first.number}",
                f"{columns}: {shown(parsed.scores)}",
                "Moses stops at such a line. Was the table joined from two?",
            )
        return parsed


def parse_table(
    lines: Iterable[bytes], name: str, rejected: Rejected | None = None, form: PhraseForm = PLAIN
) -> Iterator[TableLine]:
    """Yield the valid lines of a table; see `LineParser`."""
    return filter(None, map(LineParser(name, rejected, form).parse, lines, itertools.count(1)))


def form_of(first: bytes, table: str) -> PhraseForm:
    """Return the form of a table's words, judged by its first line: factor 0 of each side, or plain words."""
    for form in (PLAIN, PhraseForm(0, 0)):
        with contextlib.suppress(FormatError):
            LineParser(table, form=form).parse(first, 1)
            return form
    return PLAIN


def read_first_line(table: str, form: PhraseForm | None = None) -> tuple[TableLine, PhraseForm]:
    """Return the first line of a table and the form of its phrases; without a `form`, use `form_of`."""
    for first in read_lines(table):
        parser = LineParser(table, form=form_of(first, table) if form is None else form)
        if line := parser.parse(first, 1):
            return line, parser.form
    raise FormatError(table, None, "at least one line", "none")


# --- what is wrong with a line ---------------------------------------------------------------------------------------


def _refuse_factors(side: str, phrase: bytes, name: str, number: int) -> NoReturn:
    advice = (
        f"If these are factors, choose the one to use with moses-rnn-train --{side}-factor. If not, write '|' as "
        "&#124; in an unfactored table."
    )
    raise FormatError(name, number, f"{side} words without factors", shown(phrase), advice)


def _explain(line: bytes, name: str, number: int, form: PhraseForm) -> NoReturn:
    """Raise FormatError that says what is wrong with an invalid line."""
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
            "Rules that begin with their left-hand side come from Hiero or cdec. Moses's own format, with the "
            "left-hand side after the words, comes from train-model.perl --hierarchical.",
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
    """Guess what kind of file the line comes from; return advice."""
    if SEPARATOR in line:
        return ""
    if b"\t" in line:
        return "Tab-separated source and target? Give --format tsv to moses-rnn-train or moses-rnn-score."
    if NUMBER.fullmatch(line.strip()):
        return "One number per line looks like a column of scores. Give the phrase table."
    return (
        "A line of text? `paste SOURCE TARGET` makes pairs of two texts for moses-rnn-train and moses-rnn-score with "
        "--format tsv. moses-rnn nmt reads texts."
    )


def _likely(score: bytes) -> str:
    """Guess what happened to a score that is not a number; return advice."""
    if b"," in score:
        return "Written under a locale with decimal commas? LC_ALL=C writes points."
    if score.lstrip(b"+-").lower() in (b"nan", b"inf", b"infinity"):
        return "Moses stops at it or prefers it to everything; the tool that made the table failed on this line."
    if score.endswith(b"="):
        return "An n-best list? Give it to moses-rnn nbest."
    return ""
