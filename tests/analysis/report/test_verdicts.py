"""Verdicts say no more than the figures do."""

import html
import json
from dataclasses import replace

import pytest

from moses_rnn.analysis.agreement import Literalness, Preferences, Summary
from moses_rnn.analysis.report import write_report
from moses_rnn.analysis.results import Gain, Tuning, read_tuning
from moses_rnn.analysis.verdicts import (
    ignores_counts,
    judge_fit,
    judge_training,
    judge_tuning,
    literal,
    shorter,
)
from moses_rnn.errors import InputError
from moses_rnn.table.signatures import Signature
from tests.analysis.report.small import RESULTS, Reader


@pytest.mark.parametrize(
    ("costs", "kind", "answer"),
    [
        ([3, 2, 1, 1, 1, 1], "good", "Yes"),
        ([3, 2, 1, 1.5, 2, 2], "good", "Yes, but longer than needed"),
        ([5, 4, 3, 2, 1, 0.5], "doubtful", "Not fully"),
        ([7, 6.5, 6.4, 6.3], "bad", "No"),
        ([], "doubtful", "Not recorded"),
    ],
)
def test_whether_it_is_trained(findings, costs, kind, answer):
    history = [{"nats_per_token": cost, "seconds": 60.0 * i} for i, cost in enumerate(costs, start=1)]
    provenance = {"history": history, "unigram_nats_per_token": 6.0}
    model = replace(findings.model, provenance=provenance)
    *judged, text = judge_training(replace(findings, model=model))
    assert judged == [kind, answer]
    assert (f"{min(costs, default=0):.3f} nats" in text) == bool(costs)


def fitting(findings, unknown, floored, **changes):
    group = findings.scatter.groups[0]._replace(pairs=1000, at_floor=floored)
    scatter = replace(findings.scatter, groups=[group])
    signature = {"models": [{"sha256": dict(findings.model.hashes)}]} | changes.pop("recorded", {})
    table, covered = (
        replace(findings.table, signature=Signature(signature)),
        replace(findings.coverage, pairs_unknown=unknown),
    )
    return replace(findings, **{"scatter": scatter, "table": table, "coverage": covered, "disputes": [], **changes})


@pytest.mark.parametrize(
    ("unknown", "floored", "recorded", "kind", "answer"),
    [
        (100, 5, {}, "good", "Yes"),
        (100, 100, {}, "doubtful", "In part"),
        (100, 5, {"lines": 999}, "doubtful", "In part"),
        (100, 600, {}, "bad", "No"),
    ],
)
def test_whether_it_fits(findings, unknown, floored, recorded, kind, answer):
    *judged, text = judge_fit(fitting(findings, unknown, floored, recorded=recorded))
    assert judged == [kind, answer]
    assert f"{unknown / 1000:.1%} of the pairs" in text


def test_if_another_model_scored_a_table_the_report_says_what_to_type(findings):
    named = replace(fitting(findings, 1, 1, recorded={"models": [{"sha256": {"x": "y"}}]}), missing=["matplotlib"])
    table, model = replace(named.table, path="my <tables>/t"), replace(named.model, folder="m")
    text = write_report(replace(named, table=table, model=model)).decode()
    page = " ".join(" ".join(Reader(text).texts).split())
    for command in (
        "moses-rnn analyse report 'my <tables>/t' --model FOLDER -o report.html",
        "moses-rnn-score TABLE --model m -o 'my <tables>/t' --force",
    ):
        assert command in page


@pytest.mark.parametrize(("apart", "answer"), [(0.05, "Yes"), (0.2, "Another model scored it")])
def test_a_column_of_another_model_is_noticed(findings, apart, answer):
    dispute, explanation = findings.disputes[0]
    near = replace(explanation, log_prob=explanation.columns[4].log + apart)
    assert judge_fit(fitting(findings, 1, 1, disputes=[(dispute, near)]))[1] == answer


@pytest.mark.parametrize(
    ("gains", "of_tunings", "p", "kind", "answer"),
    [
        ((0.5, 0.2), (1, 1, 0.1), (0.01, 0.02, 0.3), "good", "It gained"),
        ((0.5, 0.2), (1, 1, 0.1), (0.01, 0.2, 0.3), "doubtful", "No gain beyond chance"),
        ((0.5, 0.2), (4.1, -1, -1), (0.01, 0.02, 0.01), "doubtful", "No gain beyond chance"),  # most lost
        ((-0.5, -0.2), (-0.7,), (0.9,), "bad", "Nothing"),
    ],
)
def test_what_tuning_gained(gains, of_tunings, p, kind, answer):
    sets = tuple(Gain(f"set{i}", 50.0, 50.0 + gain, p) for i, gain in enumerate(gains))
    assert judge_tuning(Tuning("rnn", sets, of_tunings, p, ({},) * len(p)))[:2] == (kind, answer)
    assert judge_tuning(None)[:2] == ("doubtful", "Not measured")


def written(tmp_path, record):
    (tmp_path / "results.json").write_text(json.dumps(record))
    return str(tmp_path / "results.json")


def test_a_system_stands_beside_the_baseline(tmp_path):
    tuning = read_tuning(written(tmp_path, RESULTS))
    assert (tuning.system, [one.name for one in tuning.sets]) == ("rnn", ["near", "far"])
    assert [round(one.gain, 6) for one in tuning.sets] == [0.5, 0.25]
    assert [one.p for one in tuning.sets] == [(0.01, 0.02), (0.2, 0.3)]
    assert tuning.weights[0]["TranslationModel0"] == [0.1, 0.1, 0.1, 0.1, 0.07]
    assert tuning.gains == pytest.approx((0.8, 0.7))
    baseline, rnn = RESULTS["systems"].values()
    for names, chosen in ((["b", "a"], "b"), (["rnnsearch", "rnn2"], "rnn2")):
        others = {"baseline": baseline, **dict.fromkeys(names, rnn)}
        assert read_tuning(written(tmp_path, {**RESULTS, "systems": others})).system == chosen


def with_mean(value):
    baseline = RESULTS["systems"]["baseline"]
    return {**RESULTS, "systems": {**RESULTS["systems"], "baseline": {**baseline, "near_BLEU": {"mean": value}}}}


@pytest.mark.parametrize(
    "record",
    [[], {}, {"systems": {}, "tests": []}, {**RESULTS, "systems": {"baseline": {}}}, {**RESULTS, "tests": ["no such"]},
     {**RESULTS, "systems": {**RESULTS["systems"], "rnn": 5}},
     *map(with_mean, [float("nan"), float("inf"), 10**400, None])],
)  # fmt: skip
def test_what_is_no_result_is_refused(tmp_path, record):
    with pytest.raises(InputError, match="results.json: expected results of a baseline and of a system with the score"):
        read_tuning(written(tmp_path, record))


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
        (preferred(0.1, 0.3, there=(50, 0.1, 0.6)), "Does not hold here"),
        (preferred(0.3, 0.2, there=(50, 0.3, 0.2)), "No clear tendency"),
        (preferred(0.51, 0.48, sources=10_000, there=(10_000, 0.51, 0.48)), "No clear tendency"),
        (preferred(0.51, 0.48, sources=10_000, there=(50, 0.6, 0.1)), "Holds in part"),
        (preferred(0.48, 0.51, sources=10_000, there=(50, 0.1, 0.6)), "Does not hold here"),
        (preferred(1.0, 0.0, sources=29), "Cannot be decided here"),
        (preferred(None, None, sources=0), "Cannot be decided here"),
    ],
)
def test_shorter(found, verdict):
    assert shorter(found) == verdict


@pytest.mark.parametrize(
    ("more", "less", "verdict"),
    [
        (60, 20, "Holds here"),
        (20, 60, "Does not hold here"),
        (24, 16, "No clear tendency"),  # chance explains so few
        (51_000, 48_000, "No clear tendency"),  # chance does not, but it is hardly more than half
        (48_000, 51_000, "No clear tendency"),
        (5600, 4400, "Holds here"),
        (0, 0, "No clear tendency"),
    ],
)
def test_literal(more, less, verdict):
    assert literal(Literalness(more + less + 30, more, less)) == verdict
    assert literal(Literalness(29, 29, 0)) == "Cannot be decided here"


@pytest.mark.parametrize(
    ("over_pairs", "within", "verdict", "told"),
    [
        (0.05, -0.02, "Holds here", "practically no rank correlation"),
        (0.2, 0.0, "Holds in part", "a weak rank correlation"),
        (-0.05, 0.4, "Not seen here", "need not come from counts"),
        (0.6, None, "Not seen here", "Short pairs are both frequent and likely"),
        (None, None, "Cannot be decided here", "All 100 pairs of sources with several targets have the same count"),
    ],
)
def test_whether_counts_are_ignored(findings, over_pairs, within, verdict, told):
    summary = Summary([preferred(0.3, 0.1, with_count=within)], 100, 0.5, over_pairs)
    assert ignores_counts(summary) == verdict
    text = write_report(replace(findings, summary=summary)).decode()
    assert html.escape(f"(section 3.1): {verdict}.") in text
    assert told in text
