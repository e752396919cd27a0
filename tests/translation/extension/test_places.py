"""Sources of few targets are found, new lines come to their places, and the old ones stay as they are."""

import heapq
import itertools
import random

import pytest

from moses_rnn.translation.extension.lines import NewLine, merge
from moses_rnn.translation.extension.sources import FewTargets, Wanted
from tests.translation.extension.lines import TABLE, parsed

KNOWN = frozenset(b"a b c d e c\xc3".split())


def few(fewer_than=2, longest=7, apart=(), known=KNOWN):
    return FewTargets(fewer_than, longest, dict(apart), known)


def line(source, target):
    return b"%b ||| %b ||| 1\n" % (source, target)


def merged(lines, chosen, lacking=(), *, marked=False):
    """With lines of the targets p and z for each source."""
    sources = heapq.merge(chosen, map(Wanted, sorted(lacking, key=lambda s: s + b" ||| ")), key=lambda w: w.key)
    new = (NewLine(line(s.source, t)[:-2], line(s.source, t)) for s in sources for t in (b"p", b"z"))
    return b"".join(merge(parsed(lines), new, marked=marked)).splitlines(keepends=True)


def test_sources_of_few_targets_are_chosen_with_what_they_have():
    assert list(few()(parsed())) == [Wanted(b"a", frozenset([b"x"]), b"6"), Wanted(b"b", frozenset([b"y"]), b"3")]
    assert [source.source for source in few(3)(parsed())] == [b"a b", b"a", b"b"]
    assert [source.source for source in few(3, longest=1)(parsed())] == [b"a", b"b"]


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


def test_any_table_is_sorted_and_complete():
    rng = random.Random(3)
    sources = [b" ".join(words) for n in (1, 2, 3) for words in itertools.product(b"a b c\xc3".split(), repeat=n)]
    there = rng.sample(sources, len(sources) // 2)
    lacking = [source for source in sources if source not in there]
    pairs = [(source, target) for source in there for target in rng.sample([b"m", b"x", b"y y"], rng.randint(1, 3))]
    lines = sorted(itertools.starmap(line, pairs))
    wanted = [*lacking, *(s for s in there if [source for source, _ in pairs].count(s) < 2)]
    new = [line(source, target) for source in wanted for target in (b"p", b"z")]
    assert merged(lines, few()(parsed(lines)), lacking) == sorted(lines + new)


def test_old_lines_get_a_column_and_no_other_byte():
    lines = [TABLE[0], b" a  b |||  x ||| .5  1 \r\n"]
    expected = [b"a b ||| x y ||| 0.5 0.4 0.5 0.3 1 ||| 0-0 1-1 ||| 2 3 1 ||| |||\n"]
    assert merged(lines[:1], [], marked=True) == expected
    assert merged([lines[1]], [], marked=True) == [b" a  b |||  x ||| .5  1 1 \r\n"]
    assert merged([lines[1]], []) == [lines[1]]


@pytest.mark.parametrize("lacking", [[b"a"], [b"c"], [b"a", b"c"]])
def test_a_last_line_without_an_end_gets_one_where_others_follow(lacking):
    new = b"".join(merged([b"b ||| m ||| 1"], [], lacking))
    assert sorted(new.splitlines()) == new.splitlines()
    assert len(new.splitlines()) == 1 + 2 * len(lacking)
    assert new.endswith(b"\n") == (b"c" in lacking)
