"""The first reading of a table: its shape, its values, its words, its order."""

import math

import pytest

from moses_rnn.errors import FormatError, InputError
from moses_rnn.formats.dictionaries import Shape
from moses_rnn.translation.extension.survey import ColumnValues, Survey, key_of
from tests.translation.extension.lines import TABLE, parsed


def survey_of(lines, lacking=()):
    survey = Survey("t", set(lacking))
    survey.read(parsed(lines))
    return survey


def test_a_table_is_measured():
    survey = survey_of(TABLE, {b"a b", b"b a", b"b"})
    assert survey.lacking == {b"b a"}
    assert (survey.lines, survey.fields, survey.shape) == (4, 7, Shape(4))
    assert [(column.least, column.highest) for column in survey.columns] == [(0.5, 1), (0.2, 0.9), (0.2, 0.6), (0.1, 0.5)]  # fmt: skip
    assert survey.columns[0].logs == pytest.approx(math.log(0.5 * 0.5 * 0.8 * 1))
    assert survey.links.weights().of_target(b"x", b"a") == 5 / 5
    assert survey.apart == {}


def test_values_that_have_no_logarithm_are_passed_over():
    column = ColumnValues()
    for value in (0.0, 0.25, -1.0):
        column.add(value)
    assert (column.least, column.is_constant) == (0.25, True)
    empty = ColumnValues()
    empty.add(0.0)
    assert empty.least == pytest.approx(math.exp(-87))
    assert not empty.is_constant


def test_targets_on_odd_lines_are_remembered():
    odd = [b" a  b ||| x  y ||| 1\n", b"a b ||| x ||| 1\n"]
    survey = survey_of(odd, {b"a b"})
    assert survey.apart == {b"a b": {b"x y"}}
    assert not survey.lacking


def test_lines_are_sorted_by_what_is_before_the_scores():
    assert key_of(parsed()[0]) == b"a b ||| x y ||| "
    survey_of([b"a ||| x ||| 2\n", b"a ||| x ||| 1\n"])


def test_nothing_is_no_table():
    with pytest.raises(FormatError, match="t: expected at least one line, found none"):
        survey_of([])
    with pytest.raises(InputError, match="t: expected to be read before"):
        _ = Survey("t", set()).shape
