"""What stands in the columns of new lines."""

import math

from moses_rnn.translation.extension.columns import (
    INVERSE,
    INVERSE_LEXICAL,
    LEXICAL,
    LOWEST,
    NETWORK,
    choose_fills,
    write_scores,
)
from moses_rnn.translation.extension.survey import ColumnValues

RNN = {"RNN": NETWORK}
BOTH = {"RNN": NETWORK, "RNNInverse": INVERSE}
STANDARD = [INVERSE_LEXICAL, INVERSE_LEXICAL, NETWORK, LEXICAL]


def column(*values):
    """A column with these values."""
    of_table = ColumnValues()
    for value in values:
        of_table.add(value)
    return of_table


def chosen(*values, added=(), networks=RNN):
    return choose_fills([column(*pair) for pair in values], dict(added), networks)


FOUR = [(0.5, 0.125)] * 4


def test_moses_four_columns_are_known_by_their_places():
    assert chosen(*FOUR) == STANDARD
    assert chosen(*FOUR, networks=BOTH) == [INVERSE, *STANDARD[1:]]


def test_further_columns_have_their_constant_or_the_lowest_value():
    assert chosen(*FOUR, (2.718, 2.718), (0.1, 0.3)) == [*STANDARD, 2.718, LOWEST]
    assert chosen((0.1, 0.3), (1, 1), (0.2, 0.4)) == [LOWEST, 1, LOWEST]


def test_added_columns_are_known_by_their_names():
    names = list(enumerate(["RNN", "RNNInverse", "WordPenalty", "Proposed", "Else"], 4))
    assert chosen(*FOUR * 2, (1, 2), added=names) == [*STANDARD, NETWORK, LOWEST, 1.0, math.e, LOWEST]
    assert chosen(*FOUR * 2, (1, 2), added=names, networks=BOTH)[5] == INVERSE
    assert chosen(*FOUR, added=[(3, "RNN")]) == [LOWEST] * 3 + [NETWORK]  # less than Moses's four before


def test_values_that_have_no_logarithm_are_passed_over():
    values = column(0.0, 0.25, -1.0)
    assert (values.least, values.is_constant) == (0.25, True)
    assert math.isclose(column(0.0).least, math.exp(-87))


def test_scores_have_nine_digits_and_are_numbers_that_float32_holds():
    fills = [NETWORK, INVERSE, LEXICAL, INVERSE_LEXICAL, 2.718]
    assert write_scores(fills, math.log(0.75), math.log(0.2), (0.01, 1 / 3)) == b"0.75 0.2 0.333333333 0.01 2.718"
    assert write_scores(fills[:3], -200.0, 1e-4, (0.0, 1e-60)) == b"1.64581143e-38 1 1.64581143e-38"
