import pytest

from moses_rnn.networks.measures import RANKED_WRONG
from moses_rnn.training.learning_curves import verdict


def history(*costs):
    return [{"seconds": 60.0 * i, "nats_per_token": cost} for i, cost in enumerate(costs, start=1)]


@pytest.mark.parametrize(
    ("costs", "unigram", "name", "figures"),
    [
        ([4, 2, 1.5, 1.2, 1.1, 1.0], 5.0, "still falling", "from 1.200 to 1.000 in the last third"),
        ([4, 2, 1.5, 1.2, 1.19, 1.18], 5.0, "converged", "from 1.200 to 1.180"),
        ([4, 2, 1.0, 1.01, 1.02, 1.03], 5.0, "overfitting", "from 1.000 after 3 minutes to 1.030"),
        ([4, 2, 1.0, 1.01, 1.01, 1.015], None, "converged", "from 1.000 to 1.000"),
        ([9, 8, 7, 6], 5.5, "learned nothing", "6.00 nats per target token; a unigram model costs 5.50"),
        ([4, 2, 1], 5.0, "too short to tell", "3 of the 4 evaluations"),
        ([], 5.0, "too short to tell", "0 of the 4 evaluations"),
    ],
)
def test_verdicts(costs, unigram, name, figures):
    found = verdict(history(*costs), unigram)
    assert found.name == name
    assert figures in str(found)


def test_a_ranker_is_judged_by_what_it_ranks_wrong():
    wrong = [{"seconds": 60.0 * i, "ranked_wrong": cost} for i, cost in enumerate((0.5, 0.1, 0.05, 0.02, 0.015, 0.01))]
    assert verdict(wrong, 0.5, RANKED_WRONG).name == "still falling"
    guessing = "learned nothing: 0.50 errors per corrupted pair; guessing costs 0.50"
    assert str(verdict(wrong[:1], 0.5, RANKED_WRONG)) == guessing


def test_records_of_other_kinds_are_passed_by():
    assert verdict([{"epochs": 1.0}] * 9, 5.0).name == "too short to tell"
