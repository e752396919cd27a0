from moses_rnn.analysis.tables import frequent_sources, side_by_side, targets_of
from moses_rnn.formats.phrase_table import parse_table

TABLE = [
    b"a b c ||| x ||| .1 .1 .7 .1 .2 ||| 0-0 ||| 5 9 1 ||| |||\n",
    b"a b c ||| y z ||| .1 .1 .2 .1 .6 ||| 0-0 ||| 5 9 1 ||| |||\n",
    b"a b ||| x ||| .1 .1 .9 .1 .3 ||| 0-0 ||| 5 99 1 ||| |||\n",
    b"d e f ||| x ||| .1 .1 .3 .1 .3 ||| 0-0 ||| 5 20 1 ||| |||\n",
    b"d e f ||| y ||| .1 .1 .4 .1 .1 ||| 0-0 ||| 5 20 1 ||| |||\n",
    b"g h i ||| y ||| .1 .1 .4 .1 .1\n",
    b"g h i ||| z ||| .1 .1 .4 .1 .1\n",
]


def table():
    return parse_table(TABLE, "t")


def test_frequent_sources_are_long_enough_and_have_targets_to_choose_from():
    found = frequent_sources(table(), 2, min_words=3, min_targets=2)
    assert [(f.source, f.frequency) for f in found] == [(b"d e f", 20), (b"a b c", 9)]
    assert [f.source for f in frequent_sources(table(), 9, min_words=2, min_targets=1)] == [
        b"a b",
        b"d e f",
        b"a b c",
        b"g h i",
    ]


def test_targets_are_ranked_by_a_column():
    (found,) = targets_of(table(), [b"a b c", b"nothing"])
    assert found.best(2, 1) == [(b"x", 0.7)]
    assert found.best(-1, 2) == [(b"y z", 0.6), (b"x", 0.2)]


def test_both_rankings_stand_side_by_side():
    (found,) = targets_of(table(), [b"a b c"])
    assert side_by_side(found, -1, 2) == [
        "a b c   (seen 9 times, 2 targets)",
        "    p(target|source)  RNN",
        "    0.7       x       0.6       y z",
        "    0.2       y z     0.2       x",
    ]
