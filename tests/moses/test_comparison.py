"""A table's scores beside what a decoder saw: what agrees, what is wrong, what is missing."""

import math

import pytest

from moses_rnn.moses.decoder import compare
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import words

LINES = [b"a ||| b ||| 0.5 0.25\n", b"a ||| c ||| 1 1e-50\n", b"x  y ||| z ||| 1e-38 0.5\n"]


RIGHT = [
    ((b"a", b"b"), (math.log(0.5), math.log(0.25))),
    ((b"a", b"c"), (0.0, -100.0)),
    ((b"x y", b"z"), (math.log(1e-38), math.log(0.5))),
]


def compare_with(seen, lines=LINES):
    table = [((b" ".join(words(line.source)), line.target), words(line.scores)) for line in parse_table(lines, "t")]
    return compare("text", table, seen)


def test_all_as_it_should_be():
    comparison = compare_with(RIGHT)
    assert comparison.good
    assert (comparison.pairs, comparison.values, comparison.values_below, comparison.missing) == (3, 6, 2, [])
    assert comparison.largest_difference < 1e-12
    assert list(comparison.summary()) == [
        f"text     ok: 3 pairs, 6 values, max |Δ| {comparison.largest_difference:.2g}; 2 at or below -87 (max |Δ| there {comparison.largest_difference_below:.2g})"
    ]


WRONG = {
    "another value": (((b"a", b"b"), (math.log(0.5), math.log(0.26))), ["expected -0.693147 -1.38629, seen -0.693147 -1.34707"]),
    "a value less": (((b"a", b"b"), (math.log(0.5),)), ["with other values, first: a ||| b"]),
    "no floor": (((b"a", b"c"), (0.0, -90.0)), ["with other values, first: a ||| c"]),
    "not a number": (((b"a", b"b"), (math.log(0.5), math.nan)), ["with other values"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_in_the_summary(case):
    (pair, values), parts = case
    comparison = compare_with([(pair, values) if known == pair else (known, right) for known, right in RIGHT])
    assert not comparison.good
    text = "\n".join(comparison.summary())
    assert text.startswith("text     WRONG")
    assert all(part in text for part in parts)


def test_what_only_the_decoder_has_is_in_the_summary():
    """It may keep other pairs of the same source off a list."""
    comparison = compare_with([*RIGHT[1:], ((b"a", b"d"), (0.0, 0.0)), ((b"x y", b""), (0.0, 0.0))])
    assert not comparison.good
    assert (comparison.surplus, comparison.missing) == ([(b"a", b"d")], [])
    assert "1 pair only in the decoder's dictionary, first: a ||| d" in "\n".join(comparison.summary())


def test_what_the_decoder_lost_is_in_the_summary():
    comparison = compare_with(RIGHT[1:])
    assert not comparison.good
    assert comparison.missing == [(b"a", b"b")]
    assert "1 pair not found by the decoder, first: a ||| b" in "\n".join(comparison.summary())
    assert not compare_with([]).good
    assert not compare_with([], lines=[]).good


def test_lines_of_one_pair_may_differ():
    lines = [b"a ||| b ||| 0.5\n", b"a ||| b ||| 0.25\n"]
    pair = (b"a", b"b")
    assert compare_with([(pair, (math.log(0.25),)), (pair, (math.log(0.5),))], lines).good
    assert not compare_with([(pair, (math.log(0.3),))], lines).good
