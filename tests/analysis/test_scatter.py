"""Figure 3: cells, floors, samples and pictures."""

import math

import numpy as np
import pytest

from moses_rnn.analysis.plots import scatter_file, scatter_image
from moses_rnn.analysis.scatter import (
    BIN,
    BINS,
    Group,
    compute_scatter,
    histogram_grid,
    merge_by_quantiles,
)
from moses_rnn.formats.grids import as_csv
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
    assert everything == Group("all", 6, 1, 2, pytest.approx(both / spread), 3, pytest.approx(0.5))
    assert once == Group("seen once", 3, 1, 1, None, 1, None)
    assert (few.pairs, often.pairs) == (1, 1)
    assert uncounted == Group("without a count", 1, 0, 1, None, 0, None)


def test_cells_of_the_histogram(tmp_path):
    """A quarter of a nat each; log 1 belongs to the first one, and log 0.5 = -0.69 to the third."""
    histogram = found(tmp_path).histogram
    assert histogram.shape == (BINS, BINS)
    assert np.argwhere(histogram).tolist() == [[0, 4], [2, 12], [5, 8]]
    assert as_csv(histogram_grid(found(tmp_path))).split("\n") == [
        "log_p_table,log_p_rnn,pairs",
        f"{-0.5 * BIN:g},{-4.5 * BIN:g},1",
        f"{-2.5 * BIN:g},{-12.5 * BIN:g},1",
        f"{-5.5 * BIN:g},{-8.5 * BIN:g},1",
    ]


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


def test_samples_have_their_size_and_seed(tmp_path, monkeypatch):
    monkeypatch.setattr("moses_rnn.analysis.scatter.SAMPLE_SIZE", 100)
    random = np.random.default_rng(1)
    lines = [line("a", f"x{i:03}", *random.random(2).round(6), f"1 1 {1 + i % 3}") for i in range(500)]
    first, again, other = (found(tmp_path, lines, seed=seed).groups[0] for seed in (1, 1, 2))
    assert first == again
    assert first.sample == 100
    assert first.spearman != other.spearman
    assert first.pearson == other.pearson


@pytest.mark.parametrize(("kind", "head"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_pictures_are_the_same_each_time(tmp_path, kind, head):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (the extra `plot`)")
    picture = scatter_image(found(tmp_path), kind)
    assert picture.startswith(head)
    assert picture == scatter_file(found(tmp_path), kind)


def test_the_many_pairs_of_probability_1_do_not_darken_the_others(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (the extra `plot`)")
    from moses_rnn.analysis.plots import _scatter_figure

    few = [line("a", f"x{i}", 0.5, 0.25) for i in range(5)]
    many = [line("b", f"x{i:02}", 1, 0.25) for i in range(50)]
    for lines, most in ((few, 5), (few + many, 5), (many, 50)):
        (image,) = _scatter_figure(found(tmp_path, lines)).axes[0].images
        assert (image.norm.vmin, image.norm.vmax) == (1, most)


def test_columns_hold_as_many_pairs_as_each_other_and_probability_1_is_one_of_them(tmp_path):
    many = [line("b", f"x{i:02}", 1, 0.25) for i in range(50)]
    rest = [line("c", f"y{i:02}", 2.0 ** -(i // 2 + 1), 0.25) for i in range(20)]
    cells, of_table, of_network = merge_by_quantiles(found(tmp_path, many + rest), parts=7)
    assert cells.sum() == 70
    assert cells[0].sum() == 50
    assert (cells[1:].sum(axis=1) <= 4).all()
    assert (of_table[0], of_table[1]) == (0, -0.25)
    assert list(of_network) == [0, -1.5]  # log 0.25 is -1.39: one row
    assert (np.diff(of_table) < 0).all()
    assert cells.shape == (len(of_table) - 1, len(of_network) - 1)


def test_a_picture_of_nothing(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (the extra `plot`)")
    picture = scatter_image(found(tmp_path, [line("a", "x", 0.5, FLOOR)]), "svg")
    assert b"1 at the RNN's floor not shown" in picture
