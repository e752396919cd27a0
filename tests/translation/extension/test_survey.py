"""The first reading of a table: its shape, its values, its words, its order."""

import pytest

from moses_rnn.errors import FormatError
from moses_rnn.formats.phrase_table import Shape
from moses_rnn.translation.extension.survey import key_of, look_over
from tests.translation.extension.lines import TABLE, parsed


def test_a_table_is_measured():
    survey = look_over("t", parsed(TABLE), {b"a b", b"b a", b"b"})
    assert survey.lacking == {b"b a"}
    assert (survey.lines, survey.fields, survey.shape) == (4, 7, Shape(4))
    assert [(column.least, column.highest) for column in survey.columns] == [(0.5, 1), (0.2, 0.9), (0.2, 0.6), (0.1, 0.5)]  # fmt: skip
    assert survey.links.weights().of_target(b"x", b"a") == 5 / 5
    assert survey.apart == {}


def test_targets_on_odd_lines_are_remembered():
    odd = [b" a  b ||| x  y ||| 1\n", b"a b ||| x ||| 1\n"]
    survey = look_over("t", parsed(odd), {b"a b"})
    assert survey.apart == {b"a b": {b"x y"}}
    assert not survey.lacking


def test_lines_are_sorted_by_what_is_before_the_scores():
    assert key_of(parsed()[0]) == b"a b ||| x y ||| "
    look_over("t", parsed([b"a ||| x ||| 2\n", b"a ||| x ||| 1\n"]), [])


def test_nothing_is_no_table():
    with pytest.raises(FormatError, match="t: expected at least one line, found none"):
        look_over("t", [], [])
