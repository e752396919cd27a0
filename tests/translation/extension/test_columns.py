"""What stands in the columns of new lines, by default and as the user says."""

import math

import pytest

from moses_rnn.translation.extension.columns import (
    INVERSE,
    INVERSE_LEXICAL,
    LEXICAL,
    LOWEST,
    MEAN,
    MEANINGS,
    NETWORK,
    ColumnWriter,
    Estimates,
    Names,
    choose_fills,
    parse_fill,
)
from moses_rnn.translation.extension.survey import ColumnValues


def column(*values):
    """A column with these values."""
    of_table = ColumnValues()
    for value in values:
        of_table.add(value)
    return of_table


def signature(*names, first=4):
    return {"added_columns": [{"index": i, "name": name} for i, name in enumerate(names, first)]}


FOUR = [column(0.5, 0.125)] * 4
RNN = Names("RNN")


def chosen(values, names=RNN, given=()):
    return choose_fills("t", values, names, dict(given))


def test_moses_four_columns_are_known_by_their_places():
    assert chosen(FOUR) == [INVERSE_LEXICAL, INVERSE_LEXICAL, NETWORK, LEXICAL]
    assert chosen(FOUR, Names("RNN", "RNNInverse"))[0] == INVERSE


def test_further_columns_have_their_constant_or_the_lowest_value():
    assert chosen([*FOUR, column(2.718, 2.718), column(0.1, 0.3)])[4:] == [2.718, LOWEST]
    assert chosen([column(0.1, 0.3), column(1, 1), column(0.2, 0.4)]) == [LOWEST, 1, LOWEST]


def test_added_columns_are_known_by_the_signature():
    names = signature("RNN", "RNNInverse", "WordPenalty", "Proposed", "Else")
    nine = [column(0.1, 0.2)] * 9
    without = chosen(nine, Names("RNN", None, names))
    assert without == [INVERSE_LEXICAL, INVERSE_LEXICAL, NETWORK, LEXICAL, NETWORK, LOWEST, 1.0, math.e, LOWEST]
    assert chosen(nine, Names("RNN", "RNNInverse", names))[5] == INVERSE


def test_columns_that_were_added_to_others_than_moses_four_do_not_count_as_these():
    assert chosen([column(0.1, 0.2)] * 4, Names("RNN", None, signature("RNN", first=3))) == [LOWEST] * 3 + [NETWORK]


def test_the_user_decides():
    assert chosen(FOUR, given={1: MEAN, 4: 0.5}) == [MEAN, INVERSE_LEXICAL, NETWORK, 0.5]


FILLS = [("1=lowest", (1, LOWEST)), ("12=network", (12, NETWORK)), ("3=0.25", (3, 0.25)), ("3=2.718", (3, 2.718))]


@pytest.mark.parametrize(("text", "expected"), FILLS)
def test_fills_are_read(text, expected):
    assert parse_fill(text) == expected


def test_scores_are_written_with_nine_digits():
    fills = [*MEANINGS, 2.718]
    write = ColumnWriter(fills, [column(0.5, 0.125)] * len(fills), 2)
    scores = write(Estimates(math.log(0.75), math.log(0.2), (0.01, 1 / 3)))
    assert scores == b"0.75 0.2 0.333333333 0.01 0.125 0.25 2.718"


def test_no_score_is_below_what_float32_holds_or_above_1():
    write = ColumnWriter([NETWORK, INVERSE, LEXICAL], [column(1)] * 3, 1)
    assert write(Estimates(-200.0, 1e-4, (0.0, 1e-60))) == b"1.64581143e-38 1 1.64581143e-38"
