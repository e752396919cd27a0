"""Which lines of a block are regular, and where their fields stand: the reference, by numpy and a regular expression.

Nearly all lines of a table are regular: single blanks, numbers that are plainly finite and above 0, nothing odd.
`native_table` finds the same ones without Python's lock.
"""

from __future__ import annotations

import functools
import re

import numpy as np
import numpy.typing as npt

from moses_rnn.formats.census import is_utf8

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]

NEWLINE, PIPE, BLANK, TAB = b"\n| \t"
FIRST_NOT_ASCII = 0x80
PIPES = 6  # of two separators; a third one may follow
UNWANTED = b"\0\r]"  # on a regular line
# Of a number that is plainly finite and above 0; Moses reads more than that
PLAIN_NUMBER = rb"(?:0\.0{0,5}+[1-9]|[1-9][0-9]{0,14}+(?![0-9])\.?+)[0-9]*+(?>(?:e-[0-3]?+[0-9])?)"
FEW_COLUMNS = 16


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
    return _Regular(text, ends).find(first, columns)


class _Regular:
    """The lines of a block, by where they begin and end."""

    def __init__(self, text: bytes, ends: Ints) -> None:
        self._text = text
        self._octets = np.frombuffer(text, np.uint8)
        self._ends = ends
        self._begins = np.append(0, ends[:-1])

    def find(self, done: int, columns: int) -> tuple[Ints, Mask]:
        pipes = np.flatnonzero(self._octets == PIPE)
        first = np.searchsorted(pipes, self._begins)
        count = np.diff(first, append=len(pipes))
        # Where a line has fewer pipes, those of later lines stand in; they are not looked at in the end.
        padded = np.append(pipes, np.full(PIPES + 1, len(self._text)))
        at = [padded[first + i] for i in range(PIPES + 1)]
        third = np.where(count > PIPES, at[PIPES], self._ends)  # what follows the scores: a separator or the end
        source, source_end = self._begins, at[0] - 1
        target, target_end = at[2] + 2, at[3] - 1
        regular: Mask = (count >= PIPES) & (at[2] - at[0] == 2) & (at[5] - at[3] == 2)
        regular &= self._is_phrase(source, source_end) & self._is_phrase(target, target_end)
        regular &= self._octet(at[2] + 1) == BLANK
        regular[:done] = False
        self._strike_out_odd(regular)
        self._check_scores(regular, columns)
        places = np.stack([source, source_end, target, target_end, third - 1, self._ends], 1)
        places[~regular, :-1] = 0
        return places, regular

    def _octet(self, at: Ints) -> Octets:
        return self._octets[np.clip(at, 0, len(self._octets) - 1)]

    def _is_phrase(self, begin: Ints, end: Ints) -> Mask:
        """Whether between two places there is something, with no blank around it, and one blank behind it."""
        first, last = self._octet(begin), self._octet(end - 1)
        without_blanks = (first != BLANK) & (first != TAB) & (last != BLANK) & (last != TAB)
        phrases: Mask = (begin < end) & without_blanks & (self._octet(end) == BLANK)
        return phrases

    def _strike_out_odd(self, regular: Mask) -> None:
        """Strike out the lines with bytes that no regular line has."""
        for unwanted in UNWANTED:
            if unwanted in self._text:
                regular[self._lines_at(self._octets == unwanted)] = False
        if not is_utf8(self._text):
            regular[self._lines_at(self._octets >= FIRST_NOT_ASCII)] = False

    def _lines_at(self, mask: Mask) -> Ints:
        return np.searchsorted(self._ends, np.flatnonzero(mask), side="right")

    def _check_scores(self, regular: Mask, columns: int) -> None:
        """Strike out the lines whose third field is not as many plain numbers.

        The expression does not see that a phrase ends with its line; the lines it is given have both separators.
        """
        lines = _plain_scores(columns)
        edges = np.flatnonzero(np.diff(regular, prepend=False, append=False)).tolist()
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            line, end = first, int(self._ends[last - 1])
            while line < last:
                match = lines.match(self._text, int(self._begins[line]), end)
                if match is None or match.end() == end:
                    break
                line = int(np.searchsorted(self._begins, match.end()))
                regular[line] = False
                line += 1


@functools.cache
def _plain_scores(columns: int) -> re.Pattern[bytes]:
    """Any number of lines with so many plain scores."""
    further = rb" " + PLAIN_NUMBER
    # Written out where there are few, which is a quarter faster
    scores = PLAIN_NUMBER + (
        further * (columns - 1) if columns <= FEW_COLUMNS else rb"(?:%b){%d}" % (further, columns - 1)
    )
    return re.compile(rb"(?>(?:[^|]*+\|\|\|[^|]*+\|\|\| " + scores + rb"(?>(?: \|\|\|[^\n]*+)?)\n)*)")
