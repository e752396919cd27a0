"""Pruned tables keep the best pairs, the exact share and every byte of a line."""

import itertools
import math
import random

import pytest

from moses_rnn.analysis.pruning import prune_table, warnings
from tests.analysis.scored import line, scored

CRITERIA = ("rnn", "direct", "both")


def pruned(tmp_path, lines, **options):
    """Targets of the lines that stay, and what the function says."""
    table = scored(tmp_path / "t", lines)
    kept = []
    found = prune_table(table, kept.append, **options)
    stayed = b"".join(kept).splitlines(keepends=True)
    assert stayed == [one for one in lines if one in stayed]  # as they were, in their order
    assert found.lines == (len(lines), len(stayed))
    assert found.bytes == (len(b"".join(lines)), len(b"".join(kept)))
    return [one.split(b" ||| ")[1].decode() for one in stayed], found


#        target, p(target|source), RNN
PAIRS = [("p", 0.5, 0.01), ("q", 0.3, 0.5), ("r", 0.15, 0.2), ("s", 0.04, 0.3), ("t", 0.01, 0.001)]
ONE_SOURCE = [line("a", *pair) for pair in PAIRS]


@pytest.mark.parametrize(
    ("by", "keep", "expected"),
    [
        ("direct", 0.4, "pq"),
        ("rnn", 0.6, "qrs"),
        ("both", 0.2, "q"),  # quantiles .7 and .9
        ("both", 0.4, "pq"),  # p: .9 and .3; r: .5 and .5; s: .3 and .7
        ("both", 0.8, "pqrs"),
        ("both", 1, "pqrst"),
    ],
)
def test_the_best_of_all_pairs_stay(tmp_path, by, keep, expected):
    kept, found = pruned(tmp_path, ONE_SOURCE, keep=keep, by=by, keep_best=0)
    assert "".join(kept) == expected
    assert found.wanted == len(expected)


TWO_SOURCES = [line("a", t, p, p) for t, p in (("p", 0.9), ("q", 0.8), ("r", 0.7))] + [
    line("b", t, p, p) for t, p in (("x", 0.2), ("y", 0.3), ("z", 0.1))
]


@pytest.mark.parametrize("by", CRITERIA)
@pytest.mark.parametrize(
    ("keep", "keep_best", "expected", "lost"),
    [
        (0.5, 0, "pqr", 1),
        (0.5, math.inf, "pqy", 0),
        (0.7, math.inf, "pqry", 0),
        (0.2, math.inf, "py", 0),  # more than was asked for
        (1, math.inf, "pqrxyz", 0),
    ],
)
def test_sources_keep_their_best_target(tmp_path, by, keep, keep_best, expected, lost):
    kept, found = pruned(tmp_path, TWO_SOURCES, keep=keep, by=by, keep_best=keep_best)
    assert "".join(kept) == expected
    assert found.sources == (2, 2 - lost)


@pytest.mark.parametrize("by", CRITERIA)
@pytest.mark.parametrize("keep", [0.01, 0.25, 0.333, 0.5, 0.7, 0.999])
@pytest.mark.parametrize("scores", ["constant", "few", "many", "floor"])
def test_the_share_is_exact(tmp_path, by, keep, scores):
    draw = random.Random(1)
    value = {
        "constant": lambda: 0.5,
        "few": lambda: draw.choice([0.5, 1, 1]),
        "many": draw.random,
        "floor": lambda: draw.choice([1.64581145e-38, 0, 0.5]),
    }[scores]
    lines = [line("a", f"x{i:03}", value(), value()) for i in range(200)]
    kept, found = pruned(tmp_path, lines, keep=keep, by=by)
    assert len(kept) == found.wanted == int(200 * keep + 0.5)


def test_long_sources_may_be_left_unprotected(tmp_path):
    lines = [line("a", "x", 0.1, 0.1), line("b c d", "y", 0.2, 0.2), line("b", "z", 0.3, 0.3), line("c", "v", 0.4, 0.4)]
    lines.sort()
    kept, found = pruned(tmp_path, lines, keep=0.75, by="rnn", keep_best=1)
    assert (sorted(kept), found.sources) == (["v", "x", "z"], (4, 3))
    kept, _ = pruned(tmp_path, lines, keep=0.75, by="rnn", keep_best=3)
    assert len(kept) == 4


def test_scores_above_1_are_no_ties(tmp_path):
    lines = [line(f"{i:02}", "x", 1, 2.0**i) for i in range(20)]
    assert pruned(tmp_path, lines, keep=0.25, by="rnn", keep_best=0)[1].tied == 1


def test_ties_are_spread_evenly_and_the_same_each_time(tmp_path):
    lines = [line(f"{i:02}", f"x{i:02}", 1, 1) for i in range(40)]
    (kept, _), (again, _) = (pruned(tmp_path, lines, keep=0.25, by="both", keep_best=0) for _ in range(2))
    assert kept == again
    assert [int(b[1:]) - int(a[1:]) for a, b in itertools.pairwise(kept)] == [4] * 9


@pytest.mark.parametrize(
    "lines",
    [
        [b"a ||| b ||| 1 1 1 1 1"],  # without an end
        [b"a ||| b ||| 1 1 1 1 1\r\n"],
        [b"a \xff ||| \xc2\xa0 ||| 1 1 .5 1 .5\n", b"b|||c|||1 1 .5 1 .25\n"],
        [b"a [X][X] [X] ||| [X][X] b [X] ||| 1 1 1 1 0 ||| 1-0 |||\n"],
    ],
)
def test_odd_lines_stay_byte_for_byte(tmp_path, lines):
    kept = []
    prune_table(scored(tmp_path / "t", lines), kept.append, keep=1, by="both")
    assert b"".join(kept) == b"".join(lines)


def test_what_the_user_should_know_is_said(tmp_path):
    _, found = pruned(tmp_path, TWO_SOURCES, keep=0.2, by="rnn")
    (warning,) = warnings(found)
    assert warning.startswith("the 2 best targets alone exceed the 1 line to keep")
    _, found = pruned(tmp_path, TWO_SOURCES, keep=0.5, by="rnn", keep_best=0)
    assert list(warnings(found)) == ["1 source lost all its targets, 1 of them a single word, which is now unknown"]
