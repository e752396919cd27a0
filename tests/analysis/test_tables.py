"""Table 2: targets ranked by a column, both rankings side by side."""

import pytest

from moses_rnn.analysis.scored_table import by_source
from moses_rnn.analysis.selection import select, targets_of
from moses_rnn.analysis.tables import Pick, long_sources, picks, side_by_side
from moses_rnn.formats.phrase_table import parse_table
from tests.analysis.scored import line

TABLE = [
    line("a b c", "x", 0.7, 0.2, "5 9 1"),
    line("a b c", "y z", 0.2, 0.6, "5 9 1"),
    line("a b", "x", 0.9, 0.3, "5 99 1"),
    line("a c", "x", 0.9, 0.3, "5 3 1"),
    line("d e f", "x", 0.3, 0.3, "5 120 1"),
    line("d e f", "y", 0.4, 0.1, "5 120 1"),
    line("g h i", "y", 0.4, 0.1),
    line("g h i", "z", 0.4, 0.1),
]
LIMITS = {"min_words": 3, "min_targets": 2, "seed": 1}


def sources(lines=TABLE):
    return by_source(parse_table(lines, "t"), "t")


def test_targets_are_ranked_by_a_column():
    (found,) = targets_of(sources(), [b"a b c", b"nothing"])
    assert found.best(2, 1) == [(b"x", 0.7)]
    assert found.best(-1, 2) == [(b"y z", 0.6), (b"x", 0.2)]
    assert picks(found, -1, 9) == [Pick(b"x", 0.7, b"y z", 0.6), Pick(b"y z", 0.2, b"x", 0.2)]


def test_of_equal_scores_the_first_target_is_best():
    (found,) = targets_of(sources(), [b"g h i"])
    assert picks(found, 4, 1) == [Pick(b"y", 0.4, b"y", 0.1)]


def test_both_rankings_stand_side_by_side():
    (found,) = targets_of(sources(), [b"a b c"])
    assert side_by_side(found, -1, 2) == [
        "a b c   (seen 9 times, 2 targets)",
        "    p(target|source)  RNN",
        "    0.7       x       0.6       y z",
        "    0.2       y z     0.2       x",
    ]
    (found,) = targets_of(sources(), [b"g h i"])
    assert side_by_side(found, -1, 1)[0] == "g h i   (2 targets)"


@pytest.mark.parametrize(
    ("limits", "frequent", "rare"),
    [
        ({}, [b"d e f", b"a b c", b"g h i"], []),
        ({"min_words": 2, "min_targets": 1}, [b"d e f", b"a b", b"a b c"], [b"a c"]),
        ({"min_words": 9}, [], []),
    ],
)
def test_long_frequent_and_long_rare_sources(limits, frequent, rare):
    found = select(sources(), long_sources(3, **(LIMITS | limits)))
    assert [one.source for one in found[0].sources] == frequent
    assert [one.source for one in found[1].sources] == rare
