"""The answers at the top of a page say what the figures say."""

from dataclasses import replace

import pytest

from moses_rnn.analysis.report.decision import FITS, TRAINED, TUNED, decide
from moses_rnn.analysis.report.document import write_report
from moses_rnn.analysis.report.survey import Coverage
from moses_rnn.analysis.report.tuning import Gain, Tuning


def answer(findings, question):
    return next(one for one in decide(findings) if one.question == question)


def trained(findings, costs, unigram=6.0):
    history = [{"nats_per_token": cost, "seconds": 60.0 * i} for i, cost in enumerate(costs, start=1)]
    provenance = {"history": history, "unigram_nats_per_token": unigram}
    return replace(findings, model=replace(findings.model, provenance=provenance))


@pytest.mark.parametrize(
    ("costs", "kind", "word"),
    [
        ([3, 2, 1, 1, 1, 1], "good", "Yes"),
        ([3, 2, 1, 1.5, 2, 2], "good", "Yes, and longer than it should have been"),
        ([5, 4, 3, 2, 1, 0.5], "doubtful", "Not to its end"),
        ([5, 4], "doubtful", "Not known"),
        ([7, 6.5, 6.4, 6.3], "bad", "No"),
        ([], "doubtful", "Not recorded"),
    ],
)
def test_whether_it_is_trained(findings, costs, kind, word):
    judged = answer(trained(findings, costs), TRAINED)
    assert (judged.kind, judged.word) == (kind, word)


def test_the_figures_stand_behind_it(findings):
    judged = answer(trained(findings, [3, 2, 1, 1, 1, 1]), TRAINED)
    assert judged.text == (
        "Converged: the held-out cost went from 1.000 to 1.000 in the last third of the time. It costs 1.000 nats a "
        "held-out target token, words by their frequency alone 6.000."
    )


def fitting(findings, unknown, floored, **changes):
    group = replace(findings.scatter.groups[0], pairs=1000, at_floor=floored)
    scatter = replace(findings.scatter, groups=[group])
    signature = {"models": [{"sha256": dict(findings.model.hashes)}]}
    covered = Coverage(lines=1000, pairs_unknown=unknown)
    return replace(findings, **{"scatter": scatter, "signature": signature, "coverage": covered, **changes})


@pytest.mark.parametrize(
    ("unknown", "floored", "kind", "word"),
    [
        (100, 5, "good", "Yes"),
        (300, 5, "doubtful", "In part"),
        (100, 100, "doubtful", "In part"),
        (100, 600, "bad", "No"),
        (986, 5, "bad", "No"),
    ],
)
def test_whether_it_fits(findings, unknown, floored, kind, word):
    judged = answer(fitting(findings, unknown, floored), FITS)
    assert (judged.kind, judged.word) == (kind, word)
    assert f"{unknown / 1000:.1%} of the pairs" in judged.text


def test_a_table_that_another_model_scored(findings):
    judged = answer(fitting(findings, 1, 1, signature={"models": [{"sha256": {"x": "y"}}]}), FITS)
    assert (judged.kind, judged.word) == ("bad", "Another model scored it")


def tuning(gains, p):
    sets = tuple(Gain(f"set{i}", 50.0, 50.0 + gain, tuple(p)) for i, gain in enumerate(gains))
    return Tuning("rnn", sets, (), ({}, {}))


@pytest.mark.parametrize(
    ("gains", "p", "kind", "word"),
    [
        ((0.5, 0.2), (0.01, 0.02, 0.3), "good", "It gained"),
        ((0.5, 0.2), (0.01, 0.2, 0.3), "doubtful", "No gain that is beyond chance"),
        ((0.5, -0.2), (0.01, 0.01, 0.01), "doubtful", "No gain that is beyond chance"),
        ((-0.5, -0.2), (0.9,), "bad", "Nothing"),
    ],
)
def test_what_tuning_gave(findings, gains, p, kind, word):
    judged = answer(replace(findings, tuning=tuning(gains, p)), TUNED)
    assert (judged.kind, judged.word) == (kind, word)
    assert judged.text.startswith("BLEU of rnn beside the baseline, means of 2 tunings: set0: 50.00 → ")


def test_without_results_it_is_not_measured(findings):
    judged = answer(findings, TUNED)
    assert (judged.kind, judged.word) == ("doubtful", "Not measured")


def test_the_answers_stand_first(findings):
    page = write_report(findings).decode()
    assert page.index('class="answer ') < page.index('class="warning"')
