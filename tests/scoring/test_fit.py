"""Models that learned nothing, and models of other tables."""

from dataclasses import replace
from pathlib import Path

import pytest

from moses_rnn.errors import MisfitError
from moses_rnn.models.encdec import SWITCHES
from moses_rnn.scoring import fit
from moses_rnn.scoring.fit import FitWatch, check_learned, fit_warnings, unit_warnings
from moses_rnn.scoring.phrase_tables import ScoringReport
from tests.models.checkpoints import encdec_checkpoint
from tests.models.networks import encdec_network
from tests.producers.pairs import SOURCE, TARGET


def report(lines, unknown, floored):
    return ScoringReport(lines=lines, unknown=[0, unknown], floored=[0, floored])


NAMES = ("WordPenalty", "RNN")


@pytest.mark.parametrize(
    ("unknown", "floored", "found"),
    [
        (801, 0, "80.1% of the pairs with a word outside its shortlists"),
        (0, 500, "50.0% of the scores at the floor"),
        (900, 990, "90.0% of the pairs with a word outside its shortlists and 99.0% of the scores at the floor"),
    ],
)
def test_a_misfit_is_refused(unknown, floored, found):
    with pytest.raises(MisfitError, match=rf"^t\.gz: .* RNN's model .*, found {found} in 1,000 lines\n"):
        FitWatch("t.gz", report(1000, unknown, floored), NAMES).judge()
    FitWatch("t.gz", report(1000, 800, 499), NAMES).judge()
    FitWatch("t.gz", report(0, 0, 0), NAMES).judge()


def test_a_table_is_judged_now_and_then_before_its_end(monkeypatch):
    judged = []
    monkeypatch.setattr(FitWatch, "judge", lambda watch: judged.append(watch._report.lines))
    growing = report(0, 0, 0)
    watch = FitWatch("t.gz", growing, NAMES)
    for growing.lines in range(0, 1_000_000, 8192):
        watch.look()
    assert [round(lines, -5) for lines in judged] == [fit.FIRST_LOOK * 2**i for i in range(4)]


def test_too_many_unknown_words_are_warned_of():
    assert list(fit_warnings(report(1000, 200, 0), NAMES)) == []
    (warning,) = fit_warnings(report(1000, 201, 0), NAMES)
    assert warning.startswith("RNN: 20.1% of the pairs ")


def learned(history, unigram):
    return encdec_checkpoint(None, None, None, provenance={"history": history, "unigram_nats_per_token": unigram})


@pytest.mark.parametrize(
    ("history", "unigram"),
    [
        ([{"nats_per_token": 9.0}, {"nats_per_token": 4.99}], 5.0),
        ([], 5.0),
        (None, 5.0),
        ("9", 5.0),
        ([7, {"nats_per_token": "9"}], 5.0),
        ([{"nats_per_token": 9.0}], None),
        ([{"nats_per_token": 9.0}], "5"),
    ],
)
def test_a_better_one_and_one_of_which_nothing_is_known_are_not(history, unigram):
    check_learned(learned(history, unigram))


@pytest.mark.parametrize(
    ("unit", "on_sentences", "expected"),
    [
        ("phrases", False, []),
        ("sentences", True, []),
        ("phrases", True, ["m learned from phrases (its unit), and is to score sentences"]),
        ("sentences", False, ["m learned from sentences (its unit), and is to score phrases"]),
    ],
)
def test_another_unit_than_it_learned_from_is_warned_of(unit, on_sentences, expected):
    network = encdec_network(SWITCHES["paper"])
    model = replace(encdec_checkpoint(network, SOURCE, TARGET, provenance={"unit": unit}), folder=Path("m"))
    assert list(unit_warnings(model, on_sentences=on_sentences)) == expected
