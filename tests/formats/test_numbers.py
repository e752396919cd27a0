import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.formats.numbers import nine_digits, rows_as_text


def as_c_writes(values):
    return [b" %.9g" % value for value in values]


@pytest.mark.parametrize("lowest", [-1.0, -10.0, -90.0, -227.0])
def test_any_probability_is_written_as_c_writes_it(lowest):
    values = np.exp(np.random.default_rng(1).uniform(lowest, 0, 200_000))
    assert nine_digits(values) == as_c_writes(values)


@given(st.lists(st.floats(0, 1.5), max_size=20))
def test_any_number_is(values):
    assert nine_digits(np.array(values)) == as_c_writes(values)


def test_numbers_at_the_edges_are():
    powers = 10.0 ** np.arange(-110, 3)
    few_digits = np.random.default_rng(2).integers(1, 1000, 2000) * 10.0 ** -np.arange(1, 21).repeat(100)
    middles = (np.arange(123_456_789, 123_456_889) + 0.5)[:, None] * 10.0 ** -np.arange(9, 40)
    for values in (powers, np.nextafter(powers, 0), np.nextafter(powers, 1), few_digits, middles.ravel()):
        assert nine_digits(values) == as_c_writes(values)
    odd = np.array([0.0, -0.0, 1.0, 5e-324, np.inf, 0.1, 0.99999999949999, 0.9999999995, 0.99999999951])
    assert nine_digits(odd) == as_c_writes(odd)
    assert nine_digits(np.zeros(0)) == []


def test_numbers_of_a_row_are_parted_by_single_blanks():
    values = np.array([[0.5, 1e-5, 1.0], [0.25, -12.5, 0.1234567891]])
    assert rows_as_text(values) == [b" 0.5 1e-05 1", b" 0.25 -12.5 0.123456789"]
    assert rows_as_text(values[:, :1]) == [b" 0.5", b" 0.25"]
