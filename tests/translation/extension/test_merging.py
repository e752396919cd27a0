"""New lines come to their places, and the old ones stay as they are."""

import itertools
import random

import pytest

from moses_rnn.translation.extension.merging import FewTargets, Merger, windows
from moses_rnn.translation.extension.new_lines import NewLine
from moses_rnn.translation.extension.sources import Wanted
from tests.translation.extension.lines import TABLE, parsed

KNOWN = frozenset(b"a b c d e".split())


def few(fewer_than=2, longest=7, apart=(), known=KNOWN):
    return FewTargets(fewer_than, longest, dict(apart), known)


def line(source, target):
    return b"%b ||| %b ||| 1\n" % (source, target)


def table(pairs):
    return sorted(line(*pair) for pair in pairs)


def make(sources):
    """For each source the targets p and z."""
    return sorted(NewLine(line(s.source, t)[:-2], line(s.source, t)) for s in sources for t in (b"p", b"z"))


def merged(lines, chosen, lacking=(), *, provenance=False, size=4096):
    merger = Merger(chosen, lacking, make, provenance=provenance, size=size)
    return b"".join(text for _, text in merger(parsed(lines))).splitlines(keepends=True)


def test_sources_of_few_targets_are_chosen_with_what_they_have():
    assert list(few()(parsed())) == [Wanted(b"a", frozenset([b"x"]), b"6"), Wanted(b"b", frozenset([b"y"]), b"3")]
    assert [source.source for source in few(3)(parsed())] == [b"a b", b"a", b"b"]
    assert [source.source for source in few(3, longest=1)(parsed())] == [b"a", b"b"]
    assert list(few(0)(parsed())) == []


def test_a_source_of_unknown_words_is_counted():
    chosen = few(3, known=frozenset([b"a"]))
    assert [source.source for source in chosen(parsed())] == [b"a"]
    assert chosen.unknown == 2


def test_equal_targets_count_once_and_those_on_odd_lines_too():
    lines = [line(b"a", b"x"), line(b"a", b"x  "), line(b"b", b"y")]
    assert [source.source for source in few()(parsed(lines))] == [b"a", b"b"]
    (of_b,) = few(3, apart={b"a": {b"u", b"v"}, b"b": {b"w"}})(parsed(lines))
    assert of_b == Wanted(b"b", frozenset([b"w", b"y"]))


def test_odd_lines_and_empty_sources_are_left_alone():
    lines = [b" a ||| x ||| 1\n", b" ||| x ||| 1\n", b"a  b ||| x ||| 1\n"]
    assert list(few(9)(parsed(lines))) == []


PAIRS = [(source, target) for source in (b"a", b"a b", b"b", b"b c", b"c", b"d e") for target in (b"m", b"x", b"y")]
LACKING = [b"a c", b"b b", b"a b c", b"d", b"e e", b"a a", b"c a"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096])
def test_the_new_table_is_sorted_and_complete(size):
    lines = table([*PAIRS[:3], *PAIRS[4:]])  # "a b" has two targets
    new = table([(source, target) for source in [*LACKING, b"a b"] for target in (b"p", b"z")])
    assert merged(lines, few(3), LACKING, size=size) == sorted(lines + new)


def test_any_table_is_extended_alike_whatever_the_windows():
    rng = random.Random(3)
    sources = [b" ".join(words) for n in (1, 2, 3) for words in itertools.product(b"a b | c\xc3".split(), repeat=n)]
    sources = [source for source in sources if b"|" not in source]
    there = rng.sample(sources, len(sources) // 2)
    lacking = [source for source in sources if source not in there]
    lines = table(
        [(source, target) for source in there for target in rng.sample([b"m", b"x", b"y y"], rng.randint(1, 3))]
    )
    whole = merged(lines, few(2, known=frozenset(b"a b c\xc3".split())), lacking)
    assert whole == sorted(whole)
    assert [text for text in whole if not text.endswith((b" p ||| 1\n", b" z ||| 1\n"))] == lines
    for size in (3, 4, 5, 20):
        assert merged(lines, few(2, known=frozenset(b"a b c\xc3".split())), lacking, size=size) == whole


def test_old_lines_get_a_column_and_no_other_byte():
    lines = [TABLE[0], b" a  b |||  x ||| .5  1 \r\n", *TABLE[1:]]
    expected = [b"a b ||| x y ||| 0.5 0.4 0.5 0.3 1 ||| 0-0 1-1 ||| 2 3 1 ||| |||\n"]
    assert merged(lines[:1], few(0), provenance=True) == expected
    assert merged([lines[1]], few(0), provenance=True) == [b" a  b |||  x ||| .5  1 1 \r\n"]
    assert merged([lines[1]], few(0)) == [lines[1]]


@pytest.mark.parametrize("lacking", [[b"a"], [b"c"], [b"a", b"c"]])
def test_a_last_line_without_an_end_gets_one_where_others_follow(lacking):
    new = b"".join(merged([b"b ||| m ||| 1"], few(0), lacking))
    assert sorted(new.splitlines()) == new.splitlines()
    assert len(new.splitlines()) == 1 + 2 * len(lacking)
    assert new.endswith(b"\n") == (b"c" in lacking)
    assert b"".join(merged([b"b ||| m ||| 1"], few(2))) == b"b ||| m ||| 1\nb ||| p ||| 1\nb ||| z ||| 1\n"


def test_windows_are_cut_between_sources_or_where_one_is_too_long():
    lines = parsed(table([(b"a", b"m"), *((b"b", b"%d" % i) for i in range(5)), (b"c", b"m"), (b"d", b"m")]))
    cut = [([one.source for one in window], [one.source for one in whole]) for window, whole in windows(lines, 2)]
    assert cut == [
        ([b"a", b"b", b"b", b"b"], [b"a"]),
        ([b"b", b"b"], []),
        ([b"c", b"d"], [b"c", b"d"]),
    ]


def test_old_lines_read_are_counted():
    merger = Merger(few(0), [b"e"], make, provenance=False, size=2)
    assert [read for read, _ in merger(parsed(table(PAIRS[:5])))] == [2, 5, 5]
