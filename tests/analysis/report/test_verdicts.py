"""Verdicts say no more than the figures do."""

import pytest

from moses_rnn.analysis.preferences import Preferences, Summary
from moses_rnn.analysis.report.survey import Literalness
from moses_rnn.analysis.report.verdicts import literal, shorter, verdicts


def preferred(shorter_share, longer_share, *, sources=100, with_count=None, there=(50, 0.6, 0.1)):
    apart, shorter_there, longer_there = there
    return Preferences("all", sources, 0.5, 0.5, 3, 2, 3, shorter_share, longer_share, apart, shorter_there, longer_there,
                       sources, with_count)  # fmt: skip


# shares of 100 sources; two deviations of so many that differ: 0.3 and 0.1 are 40, of which 20 > 2 * sqrt(40)
@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (preferred(0.3, 0.1), "Holds here"),
        (preferred(0.3, 0.1, there=(0, None, None)), "Holds in part"),  # it only chooses among equally good ones
        (preferred(0.3, 0.1, there=(50, 0.1, 0.6)), "Holds in part"),
        (preferred(0.3, 0.2), "Holds in part"),
        (preferred(0.1, 0.3, there=(50, 0.1, 0.6)), "Does not hold here"),
        (preferred(0.1, 0.3, there=(50, 0.3, 0.2)), "Does not hold here"),
        (preferred(0.3, 0.2, there=(50, 0.3, 0.2)), "Not to be decided here"),
        (preferred(1.0, 0.0, sources=29), "Not to be decided here"),
        (preferred(None, None, sources=0), "Not to be decided here"),
    ],
)
def test_shorter(found, verdict):
    assert shorter(found)[0] == verdict


@pytest.mark.parametrize(
    ("more", "less", "verdict"),
    [(60, 20, "Holds here"), (20, 60, "Does not hold here"), (41, 39, "Not to be decided here")],
)
def test_literal(more, less, verdict):
    assert literal(Literalness(80, more, less))[0] == verdict


@pytest.mark.parametrize(
    ("over_pairs", "within", "verdict", "told"),
    [
        (0.05, -0.02, "Holds here", "practically no rank correlation"),
        (0.2, 0.0, "Holds in part", "a weak rank correlation"),
        (-0.05, 0.4, "Not seen here", "need not come from counts"),
        (0.6, None, "Not seen here", "Short pairs are both frequent and likely"),
        (None, None, "Not to be decided here", "Of 100 pairs of sources with several targets, all have one count"),
    ],
)
def test_insensitive(over_pairs, within, verdict, told):
    summary = Summary([preferred(0.3, 0.1, with_count=within)], 100, 0.5, over_pairs)
    assert verdicts(summary, Literalness())[2][1] == verdict
    assert told in verdicts(summary, Literalness())[2][2]
