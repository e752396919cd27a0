"""Which lines of a block are regular, and where their fields stand: the reference, by one regular expression.

Nearly all lines of a table are regular: single blanks around separators, numbers that are plainly finite and above 0,
nothing odd. `native_table` finds the same ones without Python's lock.
"""

from __future__ import annotations

import functools
import re
from itertools import chain

import numpy as np
import numpy.typing as npt

from moses_rnn.formats.census import is_utf8

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NEWLINE = b"\n"[0]
ODD = rb"\n\0\r\]"  # on no regular line, but for the newline at its end
NOT_ASCII = rb"\x80-\xff"
# Plainly finite and above 0; Moses reads more than that
PLAIN_NUMBER = rb"(?:0\.0{0,5}+[1-9]|[1-9][0-9]{0,14}+(?![0-9])\.?+)[0-9]*+(?:e-[0-3]?+[0-9])?"


def line_ends(text: bytes) -> Ints:
    """Where each line ends, behind its newline; the last one may have none."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE) + 1
    return ends if len(ends) and ends[-1] == len(text) else np.append(ends, len(text))


def find_regular(text: bytes, ends: Ints, first: int, columns: int) -> tuple[Ints, Mask]:
    """The places of regular lines, and which ones these are.

    Args:
        text: of a block.
        ends: of its lines, from `line_ends`.
        first: line to be looked at; those before it count as irregular.
        columns: scores of each regular line.

    Returns:
        For each line a row of its `Places` and its end, of which irregular lines have the end alone; and the mask.
    """
    places = np.zeros((len(ends), 6), np.int64)
    places[:, -1] = ends
    regular = np.zeros(len(ends), np.bool_)
    odd = ODD if is_utf8(text) else ODD + NOT_ASCII
    matches = _regular_line(columns, odd).finditer(text, int(ends[first - 1]) if first else 0)
    found = [(match.end(1), match.end(2), match.end(3), match.end()) for match in matches]
    source, target, scores, line = np.fromiter(chain.from_iterable(found), np.int64, 4 * len(found)).reshape(-1, 4).T
    at = np.searchsorted(ends, line)
    regular[at] = True
    begins = np.append(0, ends)[at]
    places[at, :5] = np.stack([begins, source - 1, source + len("||| "), target - 1, scores], 1)
    return places, regular


@functools.cache
def _regular_line(columns: int, odd: bytes) -> re.Pattern[bytes]:
    """A line with so many plain scores; its groups are the source and the target with a blank each, and the scores."""
    phrase = rb"([^| \t%b][^|%b]*+)(?<=[^ \t] )" % (odd, odd)
    scores = b" ".join([PLAIN_NUMBER] * columns)
    return re.compile(rb"^%b\|\|\| %b\|\|\| (%b)(?: \|\|\|[^%b]*+)?\n" % (phrase, phrase, scores, odd), re.MULTILINE)
