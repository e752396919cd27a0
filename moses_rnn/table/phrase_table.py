"""Moses's text phrase table: ``source ||| target ||| scores [||| alignment [||| counts [||| …]]]``.

Scores are only appended to the third field. Moses splits at the bare three characters ``|||`` and separates words by
spaces and tabs (LoaderStandard.cpp); so do we. Scores are probabilities: the decoder takes their logarithm.

This module parses single lines: it accepts all that Moses accepts, and says what is wrong with the others. It counts
lines that are odd but can be scored, so that nothing odd passes silently. `table_blocks` reads many lines at once.

A network reads words. In a factored table, it reads one factor of each side. In a hierarchical or syntactic table, it
reads non-terminals as words of their own: ``[X][X]`` becomes ``[X][X]1`` or ``[X][X]2``, numbered in source order, so
that a rule that swaps its gaps differs from a rule that does not; the left-hand side stays as the last word.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn

from moses_rnn.errors import FormatError, shown
from moses_rnn.files.streams import read_lines

Rejected = Callable[[bytes, FormatError], None]  # called with an invalid line and its error

SEPARATOR = b"|||"
LINE_BLANKS = b" \t\r\n"
LOWEST = -100.0  # Moses's own floor for a feature: the log of a score of 0
# Moses holds probabilities as float32: exp(-87) is near the smallest with full precision (exp(-87.34)), and below
# exp(-100) the decoder would see its own floor. Scores are raised to this floor by default.
DEFAULT_FLOOR = -87.0
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
BLANKS = b" \t"
LEFT_HAND_SIDE = re.compile(rb"\[[^\[\] \t|]+\]")
NON_TERMINAL = re.compile(rb"\[[^\[\] \t|]+\]\[[^\[\] \t|]+\]")
ALIGNMENT_POINT = re.compile(rb"([0-9]{1,9})-([0-9]{1,9})")  # source-target, from 0
ESCAPED = "in a phrase-based table, write brackets as &#91; and &#93;."


# --- what phrases are made of ----------------------------------------------------------------------------------------


def words(phrase: bytes) -> list[bytes]:
    """Split a phrase into words at spaces and tabs only, as Moses does (U+00A0 and the like stay inside words)."""
    if b"\t" in phrase:
        phrase = phrase.replace(b"\t", b" ")
    split = phrase.split(b" ")
    return [word for word in split if word] if b"" in split else split


@dataclass(frozen=True)
class PhraseForm:
    """How a network reads the phrases of a table.

    `source_factor` and `target_factor` are the factors used as words, from 0; None: words have no factors.
    `hierarchical`: phrases have non-terminals such as ``[X][X]``, and end with a left-hand side such as ``[X]``.
    """

    source_factor: int | None = None
    target_factor: int | None = None
    hierarchical: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether phrases are read unchanged."""
        return self == PLAIN

    @property
    def is_factored(self) -> bool:
        """Whether words of either side have factors."""
        return self.source_factor is not None or self.target_factor is not None

    @classmethod
    def from_record(cls, record: object) -> PhraseForm:
        """Make a form of its fields, as a model records them; anything else gives the plain form."""
        if not isinstance(record, Mapping):
            return PLAIN
        source, target = (record.get(key) for key in ("source_factor", "target_factor"))
        return cls(
            source if isinstance(source, int) and source >= 0 else None,
            target if isinstance(target, int) and target >= 0 else None,
            record.get("hierarchical") is True,
        )

    def __str__(self) -> str:
        sides = (("source", self.source_factor), ("target", self.target_factor))
        factors = " and ".join(f"{side} factor {factor}" for side, factor in sides if factor is not None)
        if not factors:
            return "hierarchical rules" if self.hierarchical else "plain words"
        return f"{'hierarchical rules' if self.hierarchical else 'words'} with {factors}"

    def read(self, source: bytes, target: bytes, alignment: bytes) -> tuple[bytes, bytes]:
        """Return both phrases, which must have passed `check`, as a network reads them."""
        if self.hierarchical:
            source, target = _numbered(words(source), words(target), alignment)
        return _factor(source, self.source_factor), _factor(target, self.target_factor)

    def _terminals(self, phrase: bytes) -> list[bytes]:
        """Return the words of a phrase without non-terminals and left-hand side, which have no factors."""
        terminals = words(phrase)
        if self.hierarchical:
            terminals = [word for word in terminals[:-1] if not NON_TERMINAL.fullmatch(word)]
        return terminals

    def check(self, source: bytes, target: bytes, alignment: bytes, name: str, number: int | None) -> list[int | None]:
        """Raise FormatError for phrases of another form; return the factors per word of each side, if known."""
        counts: list[int | None] = [None, None]
        if self.is_factored:
            sides = (("source", source, self.source_factor), ("target", target, self.target_factor))
            counts = [
                None if factor is None else _count_factors(side, self._terminals(phrase), factor, name, number)
                for side, phrase, factor in sides
            ]
        if self.hierarchical:
            _check_rule(words(source), words(target), alignment, name, number)
        elif b"]" in source or b"]" in target:
            for phrase in (source, target):
                if any(len(word) > 1 and word[:1] == b"[" and word[-1:] == b"]" for word in words(phrase)):
                    advice = f"In a hierarchical table, both phrases end with a left-hand side such as [X]; {ESCAPED}"
                    raise FormatError(name, number, "words without brackets", shown(phrase), advice)
        return counts


PLAIN = PhraseForm()


def is_rule(source: bytes, target: bytes) -> bool:
    """Whether both phrases end with a left-hand side, as in a hierarchical table."""
    lasts = [phrase.replace(b"\t", b" ").rsplit(b" ", 1)[-1] for phrase in (source, target)]
    return all(LEFT_HAND_SIDE.fullmatch(last) for last in lasts)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def has_gaps(phrase: bytes) -> bool:
    """Whether a rule's phrase has non-terminals."""
    return bool(_gaps(words(phrase)))


def _factor(phrase: bytes, factor: int | None) -> bytes:
    if factor is None:
        return phrase
    return b" ".join([word.split(b"|")[factor] if b"|" in word else word for word in words(phrase)])


def _count_factors(side: str, terminals: list[bytes], factor: int, name: str, number: int | None) -> int | None:
    counts = {word.count(b"|") + 1 for word in terminals}
    if len(counts) > 1:
        raise FormatError(name, number, f"the same number of factors in every {side} word", shown(b" ".join(terminals)))
    if counts and factor >= min(counts):
        found = f"{min(counts)} in {shown(b' '.join(terminals))}"
        raise FormatError(name, number, f"{side} words with a factor {factor} (counted from 0)", found)
    return max(counts, default=None)


def _gaps(phrase: list[bytes]) -> list[int]:
    return [i for i, word in enumerate(phrase[:-1]) if NON_TERMINAL.fullmatch(word)]


def _links(source: list[bytes], target: list[bytes], alignment: bytes) -> Iterator[tuple[int, int]]:
    """Yield the alignment points between non-terminals as source and target positions."""
    gaps = frozenset(_gaps(source)), frozenset(_gaps(target))
    for point in ALIGNMENT_POINT.finditer(alignment):
        s, t = int(point[1]), int(point[2])
        if s in gaps[0] and t in gaps[1]:
            yield s, t


def _check_rule(source: list[bytes], target: list[bytes], alignment: bytes, name: str, number: int | None) -> None:
    for side, phrase in (("source", source), ("target", target)):
        if not phrase or not LEFT_HAND_SIDE.fullmatch(phrase[-1]):
            expected = f"a left-hand side such as [X] at the end of the {side}, as on the first line"
            raise FormatError(
                name, number, expected, shown(b" ".join(phrase)), f"If the table is not hierarchical: {ESCAPED}"
            )
    gaps = _gaps(source), _gaps(target)
    links = sorted(_links(source, target, alignment))
    if [s for s, _ in links] != gaps[0] or sorted(t for _, t in links) != gaps[1]:
        expected = f"an alignment that pairs the {len(gaps[0])} and {len(gaps[1])} non-terminals one to one"
        raise FormatError(name, number, expected, shown(alignment), "Moses also stops at such a line.")


def _numbered(source: list[bytes], target: list[bytes], alignment: bytes) -> tuple[bytes, bytes]:
    for i, (s, t) in enumerate(sorted(_links(source, target, alignment)), start=1):
        source[s] += b"%d" % i
        target[t] += b"%d" % i
    return b" ".join(source), b" ".join(target)


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
        fields = self.line[self.spans.alignment_end :].split(SEPARATOR, 2)
        return parse_counts(fields[1]) if len(fields) > 1 else Counts()

    def with_scores(self, added: bytes) -> bytes:
        """Return the line with further scores, separated by blanks, after its own; all other bytes are unchanged."""
        line, end = self.line, self.spans.scores_end
        return b"%b %b%b" % (line[:end], added, line[end:])


@functools.lru_cache(maxsize=1 << 16)  # most lines share a few values, such as "1 1 1"
def parse_counts(field: bytes) -> Counts:
    """Parse field 5 of a line; return zeros if it is malformed."""
    numbers = words(field.strip())[:3]
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
                    expected = f"{known} factors in {side} words, as on the lines before"  # as Moses expects
                    raise FormatError(self.name, number, expected, f"{found} in {shown(line)}")
            self._factors = [known or found for known, found in zip(self._factors, counts, strict=True)]
        if columns != self.columns:
            raise FormatError(
                self.name,
                number,
                f"{self.columns} scores as on line {self.first.number}",
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


# --- what is odd about a line ----------------------------------------------------------------------------------------


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
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
