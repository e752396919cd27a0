"""What the native core does with phrase tables: many lines in one call, outside Python's lock (``native/table*.cpp``).

Each function has its like in Python, which is the reference: `regular_lines`, `numbers`, and the ids of
`producers.base`. Those decide what is right; these give the same, byte for byte.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from moses_rnn.formats.text_phrases import TextPhrases
from moses_rnn.native import native_core

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

PLACES = 6  # of a line: its `Places`, then its end
NUMBER_BYTES = 24  # of a number with its blank at most
OUTSIDE, LINE_END = -1, -2  # what the core answers to places outside the text, and to a word that is a line end

_INTS = np.ctypeslib.ndpointer(np.int64, ndim=1, flags="C")
_ROWS = np.ctypeslib.ndpointer(np.int64, ndim=2, flags="C")
_MASK = np.ctypeslib.ndpointer(np.bool_, ndim=1, flags="C")
_FLOATS = np.ctypeslib.ndpointer(np.float64, ndim=2, flags="C")
_OUT = np.ctypeslib.ndpointer(np.uint8, ndim=1, flags="C")
_SIZE = ctypes.c_int64
_TEXT = (ctypes.c_char_p, _SIZE)
_SIGNATURES = {  # what each function takes and returns
    "count_lines": (_TEXT, _SIZE),
    "line_ends": ((*_TEXT, _INTS, _SIZE), None),
    "find_regular": ((*_TEXT, _INTS, _SIZE, _SIZE, _SIZE, _ROWS, _MASK), ctypes.c_int),
    "add_numbers": ((*_TEXT, _ROWS, _SIZE, _FLOATS, _SIZE, _OUT, _SIZE), _SIZE),
    "new_words": ((ctypes.c_char_p, _INTS, _INTS, _SIZE), ctypes.c_void_p),
    "delete_words": ((ctypes.c_void_p,), None),
    "word_ids": ((ctypes.c_void_p, *_TEXT, _INTS, _INTS, _SIZE, _INTS, _INTS), _SIZE),
}


@functools.cache
def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (arguments, result) in _SIGNATURES.items():
        function = library[f"moses_rnn_{name}"]
        function.argtypes, function.restype = arguments, result
        setattr(library, f"moses_rnn_{name}", function)
    return library


def native_table() -> NativeTable | None:
    """The core's work on tables; None where the core is missing or switched off."""
    core = native_core()
    return None if core is None else NativeTable(_declared(core.functions))


class NativeTable:
    """Calls of the library; the arguments' sizes are checked here, places within the text there."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def line_ends(self, text: bytes) -> Ints:
        """As `regular_lines.line_ends`."""
        lines: int = self._library.moses_rnn_count_lines(text, len(text))
        ends = np.empty(lines, np.int64)
        self._library.moses_rnn_line_ends(text, len(text), ends, lines)
        return ends

    def find_regular(self, text: bytes, ends: Ints, first: int, columns: int) -> tuple[Ints, Mask]:
        """As `regular_lines.find_regular`.

        Raises:
            ValueError: these are no ends of the text's lines.
        """
        places = np.zeros((len(ends), PLACES), np.int64)
        places[:, -1] = ends
        regular = np.zeros(len(ends), np.bool_)
        arguments = text, len(text), ends, len(ends), first, columns, places, regular
        if self._library.moses_rnn_find_regular(*arguments):
            raise ValueError("expected the ends of a text's lines")
        return places, regular

    def add_numbers(self, text: bytes, places: Ints, values: Floats) -> bytes:
        """The text with numbers as ``%.9g`` behind the scores of each line, a blank before each.

        Args:
            text: of whole lines.
            places: lines × PLACES.
            values: lines × columns.

        Raises:
            ValueError: there are not as many values as lines, or the places are not those of the text's lines.
        """
        if places.shape != (len(values), PLACES):
            raise ValueError(f"expected {PLACES} places of {len(values):,} lines, found {places.shape}")
        out = np.empty(len(text) + values.size * NUMBER_BYTES, np.uint8)
        arguments = text, len(text), np.ascontiguousarray(places), len(values), np.ascontiguousarray(values)
        size: int = self._library.moses_rnn_add_numbers(*arguments, values.shape[1], out, len(out))
        if size < 0:
            raise ValueError("expected the places of a text's lines")
        return out[:size].tobytes()

    def word_ids(self, id_of: Mapping[bytes, int]) -> WordIds:
        """Ids by word, to be looked up."""
        return WordIds(self._library, id_of)


class WordIds:
    """The ids of phrases' words; words that are not in the vocabulary have id 0."""

    def __init__(self, library: ctypes.CDLL, id_of: Mapping[bytes, int]) -> None:
        words = TextPhrases.of(list(id_of))
        ids = np.fromiter(id_of.values(), np.int64, len(id_of))
        self._library = library
        self._table = library.moses_rnn_new_words(words.text, words.ends, ids, len(words))
        if not self._table:
            raise MemoryError
        weakref.finalize(self, library.moses_rnn_delete_words, self._table)

    def __call__(self, phrases: TextPhrases) -> tuple[Ints, Ints]:
        """Ids of all words end to end, and how many each phrase has.

        Raises:
            ValueError: a word is a line end, or a place is outside the text.
        """
        begins, ends = np.ascontiguousarray(phrases.begins), np.ascontiguousarray(phrases.ends)
        ids = np.empty(int(np.maximum((ends - begins + 1) >> 1, 0).sum()), np.int64)  # words part by one byte at least
        lengths = np.empty(len(begins), np.int64)
        arguments = phrases.text, len(phrases.text), begins, ends, len(begins), ids, lengths
        count: int = self._library.moses_rnn_word_ids(self._table, *arguments)
        if count == LINE_END:
            raise ValueError("expected phrases without line ends")
        if count == OUTSIDE:
            raise ValueError("expected phrases within their text")
        return ids[:count], lengths
