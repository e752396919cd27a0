"""Figure 3: cells, floors, samples and pictures."""

import math

import pytest

from moses_rnn.analysis.agreement import Group, compute_scatter
from tests.analysis.scored import line, scored

FLOOR = repr(math.exp(-87))
TABLE = [
    line("a", "u", 1, math.exp(-1), "9 9 1"),
    line("a", "v", 0.5, math.exp(-3), "9 9 2"),
    line("a", "w", 0.25, math.exp(-2), "9 9 10"),
    line("a", "x", 0.125, FLOOR, "9 9 1"),
    line("a", "y", 0, 0.5, "9 9 1"),
    line("b", "y", 0.5, 0),
]


def found(tmp_path, lines=TABLE, **options):
    return compute_scatter(scored(tmp_path / "t", lines).pairs(), **options)


def test_all_pairs_are_counted_and_those_without_a_place_left_out(tmp_path):
    everything, once, few, often, uncounted = found(tmp_path).groups
    x, y = [0, -math.log(2), -2 * math.log(2)], [-1, -3, -2]
    both = sum(a * b for a, b in zip(x, y, strict=True)) - sum(x) * sum(y) / 3
    spread = math.sqrt((sum(a * a for a in x) - sum(x) ** 2 / 3) * (sum(b * b for b in y) - sum(y) ** 2 / 3))
    assert everything == Group("all", 6, 1, 2, pytest.approx(both / spread), pytest.approx(0.5))
    assert once == Group("seen once", 3, 1, 1, None, None)
    assert (few.pairs, often.pairs) == (1, 1)
    assert uncounted == Group("without a count", 1, 0, 1, None, None)


@pytest.mark.parametrize(("floor", "at_floor", "shown"), [(-87, 1, 3), (-90, 0, 4), (-2, 3, 1)])
def test_the_floor_is_the_one_that_was_scored_with(tmp_path, floor, at_floor, shown):
    result = found(tmp_path, floor=floor)
    assert (result.groups[0].at_floor, result.histogram.sum()) == (at_floor, shown)


@pytest.mark.parametrize(
    ("lines", "correlation"),
    [
        (TABLE[:1], None),
        ([line("a", t, 0.5, 0.25) for t in "xyz"], None),  # constant
        ([line("a", t, 0.5, FLOOR) for t in "xyz"], None),  # all at the floor
        ([line("a", t, p, p) for t, p in (("x", 0.5), ("\u00a0", 0.25), ("y", 1.5))], 1),
        ([b"a \xff ||| \xc2\xa0 ||| .1 .1 .5 .1 .5\n", b"b ||| c ||| .1 .1 .25 .1 .75\n"], -1),
        ([f"a [X][X] [X] ||| [X][X] b{p} [X] ||| 1 1 {p} 1 {p} ||| 1-0 |||\n".encode() for p in (0.5, 0.6)], 1),
    ],
)
def test_degenerate_tables(tmp_path, lines, correlation):
    everything = found(tmp_path, lines).groups[0]
    assert everything.pairs == len(lines)
    expected = None if correlation is None else pytest.approx(correlation)
    assert (everything.pearson, everything.spearman) == (expected, expected)


def test_a_sample_is_drawn_point_by_point_and_pairs_seen_once_are_marked(tmp_path):
    drawn = found(tmp_path)
    once = {
        (x, y): single for (x, y), single in zip(drawn.points.round(4).tolist(), drawn.is_single.tolist(), strict=True)
    }
    assert once == {(0, -1): True, (-0.6931, -3): False, (-1.3863, -2): False}
    (low, _), (low_by_rnn, _) = drawn.limits
    assert low < -1.3863
    assert low_by_rnn < -3


def test_a_picture_of_nothing(tmp_path):
    plots = pytest.importorskip("moses_rnn.analysis.plots", reason="pictures need matplotlib (the extra `report`)")
    drawn = plots.picture(plots.density_figure, found(tmp_path, [line("a", "x", 0.5, FLOOR)]))
    assert b"1 at the RNN's floor not shown" in drawn
