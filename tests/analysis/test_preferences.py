"""Preferences of both models over sources, computed by hand."""

import pytest

from moses_rnn.analysis.agreement import Preferences, notes, preferences_grid, summarise
from moses_rnn.analysis.grids import as_text
from tests.analysis.scored import line, scored

TABLE = [
    # The RNN likes the shorter one, which is rarer
    line("a b", "u v w", 0.75, 0.1, "9 4 3"),
    line("a b", "u v", 0.25, 0.3, "9 4 1"),
    # Both of the table's targets are best; the RNN agrees with one of them
    line("c d", "u", 0.5, 0.1, "9 2 1"),
    line("c d", "u v w", 0.5, 0.3, "9 2 1"),
    # Both agree
    line("e", "u", 0.9, 0.4, "9 20 18"),
    line("e", "v", 0.1, 0.1, "9 20 2"),
    line("f", "only one", 1, 0.9, "1 1 1"),
]


def found(tmp_path, lines=TABLE, **options):
    return summarise(scored(tmp_path / "t", lines).pairs(), **options)


def test_means_over_sources(tmp_path):
    everything, few, often = found(tmp_path).classes
    assert everything == Preferences(
        "all",
        3,
        agreement=pytest.approx(2 / 3),
        chance=pytest.approx((1 / 2 + 1 + 1 / 2) / 3),
        words_by_table=pytest.approx((3 + (1 + 3) / 2 + 1) / 3),
        words_by_rnn=pytest.approx((2 + 3 + 1) / 3),
        words_of_all=pytest.approx((2.5 + 2 + 1) / 3),
        shorter=pytest.approx(1 / 3),
        longer=pytest.approx(1 / 3),
        apart=1,
        shorter_apart=1,
        longer_apart=0,
        ordered=2,  # the counts of "c d" do not differ
        rnn_with_count=pytest.approx((-1 + 1) / 2),
    )
    assert (few.name, few.sources, few.rnn_with_count) == ("seen 2 to 9 times", 2, pytest.approx(-1))
    assert (often.name, often.sources, often.agreement) == ("seen 10+ times", 1, 1)


@pytest.mark.parametrize(
    ("lines", "sources", "rnn_with_count"),
    [
        ([line("a", "x", 1, 1)], 0, None),
        ([line("a", "x", 0.5, 0.5), line("a", "y", 0.5, 0.5)], 1, None),  # without counts
        ([line("a", "x", 0.5, 0.5, "1 3 1"), line("a", "y", 0.5, 0.5, "1 3 2")], 1, None),  # constant scores
        ([line("a", "x", 0.5, 0, "1 3 1"), line("a", "\u00a0", 0.5, 0.5, "1 3 2")], 1, 1),
    ],
)
def test_degenerate_tables(tmp_path, lines, sources, rnn_with_count):
    summary = found(tmp_path, lines)
    assert summary.classes[0].sources == sources
    assert summary.classes[0].rnn_with_count == (None if rnn_with_count is None else pytest.approx(rnn_with_count))
    assert as_text(preferences_grid(summary))
    assert len(notes(summary)) == 3
