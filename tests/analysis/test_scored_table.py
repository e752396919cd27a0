"""Scored tables as the analyses read them, and those that are refused."""

import numpy as np
import pytest

from moses_rnn.analysis.scored_table import (
    by_source,
    length,
    split_by_count,
)
from moses_rnn.errors import FormatError, InputError
from moses_rnn.table.phrase_table import LOWEST, Counts, parse_table
from tests.analysis.scored import line, scored


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (b" ||| 0-0 ||| 5 9 1 ||| |||", Counts(5, 9, 1)),
        (b" ||| ||| 5 9 1.5 ||| |||", Counts(5, 9, 1.5)),
        (b" ||| 0-0 ||| 5 9", Counts(5, 9, 0)),
        (b" ||| 0-0 ||| 5 9 1 7", Counts(5, 9, 1)),
        (b" ||| 0-0 |||", Counts()),
        (b" ||| 0-0", Counts()),
        (b"", Counts()),
        (b" ||| 0-0 ||| 5 nan 1", Counts()),
        (b" ||| 0-0 ||| five 9 1", Counts()),
    ],
)
def test_counts(fields, expected):
    (parsed,) = parse_table([b"a ||| b ||| .1 .2" + fields + b"\n"], "t")
    assert parsed.counts == expected


def test_classes_of_counts():
    counts = np.array([-1, 0, 0.5, 1.9, 2, 9.9, 10, 1e9])
    found = {name: counts[own].tolist() for name, own in split_by_count(counts)}
    assert found == {
        "all": counts.tolist(),
        "seen once": [0.5, 1.9],
        "seen 2–9 times": [2, 9.9],
        "seen 10 times or more": [10, 1e9],
        "without a count": [-1, 0],
    }
    assert [name for name, _ in split_by_count(counts[-1:])] == ["all", "seen 10 times or more"]


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [(b"a b", 2), (b"a\xc2\xa0b", 1), (b"a \xff b", 3), (b"a [X][X] [X]", 2), (b"[X]", 0), (b"", 0)],
)
def test_length_of_phrases(phrase, expected):
    assert length(phrase) == expected


def test_sources_that_do_not_follow_each_other_are_refused():
    def sources(*names):
        return [
            [one.target for one in group]
            for group in by_source(parse_table([line(s, t, 1, 1) for s, t in names], "t"), "t")
        ]

    # whole lines are sorted: "a b |||" stands before "a |||"
    assert sources(("a b", "x"), ("a", "y"), ("a", "x"), ("é", "x")) == [[b"x"], [b"y", b"x"], [b"x"]]
    with pytest.raises(FormatError) as error:
        sources(("a b", "x"), ("a", "y"), ("a b", "z"))
    assert str(error.value) == (
        "t:3: expected sources in the order of LC_ALL=C sort, so that the lines of each follow each other, found 'a b'\n"
        "  cat t | LC_ALL=C sort | gzip -1 > sorted.gz"
    )


def test_log_probabilities(tmp_path):
    table = scored(tmp_path / "t", [line("a", "x", 1, 0), line("b", "x", 0.5, "1e-60"), line("c", "x", 0.5, "-2.5")])
    lines = table.lines()
    first, second = next(lines), next(lines)
    assert table.log_probs(first) == (0, LOWEST)
    assert table.log_probs(second) == (pytest.approx(-0.6931471805599453), LOWEST)  # Moses reads no less
    with pytest.raises(
        FormatError,
        match="t:3: expected a probability as score 5, found '-2.5'\n  Moses cannot use a table of logarithms",
    ):
        next(lines)


def test_a_table_that_changes_is_noticed(tmp_path):
    table = scored(tmp_path / "t", [line("a", "x", 1, 1)])
    assert len(list(table.lines())) == 1
    (tmp_path / "t").write_bytes(line("a", "x", 1, 1) * 2)
    with pytest.raises(InputError, match="t: was changed while it was read"):
        list(table.lines())


def test_pairs_are_arrays(tmp_path):
    lines = [line("a b", "x y", 1, 0.5, "9 7 3"), line("a b", "y", 0.5, 0.5, "9 7 4"), line("c", "x", 0.25, 0)]
    pairs = scored(tmp_path / "t", lines).pairs()
    np.testing.assert_allclose(pairs.logs, [[0, np.log(0.5)], [np.log(0.5)] * 2, [np.log(0.25), LOWEST]])
    assert (pairs.counts.tolist(), pairs.target_words.tolist()) == ([3, 4, 0], [2, 1, 1])
    assert (pairs.source.tolist(), pairs.source_counts.tolist(), pairs.source_words.tolist()) == (
        [0, 0, 1],
        [7, 0],
        [2, 1],
    )
