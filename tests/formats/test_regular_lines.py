"""Lines that need no parser of their own: which they are, and where their fields stand."""

import numpy as np
import pytest

from moses_rnn.formats import regular_lines
from moses_rnn.formats.native_table import native_table

pytestmark = pytest.mark.usefixtures("either_path")

REGULAR = b"a b ||| c d ||| 0.5 1 ||| 0-0 1-1 ||| 1 1 1 ||| |||\n"
PLAIN = ["0.5", "1", "12.", "12.5", "0.000001", "1e-05", "1.5e-5", "2e-39", "123456789012345", "1.00000000000000000001"]
OTHER = ["0", "0.0", "0.0000001", ".5", "-1", "+1", "1e-3", "1e-40", "1e5", "1E-05", "1234567890123456", "01", "1e-005", "x"]  # fmt: skip
ODD = {
    "two blanks before the source's end": b"a  ||| b ||| 1\n",
    "a tab before it": b"a\t||| b ||| 1\n",
    "a blank before the source": b" a ||| b ||| 1\n",
    "no source": b" ||| b ||| 1\n",
    "no target": b"a ||| ||| 1\n",
    "no blanks": b"a|||b|||1\n",
    "four bars": b"a |||| b ||| 1\n",
    "a bar": b"a|N ||| b ||| 1\n",
    "a bar behind": b"a ||| b ||| 1 |\n",
    "a bar in the target": b"a ||| b|c ||| 1\n",
    "two fields": b"a ||| b\n",
    "no scores": b"a ||| b ||| \n",
    "a blank behind the scores": b"a ||| b ||| 1 \n",
    "a score too many": b"a ||| b ||| 1 1\n",
    "no line end": b"a ||| b ||| 1",
    "CRLF": b"a ||| b ||| 1\r\n",
    "a NUL": b"a\0 ||| b ||| 1\n",
    "a bracket": b"a ||| b ||| 1 ||| ]\n",
    "nothing": b"\n",
}


def lines_of(text, columns, first=0):
    lines = native_table() or regular_lines
    ends = lines.line_ends(text)
    return ends.tolist(), *lines.find_regular(text, ends, first, columns)


def is_regular(line, columns=1):
    """Asked of a line among regular ones, whose places are not disturbed by it."""
    beside = b"e ||| f ||| 0.5" + b" 1" * (columns - 1) + b"\n"
    _, places, regular = lines_of(beside * 2 + line, columns)
    assert regular[:2].all()
    assert places[1].tolist() == (places[0] + len(beside)).tolist()
    assert regular[2] or places[2, :-1].tolist() == [0] * 5
    return bool(regular[2])


def test_places_of_fields():
    ends, places, regular = lines_of(REGULAR + b"le ||| the ||| 1 0.5\n", 2)
    assert ends == [len(REGULAR), len(REGULAR) + 21]
    assert regular.tolist() == [True, True]
    assert places[0].tolist() == [0, 3, 8, 11, 21, ends[0]]
    assert (places[1] - ends[0]).tolist() == [0, 2, 7, 10, 20, 21]


@pytest.mark.parametrize("number", PLAIN)
def test_plain_numbers_are_regular(number):
    assert is_regular(b"a ||| b ||| %b\n" % number.encode())
    assert is_regular(b"a ||| b ||| 1 %b ||| 0-0\n" % number.encode(), 2)


@pytest.mark.parametrize("number", OTHER)
def test_other_numbers_are_not(number):
    assert not is_regular(b"a ||| b ||| %b\n" % number.encode())
    assert not is_regular(b"a ||| b ||| %b 1 ||| 0-0\n" % number.encode(), 2)


@pytest.mark.parametrize("line", ODD.values(), ids=ODD)
def test_odd_lines_are_not_regular(line):
    assert not is_regular(line)


@pytest.mark.parametrize("columns", [1, 2, 16, 17, 40])
def test_as_many_scores_as_there_are_columns(columns):
    line = b"a ||| b |||" + b" 0.5" * columns
    assert is_regular(line + b" ||| 0-0\n", columns)
    assert is_regular(line + b"\n", columns)
    assert not is_regular(line + b" 1\n", columns)
    assert not is_regular(line[:-4] + b"\n", columns)


CHARACTERS = ["é", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
NO_CHARACTERS = [b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98"]  # fmt: skip


def test_characters_beyond_ascii_count_if_all_of_the_block_is_utf8():
    ascii_line, line = b"a ||| b ||| 1\n", b"%b ||| b ||| 1\n"
    for character in CHARACTERS:
        text = ascii_line + line % character.encode()
        assert lines_of(text, 1)[2].tolist() == [True, True]
        for bad in NO_CHARACTERS:
            assert lines_of(text + line % bad, 1)[2].tolist() == [True, False, False]
    for bad in NO_CHARACTERS:
        assert lines_of(ascii_line + b"a ||| b ||| 1 ||| " + bad, 1)[2].tolist() == [True, False]


def test_lines_before_the_first_are_left_alone():
    for first in range(4):
        assert lines_of(REGULAR * 3, 2, first)[2].tolist() == [False] * first + [True] * (3 - first)


def test_line_ends():
    lines = native_table() or regular_lines
    for text in (b"\n", b"a", b"a\n", b"a\nb", b"\n\n\r\n", b"a" * 1000 + b"\n" + b"b" * 600, b"\n" * 1000):
        assert np.diff(lines.line_ends(text), prepend=0).tolist() == [len(line) + 1 for line in text.split(b"\n")[:-1]] + [len(text.split(b"\n")[-1])] * (not text.endswith(b"\n"))  # fmt: skip
