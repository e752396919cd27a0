"""Table 2: which sources are chosen, by frequency or by fair draws, and their targets ranked by a column."""

import pytest

from moses_rnn.analysis.targets import find_sources, long_sources
from tests.analysis.scored import line, scored

TABLE = [
    *[line("a b c", t, 0.5, 0.5, "5 9 1") for t in "xy"],
    line("a b", "x", 0.9, 0.3, "5 99 1"),
    *[line("d e f", t, 0.5, 0.5, "5 20 1") for t in "xy"],
    *[line("g h i", t, 0.5, 0.5) for t in "yz"],  # without counts
    *[line("j k l", t, 0.5, 0.5, "1 1 1") for t in "xyz"],
]


@pytest.fixture
def table(tmp_path):
    def read(lines):
        opened = scored(tmp_path / "t", lines)
        return opened, opened.pairs()

    return read


@pytest.fixture
def chosen(table):
    """The frequent ones, and those of the rare ones that are drawn."""

    def choose(count=9, lines=TABLE, min_words=1, min_targets=1):
        groups = long_sources(*table(lines), count, min_words=min_words, min_targets=min_targets)
        return [[one.source for one in group.sources] for group in groups]

    return choose


@pytest.mark.parametrize(
    ("min_words", "min_targets", "expected"),
    [
        (3, 2, [b"d e f", b"a b c", b"j k l", b"g h i"]),
        (2, 1, [b"a b", b"d e f", b"a b c", b"j k l", b"g h i"]),
        (4, 1, []),
    ],
)
def test_limits_and_order_of_frequency(chosen, min_words, min_targets, expected):
    limits = {"min_words": min_words, "min_targets": min_targets}
    rare = [b"j k l"] * (b"j k l" in expected)
    assert chosen(**limits) == [expected, rare]
    assert chosen(2, **limits) == [expected[:2], rare]


def test_a_table_without_counts_has_no_most_frequent_sources(table):
    (group, _) = long_sources(*table([line("a b", "x", 0.5, 0.5)]), 9, min_words=1, min_targets=1)
    assert group.title == "Long source phrases"
    assert group.note.endswith("1 of 1, the first; the table has no counts")


def test_of_equally_frequent_ones_the_first_is_taken(chosen):
    lines = [line(s, "x", 1, 1, "1 7 1") for s in ("a", "b", "c")]
    assert chosen(2, lines=lines)[0] == [b"a", b"b"]


def test_draws_depend_on_the_source_alone(chosen):
    lines = [line(f"w{i:03}", "x", 1, 1, "1 1 1") for i in range(300)]
    once = chosen(5, lines)[1]
    assert once != sorted(once)
    without = [one for one in lines if once[0] not in one]
    assert chosen(4, without)[1] == once[1:]


def test_odd_bytes_and_rules_count_as_words(chosen):
    odd = [b"a\xc2\xa0b \xff ||| x ||| .1 .1 .5 .1 .5\n"]
    rules = [b"a [X][X] [X] ||| [X][X] b [X] ||| .1 .1 .5 .1 .5 ||| 1-0 0-1 ||| 1 1 1\n"]
    for lines, source in ((odd, b"a\xc2\xa0b \xff"), (rules, b"a [X][X] [X]")):
        assert chosen(lines=lines, min_words=2)[0] == [source]
        assert chosen(lines=lines, min_words=3)[0] == []


TARGETS = [
    line("a b c", "x", 0.7, 0.2, "5 9 1"),
    line("a b c", "y z", 0.2, 0.6, "5 9 1"),
    line("g h i", "y", 0.4, 0.1),
    line("g h i", "z", 0.4, 0.1),
]


def test_targets_are_ranked_by_a_column(table):
    first, second = find_sources(*table(TARGETS), [b"g  h i", b"a b c", b"nothing"])
    assert (first.source, first.frequency, second.frequency) == (b"a b c", 9, 0)
    assert first.picks(-1, 9) == [(b"x", 0.7, b"y z", 0.6), (b"y z", 0.2, b"x", 0.2)]
    assert second.picks(4, 1) == [(b"y", 0.4, b"y", 0.1)]  # of equal scores the first is best
