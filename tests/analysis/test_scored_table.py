"""Scored tables as the analyses read them, and those that are refused."""

import subprocess

import numpy as np
import pytest

from moses_rnn.analysis.scored_table import length, split_by_count
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
def test_counts(tmp_path, fields, expected):
    lines = [b"a ||| b ||| .1 .2 .3 .4 .5" + fields + b"\n", b"b|||b|||.1 .2 .3\t.4 .5" + fields]
    assert [parsed.counts for parsed in parse_table(lines, "t")] == [expected] * 2
    pairs = scored(tmp_path / "t", lines).pairs()
    assert pairs.counts.tolist() == [expected.pair] * 2
    assert pairs.source_counts.tolist() == [expected.source] * 2


def test_classes_of_counts():
    counts = np.array([-1, 0, 0.5, 1.9, 2, 9.9, 10, 1e9])
    found = {name: counts[own].tolist() for name, own in split_by_count(counts)}
    assert found == {
        "all": counts.tolist(),
        "seen once": [0.5, 1.9],
        "seen 2 to 9 times": [2, 9.9],
        "seen 10+ times": [10, 1e9],
        "without a count": [-1, 0],
    }
    assert [name for name, _ in split_by_count(counts[-1:])] == ["all", "seen 10+ times"]


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [(b"a b", 2), (b"a\xc2\xa0b", 1), (b"a \xff b", 3), (b"a [X][X] [X]", 2), (b"[X]", 0), (b"", 0)],
)
def test_length_of_phrases(phrase, expected):
    assert length(phrase) == expected


def test_sources_that_do_not_follow_each_other_are_refused(tmp_path):
    def sources(*names):
        return scored(tmp_path / "t", [line(s, t, 1, 1) for s, t in names]).pairs()

    # whole lines are sorted: "a b |||" stands before "a |||"
    pairs = sources(("a b", "x"), ("a", "y"), ("a", "x"), ("é", "x"))
    assert (pairs.source.tolist(), pairs.sizes.tolist(), [*pairs.pairs_of(1)]) == ([0, 1, 1, 2], [1, 2, 1], [1, 2])
    with pytest.raises(FormatError) as error:
        sources(("a b", "x"), ("a", "y"), ("a b", "z"))
    name = tmp_path / "t"
    assert str(error.value) == (
        f"{name}:3: expected sources in the order of LC_ALL=C sort, so that the lines of each source stay together, "
        f"found 'a b'\n  cat {name} | LC_ALL=C sort | gzip -1 > sorted.gz"
    )


def test_blanks_do_not_part_the_lines_of_a_source_unless_sorting_does(tmp_path):
    sources = b" a b", b"a b ", b"a b", b"a b\t", b"a  b"
    together = [one.replace(b"s", source, 1) for source in sources for one in [line("s", "x", 1, 1)]]
    assert scored(tmp_path / "t", together).pairs().sizes.tolist() == [5]
    alone = [line("a b ", "x", 1, 1), line("a b c", "x", 1, 1), line("a c", "x", 1, 1)]
    assert alone == sorted(alone)
    assert scored(tmp_path / "t", alone).pairs().sizes.tolist() == [1, 1, 1]
    apart = sorted([*alone, line("a b", "y", 1, 1)])
    with pytest.raises(FormatError, match="t:3: expected all lines of a source together, found more of 'a b'") as error:
        scored(tmp_path / "t", apart).pairs()
    command = str(error.value).splitlines()[-1].partition("| gzip")[0]
    mended = subprocess.run(command, shell=True, check=True, capture_output=True).stdout
    assert scored(tmp_path / "u", [mended]).pairs().sizes.tolist() == [1, 2, 1]


def test_a_logarithm_is_no_probability(tmp_path):
    lines = [line("a", "x", 1, 0), line("b", "x", 0.5, "-2.5"), line("c", "x", 0.5, "-3")]
    with pytest.raises(
        FormatError, match="t:2: expected a probability as score 5, found '-2.5'\n  Moses takes probabilities"
    ):
        scored(tmp_path / "t", lines).pairs()


def test_a_table_that_changes_is_noticed(tmp_path):
    table = scored(tmp_path / "t", [line("a", "x", 1, 1)])
    assert table.lines([0])[0].target == b"x"
    (tmp_path / "t").write_bytes(line("a", "x", 1, 1) * 2)
    for read in (table.pairs, lambda: table.lines([0])):
        with pytest.raises(InputError, match="t: was changed while it was read"):
            read()


def test_pairs_are_arrays(tmp_path):
    lines = [line("a b", "x y", 1, 0.5, "9 7 3"), line("a b", "y", 0.5, 0.5, "9 7 4"), line("c", "x", 0.25, "1e-60")]
    pairs = scored(tmp_path / "t", lines).pairs()
    np.testing.assert_allclose(pairs.logs, [[0, np.log(0.5)], [np.log(0.5)] * 2, [np.log(0.25), LOWEST]])
    np.testing.assert_allclose(pairs.lexical, np.log([0.1] * 3))
    assert (pairs.counts.tolist(), pairs.target_words.tolist()) == ([3, 4, 0], [2, 1, 1])
    assert (pairs.source_counts.tolist(), pairs.source_words.tolist()) == ([7, 0], [2, 1])
    assert pairs.best.tolist() == [[True, True], [False, True], [True, True]]
