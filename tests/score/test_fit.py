"""Models that learned nothing, and models of other tables."""

from dataclasses import replace
from pathlib import Path

import pytest

from moses_rnn.errors import MisfitError
from moses_rnn.models.open import check_learned
from moses_rnn.networks.encdec import SWITCHES
from moses_rnn.score.checks import check_fit, fit_warnings, unit_warnings
from moses_rnn.table.signatures import TableCounts
from tests.models.pairs import SOURCE, TARGET
from tests.networks.checkpoints import encdec_checkpoint
from tests.networks.networks import encdec_network


def report(lines, unknown, floored):
    return TableCounts(lines=lines, unknown=[0, unknown], floored=[0, floored])


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
    with pytest.raises(MisfitError, match=rf"^-: .* RNN's model .*, found {found} in 1,000 lines\n"):
        check_fit("-", report(1000, unknown, floored), NAMES, allowed=False)
    check_fit("-", report(1000, 800, 499), NAMES, allowed=False)
    check_fit("-", report(0, 0, 0), NAMES, allowed=False)
    check_fit("-", report(1000, unknown, floored), NAMES, allowed=True)


def test_too_many_unknown_words_are_warned_of():
    assert list(fit_warnings(report(1000, 200, 0), NAMES)) == []
    (warning,) = fit_warnings(report(1000, 201, 0), NAMES)
    assert warning.startswith("RNN: 20.1% of the pairs ")


def test_a_constant_column_is_warned_of():
    (warning,) = fit_warnings(TableCounts(2, [0, 0], [0, 0], [-1, -3], [-1, -2]), NAMES)
    assert warning.startswith("WordPenalty is the same on every line: MERT cannot find a weight for it")


def learned(history, unigram):
    provenance = {"history": history, "unigram_nats_per_token": unigram}
    return encdec_checkpoint(encdec_network(SWITCHES["paper"]), SOURCE, TARGET, provenance=provenance)


BETTER = [{"nats_per_token": 9.0}, {"nats_per_token": 4.99}]


@pytest.mark.parametrize(("history", "unigram"), [(BETTER, 5.0), ([], 5.0), ("9", 5.0), (BETTER[:1], None)], ids=str)
def test_a_better_one_and_one_of_which_nothing_is_known_are_not(history, unigram):
    check_learned(learned(history, unigram))


@pytest.mark.parametrize(
    ("unit", "on_sentences", "expected"),
    [
        ("phrases", False, []),
        ("phrases", True, ["m: learned from phrases, but scores sentences here"]),
        ("sentences", False, ["m: learned from sentences, but scores phrases here"]),
    ],
)
def test_another_unit_than_it_learned_from_is_warned_of(unit, on_sentences, expected):
    network = encdec_network(SWITCHES["paper"])
    model = replace(encdec_checkpoint(network, SOURCE, TARGET, provenance={"unit": unit}), folder=Path("m"))
    assert list(unit_warnings([model], on_sentences=on_sentences)) == expected
