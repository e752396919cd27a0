"""Which phrases of a text are candidates, and which lines of a table stand with those of their source."""

import pytest

from moses_rnn.translation.extension.sources import is_regular, normalised, phrases_of_text
from tests.translation.extension.lines import parsed

KNOWN = frozenset(b"a b c".split())


def test_phrases_of_a_text_are_of_known_words_and_not_too_long():
    text = phrases_of_text([b"a b  c a\r\n", b"\n", b"b zork\ta b\n", b"other"], 2, KNOWN)
    assert text.phrases == {b"a", b"b", b"c", b"a b", b"b c", b"c a"}
    assert text.unknown == {b"zork", b"other"}
    assert text.words == 5


def test_a_phrase_does_not_reach_over_an_unknown_word():
    assert phrases_of_text([b"a zork b\n"], 7, KNOWN).phrases == {b"a", b"b"}


def test_what_separates_fields_is_no_word():
    assert phrases_of_text([b"a ||| b\n"], 7, KNOWN).phrases == {b"a", b"b"}


LAYOUTS = [
    (b"a b ||| x ||| 1\n", True),
    (b"a b ||| x  y||| 1\n", True),  # the target may be as it likes
    (b"a  b ||| x ||| 1\n", False),
    (b"a\tb ||| x ||| 1\n", False),
    (b" a b ||| x ||| 1\n", False),
    (b"a b||| x ||| 1\n", False),
    (b"a b  ||| x ||| 1\n", False),
]


@pytest.mark.parametrize(("line", "regular"), LAYOUTS)
def test_lines_with_odd_blanks_before_the_target_stand_apart(line, regular):
    (of_table,) = parsed([line])
    assert is_regular(of_table) == regular
    assert normalised(of_table.source) == b"a b"
