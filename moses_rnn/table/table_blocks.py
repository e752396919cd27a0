"""Process many phrase-table lines at once, in the native core (``native/table*.cpp``, without the GIL) or in Python.

Nearly all lines of a table are regular: single blanks around separators, numbers that are plainly finite and positive,
nothing odd. One regular expression defines regular lines. The core finds the same lines and writes the same bytes.
`LineParser` parses all other lines, one by one.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import FormatError
from moses_rnn.files.streams import BYTE_ORDER_MARK
from moses_rnn.native import native_core
from moses_rnn.table.phrase_table import (
    Counts,
    LineParser,
    Rejected,
    Spans,
    TableLine,
    alignment_span,
    cut_counts,
    parse_counts,
)
from moses_rnn.table.phrases import PLAIN, PhraseForm, is_utf8, words

Ints = npt.NDArray[np.int64]
Phrases = Sequence[bytes]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

SCORES_END, LINE_END = Spans._fields.index("scores_end"), len(Spans._fields)  # columns of `TableLines.spans`
COLUMNS = LINE_END + 1
CHUNK_LINES = 8192
CHUNK_BYTES = 1 << 24  # maximum; an ordinary chunk has a tenth of it
TOO_MANY_WORDS = 1 << 16  # in a phrase: a network steps through a whole phrase at once
NUMBER_BYTES = 24  # maximum of a number with its blank
UNKNOWN_ID = 0  # id of words outside a vocabulary
OUTSIDE, LINE_END_FOUND = -1, -2  # the core's errors: spans outside the text, a line end inside a phrase
MARK = b"\n"  # between phrases
NEWLINE = MARK[0]


# --- pairs -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class TextPhrases(Phrases):
    """A sequence of phrases within a text. A phrase becomes a Python object only on access.

    `begins` and `ends` are byte offsets in the text. A slice shares the text.
    """

    text: bytes
    begins: Ints
    ends: Ints

    @classmethod
    def of(cls, phrases: Phrases) -> TextPhrases:
        """Concatenate phrases into a text."""
        if isinstance(phrases, TextPhrases):
            return phrases
        lengths = np.fromiter(map(len, phrases), np.int64, len(phrases))
        ends = np.cumsum(lengths)
        return cls(b"".join(phrases), ends - lengths, ends)

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> TextPhrases: ...

    def __getitem__(self, at: int | slice) -> bytes | TextPhrases:
        if isinstance(at, slice):
            return TextPhrases(self.text, self.begins[at], self.ends[at])
        return self.text[self.begins[at] : self.ends[at]]

    def __iter__(self) -> Iterator[bytes]:
        text = self.text
        return iter([text[begin:end] for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True)])


@dataclass(frozen=True)
class Pairs:
    """Phrase pairs: as many targets as sources, and each pair's word alignment if known."""

    sources: Phrases
    targets: Phrases
    alignments: Phrases | None = None

    def __post_init__(self) -> None:
        for name, phrases in (("targets", self.targets), ("alignments", self.alignments)):
            if phrases is not None and len(phrases) != len(self.sources):
                raise ValueError(f"expected as many {name} as sources, found {len(phrases):,} and {len(self):,}")

    @classmethod
    def of(cls, pairs: Iterable[tuple[bytes, bytes]]) -> Pairs:
        """Make pairs from (source, target) tuples."""
        pairs = list(pairs)
        return cls([source for source, _ in pairs], [target for _, target in pairs])

    def __len__(self) -> int:
        return len(self.sources)

    def sides(self, *, inverse: bool) -> tuple[Phrases, Phrases]:
        """Return what a network reads and what it predicts: sources and targets, or the reverse if `inverse`."""
        return (self.targets, self.sources) if inverse else (self.sources, self.targets)


# --- lines -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableLines:
    """Valid lines, concatenated, and the positions of their fields.

    `spans` has a row for each line: its `Spans` and its end, as byte offsets in `text`. `numbers` are the line numbers
    in the file, from 1. `odd_lines` are the parsed lines that are not regular.
    """

    text: bytes
    spans: Ints
    numbers: Ints
    odd_lines: tuple[TableLine, ...] = ()
    form: PhraseForm = PLAIN

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, lines: slice) -> TableLines:
        """Return consecutive lines."""
        first, last, _ = lines.indices(len(self))
        if last <= first:
            return TableLines(b"", self.spans[:0], self.numbers[:0], form=self.form)
        begin, end = int(self.spans[first - 1, LINE_END]) if first else 0, int(self.spans[last - 1, LINE_END])
        numbers = self.numbers[first:last]
        odd_lines = tuple(line for line in self.odd_lines if numbers[0] <= line.number <= numbers[-1])
        return TableLines(self.text[begin:end], self.spans[first:last] - begin, numbers, odd_lines, self.form)

    @classmethod
    def joined(cls, parts: Sequence[TableLines]) -> TableLines:
        """Concatenate parts."""
        if len(parts) == 1:
            return parts[0]
        begins = np.cumsum([0, *(len(part.text) for part in parts[:-1])])
        return cls(
            b"".join([part.text for part in parts]),
            np.concatenate([part.spans + begin for part, begin in zip(parts, begins, strict=True)]),
            np.concatenate([part.numbers for part in parts]),
            tuple(line for part in parts for line in part.odd_lines),
            parts[0].form,
        )

    def after(self, number: int) -> TableLines:
        """Return the lines after line `number`."""
        return self[int(np.searchsorted(self.numbers, number, side="right")) :]

    def only(self, chosen: Mask) -> TableLines:
        """Return the chosen lines, of which there must be one."""
        if chosen.all():
            return self
        edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).reshape(-1, 2)
        return TableLines.joined([self[first:last] for first, last in edges.tolist()])

    def field(self, begin: str) -> TextPhrases:
        """Return the field of each line that begins at that column of `Spans` and ends at the next."""
        column = Spans._fields.index(begin)
        return TextPhrases(self.text, self.spans[:, column], self.spans[:, column + 1])

    def heads(self) -> TextPhrases:
        """Return the bytes of each line before its target, blanks and separator included."""
        begins = np.append(0, self.spans[:-1, LINE_END])
        return TextPhrases(self.text, begins, self.spans[:, Spans._fields.index("target")])

    def pairs(self) -> Pairs:
        """Return the phrase pairs as a network reads them (see `PhraseForm`), and their alignments."""
        sources, targets, alignments = map(self.field, ("source", "target", "alignment"))
        if self.form == PLAIN:
            return Pairs(sources, targets, alignments)
        read = Pairs.of(map(self.form.read, sources, targets, alignments))
        return replace(read, alignments=alignments)

    def counts(self) -> list[Counts]:
        """Return field 5 of each line."""
        return list(map(parse_counts, map(cut_counts, self.field("alignment_end"))))


def parse_blocks(
    blocks: Iterable[bytes],
    name: str,
    rejected: Rejected | None = None,
    form: PhraseForm = PLAIN,
) -> Iterator[TableLines]:
    """Yield the valid lines of blocks of whole lines; before a bad line raises, yield the lines in front of it.

    See `LineParser`.
    """
    return parse_blocks_with(LineParser(name, rejected, form), blocks)


def parse_blocks_with(parser: LineParser, blocks: Iterable[bytes], lines_before: int = 0) -> Iterator[TableLines]:
    """Yield the same with a given parser; `lines_before` is the number of lines of the table before the blocks."""
    number = lines_before + 1
    for text in filter(None, blocks):
        at = 0
        while parser.first is None and at < len(text):  # the first valid line tells the number of scores
            end = text.find(b"\n", at) + 1 or len(text)
            if parser.parse(text[at:end], number) is None:
                at, number = end, number + 1
        if at < len(text):
            spans = line_spans(text[at:])
            yield from _parse_block(parser, text[at:], spans, number)
            number += len(spans)


def _parse_block(parser: LineParser, text: bytes, spans: Ints, number: int) -> Iterator[TableLines]:
    """Yield the valid lines of a text, up to the first that raises an error."""
    sound = np.zeros(len(spans), np.bool_)
    if parser.form == PLAIN:
        sound = find_regular(text, spans, parser.columns)
    if number == 1 and text.startswith(BYTE_ORDER_MARK):
        sound[:1] = False
    begins = np.append(0, spans[:-1, LINE_END])
    odd_lines: list[TableLine] = []
    failure = None
    for i in np.flatnonzero(~sound).tolist():
        try:
            line = parser.parse(text[begins[i] : spans[i, LINE_END]], number + i)
        except FormatError as error:
            failure, sound[i:] = error, False
            break
        if line is not None:
            spans[i, :LINE_END] = np.array(line.spans) + begins[i]
            sound[i] = True
            odd_lines.append(line)
    lines = TableLines(text, spans, number + np.arange(len(spans)), tuple(odd_lines), parser.form)
    if sound.any():
        yield lines.only(sound)
    if failure is not None:
        raise failure


# --- chunks ---------------------------------------------------------------------------------------------------------


def chunks_between_sources(
    blocks: Iterable[TableLines], size: int = CHUNK_LINES, most_bytes: int = CHUNK_BYTES
) -> Iterator[TableLines]:
    """Yield chunks of at least `size` lines, cut where the source changes, or at twice the size if it does not.

    A chunk of more than `most_bytes` is cut anywhere. The cuts depend only on the lines, not on the blocks.
    """
    held: list[TableLines] = []
    for block in blocks:
        held.append(block)
        if sum(map(len, held)) <= size and sum(len(part.text) for part in held) <= most_bytes:
            continue  # too short to cut
        rest = TableLines.joined(held)
        while cut := _cut(rest, size, most_bytes):
            yield rest[:cut]
            rest = rest[cut:]
        held = [rest]
    if held and (rest := TableLines.joined(held)):
        yield rest


def of_bounded_length(chunks: Iterable[TableLines], name: str) -> Iterator[TableLines]:
    """Yield the same chunks; raise FormatError for a phrase of TOO_MANY_WORDS or more."""
    for chunk in chunks:
        for i in np.flatnonzero(np.diff(chunk.spans[:, LINE_END], prepend=0) > TOO_MANY_WORDS):
            pair = chunk[i : i + 1].pairs()
            longest = max(len(words(pair.sources[0])), len(words(pair.targets[0])))
            if longest >= TOO_MANY_WORDS:
                expected = f"phrases of fewer than {TOO_MANY_WORDS:,} words"
                raise FormatError(name, int(chunk.numbers[i]), expected, f"{longest:,}")
        yield chunk


def _cut(lines: TableLines, size: int, most_bytes: int) -> int:
    """Return the number of lines in the next chunk; 0: more lines are needed to tell."""
    too_many_bytes = 1 + int(np.searchsorted(lines.spans[:, LINE_END], most_bytes, side="right"))
    last = min(2 * size, too_many_bytes)
    sources = lines.field("source")
    for i in range(size, min(last, len(lines))):
        if sources[i] != sources[i - 1]:
            return i
    return last if last < len(lines) else 0


# --- regular lines ---------------------------------------------------------------------------------------------------

ODD = rb"\n\0\r\]"  # bytes that no regular line contains, except for its final newline
NOT_ASCII = rb"\x80-\xff"
# Plainly finite and above 0; Moses accepts more
PLAIN_NUMBER = rb"(?:0\.0{0,5}+[1-9]|[1-9][0-9]{0,14}+(?![0-9])\.?+)[0-9]*+(?:e-[0-3]?+[0-9])?"


def line_spans(text: bytes) -> Ints:
    """Return an array for the spans of lines, lines × COLUMNS; only the last column, the line end, is filled in."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE) + 1
    if not len(ends) or ends[-1] != len(text):
        ends = np.append(ends, len(text))
    spans = np.zeros((len(ends), COLUMNS), np.int64)
    spans[:, LINE_END] = ends
    return spans


def find_regular(text: bytes, spans: Ints, columns: int) -> Mask:
    """Return a mask of the regular lines with `columns` plain scores, and fill in their spans."""
    regular = np.zeros(len(spans), np.bool_)
    library = _library()
    if library is None:
        found = np.fromiter(itertools.chain.from_iterable(_matches(text, columns)), np.int64).reshape(-1, COLUMNS)
        at = np.searchsorted(spans[:, LINE_END], found[:, LINE_END])
        spans[at], regular[at] = found, True
    elif library.moses_rnn_find_regular(text, len(text), spans, len(spans), columns, regular):
        raise ValueError("expected the ends of a text's lines")
    return regular


def _matches(text: bytes, columns: int) -> Iterator[tuple[int, ...]]:
    """Yield the spans and the end of each regular line."""
    odd = ODD if is_utf8(text) else ODD + NOT_ASCII
    for match in _regular_line(columns, odd).finditer(text):
        (begin, end), (_, source_end), (target, target_end), (_, scores_end) = match.regs
        alignment = alignment_span(text, scores_end, end)
        yield begin, source_end - 1, target, target_end - 1, scores_end, *alignment, end


@functools.cache
def _regular_line(columns: int, odd: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a regular line; its groups are source and target, each with a blank, and the scores."""
    phrase = rb"([^| \t%b][^|%b]*+)(?<=[^ \t] )" % (odd, odd)
    scores = b" ".join([PLAIN_NUMBER] * columns)
    return re.compile(rb"^%b\|\|\| %b\|\|\| (%b)(?: \|\|\|[^%b]*+)?\n" % (phrase, phrase, scores, odd), re.MULTILINE)


# --- scores ----------------------------------------------------------------------------------------------------------


def append_scores(text: bytes, spans: Ints, values: Floats) -> bytes:
    """Return lines with `values` (lines × columns) as ``%.9g`` after their own scores; other bytes are unchanged."""
    if spans.shape != (len(values), COLUMNS):
        raise ValueError(f"expected {COLUMNS} spans of {len(values):,} lines, found {spans.shape}")
    library = _library()
    if library is None:
        cuts = spans[:, SCORES_END].tolist()
        kept = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        row = b" %.9g" * values.shape[1]
        added = [row % numbers for numbers in map(tuple, values.tolist())]
        return b"".join(itertools.chain.from_iterable(zip(kept, [*added, b""], strict=True)))
    out = np.empty(len(text) + values.size * NUMBER_BYTES, np.uint8)
    arguments = text, len(text), np.ascontiguousarray(spans), len(values), np.ascontiguousarray(values)
    size: int = library.moses_rnn_add_numbers(*arguments, values.shape[1], out, len(out))
    if size < 0:
        raise ValueError("expected the spans of a text's lines")
    return out[:size].tobytes()


# --- words -----------------------------------------------------------------------------------------------------------


class PhraseIds:
    """Maps the words of many phrases to ids at once; words outside the vocabulary get UNKNOWN_ID."""

    def __init__(self, id_of: Mapping[bytes, int]) -> None:
        self._id_of = id_of
        self._library = _library()
        if self._library is None:
            return
        all_words = TextPhrases.of(list(id_of))
        ids = np.fromiter(id_of.values(), np.int64, len(id_of))
        self._table = self._library.moses_rnn_new_words(all_words.text, all_words.ends, ids, len(ids))
        if not self._table:
            raise MemoryError
        weakref.finalize(self, self._library.moses_rnn_delete_words, self._table)

    def __call__(self, phrases: Phrases) -> tuple[Ints, Ints]:
        """Return all ids, concatenated, and the length of each phrase; raise ValueError for line ends in phrases."""
        if self._library is None:
            return self._in_python(phrases)
        return self._by_core(self._library, TextPhrases.of(phrases))

    def _in_python(self, phrases: Phrases) -> tuple[Ints, Ints]:
        """Look up all phrases as one, with marks between them that no phrase contains."""
        all_words = words((b" " + MARK + b" ").join([*phrases, b""]))
        known = map(self._id_of.get, all_words, itertools.repeat(UNKNOWN_ID))
        ids = np.fromiter(known, np.int64, len(all_words))
        marks = np.flatnonzero([word == MARK for word in all_words])
        if len(marks) != len(phrases):
            raise ValueError("expected phrases without line ends")
        return np.delete(ids, marks), np.diff(marks, prepend=-1) - 1

    def _by_core(self, library: ctypes.CDLL, phrases: TextPhrases) -> tuple[Ints, Ints]:
        begins, ends = np.ascontiguousarray(phrases.begins), np.ascontiguousarray(phrases.ends)
        ids = np.empty(int(np.maximum((ends - begins + 1) >> 1, 0).sum()), np.int64)  # a word and a blank: 2 bytes
        lengths = np.empty(len(begins), np.int64)
        arguments = phrases.text, len(phrases.text), begins, ends, len(begins), ids, lengths
        count: int = library.moses_rnn_word_ids(self._table, *arguments)
        if count == LINE_END_FOUND:
            raise ValueError("expected phrases without line ends")
        if count == OUTSIDE:
            raise ValueError("expected phrases within their text")
        return ids[:count], lengths


# --- the core --------------------------------------------------------------------------------------------------------

_INTS = np.ctypeslib.ndpointer(np.int64, ndim=1, flags="C")
_ROWS = np.ctypeslib.ndpointer(np.int64, ndim=2, flags="C")
_MASK = np.ctypeslib.ndpointer(np.bool_, ndim=1, flags="C")
_FLOATS = np.ctypeslib.ndpointer(np.float64, ndim=2, flags="C")
_OUT = np.ctypeslib.ndpointer(np.uint8, ndim=1, flags="C")
_SIZE = ctypes.c_int64
_TEXT = (ctypes.c_char_p, _SIZE)
_FUNCTIONS = {  # argument and result types
    "find_regular": ((*_TEXT, _ROWS, _SIZE, _SIZE, _MASK), ctypes.c_int),
    "add_numbers": ((*_TEXT, _ROWS, _SIZE, _FLOATS, _SIZE, _OUT, _SIZE), _SIZE),
    "new_words": ((ctypes.c_char_p, _INTS, _INTS, _SIZE), ctypes.c_void_p),
    "delete_words": ((ctypes.c_void_p,), None),
    "word_ids": ((ctypes.c_void_p, *_TEXT, _INTS, _INTS, _SIZE, _INTS, _INTS), _SIZE),
}


@functools.cache
def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (arguments, result) in _FUNCTIONS.items():
        function = library[f"moses_rnn_{name}"]
        function.argtypes, function.restype = arguments, result
        setattr(library, f"moses_rnn_{name}", function)
    return library


def _library() -> ctypes.CDLL | None:
    """Return the core's functions, which check their spans; None if the core is missing or switched off."""
    core = native_core()
    return None if core is None else _declared(core.functions)
