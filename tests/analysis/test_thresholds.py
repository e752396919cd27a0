"""As many pairs pass a threshold as are wanted, and the best of all."""

import random

import pytest

from moses_rnn.analysis.thresholds import LOG_CELLS, QUANTILE_CELLS, Chooser, criterion, zeros
from tests.analysis.scored import line, scored


def passing(cells, wanted):
    """Which of the pairs in some cells pass."""
    histogram = zeros(10)
    for cell in cells:
        histogram[cell] += 1
    chooser = Chooser(histogram, wanted)
    return [chooser(cell) for cell in cells], chooser.ties


@pytest.mark.parametrize("wanted", range(21))
def test_as_many_pass_as_are_wanted_and_the_best_of_all(wanted):
    cells = [random.Random(wanted).randrange(10) for _ in range(20)]
    passes, _ = passing(cells, wanted)
    assert sum(passes) == wanted
    kept = [cell for cell, stays in zip(cells, passes, strict=True) if stays]
    gone = [cell for cell, stays in zip(cells, passes, strict=True) if not stays]
    assert not kept or not gone or min(kept) >= max(gone)


def test_of_equally_good_ones_evenly_spread_ones_pass():
    assert passing([5] * 6, 2) == ([False, False, True, False, False, True], (6, 2))
    assert passing([9, 5, 5, 1], 2) == ([True, False, True, False], (2, 1))


def test_none_pass_where_fewer_than_none_are_wanted():
    assert passing([5, 5, 9], -3)[0] == [False] * 3


def test_cells_are_in_the_order_of_the_scores(tmp_path):
    #                                    p(target|source), RNN
    table = scored(tmp_path / "t", [line("a", "x", 1, 0.1), line("b", "x", 0.5, 0.3), line("c", "x", 0.25, 0.2)])
    cells = {by: [*map(criterion(table, by, table.lines()), table.lines())] for by in ("direct", "rnn", "both")}
    assert cells["direct"][0] == LOG_CELLS - 1
    assert cells["direct"] == sorted(cells["direct"], reverse=True)
    assert cells["rnn"][0] < cells["rnn"][2] < cells["rnn"][1]
    # shares of pairs below, each in the middle of its own third: 5/6 and 1/6, 3/6 and 5/6, 1/6 and 3/6
    assert cells["both"] == [pytest.approx(share * QUANTILE_CELLS, abs=2) for share in (3 / 6, 4 / 6, 2 / 6)]
