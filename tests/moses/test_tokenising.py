"""Words as Moses wants them: lines stay as many, and what is no text is named."""

import pytest

from moses_rnn.errors import InputError
from moses_rnn.moses.tokenising import tokenise_lines


def test_lines_end_at_line_feeds_only():
    """Else a text and its translation would be of different length."""
    lines = list(tokenise_lines([b"a\rb\n", b"c\x0bd\x0ce\xe2\x80\xa8f\n"], "text", language="en"))
    assert lines == [b"a b\n", b"c d e f\n"]


def test_what_is_not_utf_8_is_named():
    with pytest.raises(InputError, match=r"^text:2: expected UTF-8, found '\\xff'$"):
        list(tokenise_lines([b"fine\n", b"\xff\n"], "text", language="en"))
