"""Targets scored as tries against the same targets word by word."""

import numpy as np
import pytest
import torch

from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.models.variants import SWITCHES
from moses_rnn.models.vocabulary import END_ID
from tests.inference.id_pairs import flat, random_pairs, score
from tests.models.networks import encdec_network
from tests.producers.bigrams import random_stepper

STEPPERS = {
    "bigrams": lambda: random_stepper(9, 8),
    "encdec": lambda: EncDecStepper(encdec_network(SWITCHES["paper"]), dtype=torch.float64),
}


def word_by_word(stepper, source, target):
    """log p of a pair from the whole distribution after each prefix."""
    terms, _ = stepper.read(*flat([source]))
    prefixes, total = stepper.start(terms), 0.0
    for word in [*target, END_ID]:
        total += stepper.next_log_probs(terms, prefixes)[0, word].item()
        prefixes = stepper.step(terms, prefixes, torch.tensor([0]), torch.tensor([word]))
    return total


@pytest.mark.parametrize("name", STEPPERS)
def test_a_score_is_the_sum_over_its_words(name):
    stepper, pairs = STEPPERS[name](), random_pairs(80)
    expected = [word_by_word(stepper, source, target) for source, target in pairs]
    np.testing.assert_allclose(score(stepper, pairs), expected, rtol=1e-11)


@pytest.mark.parametrize("name", STEPPERS)
def test_empty_targets_have_the_log_prob_of_the_end(name):
    stepper = STEPPERS[name]()
    pairs = [([2, 3], []), ([], []), ([2, 3], [])]
    np.testing.assert_allclose(score(stepper, pairs), [word_by_word(stepper, *pair) for pair in pairs], rtol=1e-11)


def test_each_distinct_prefix_is_stepped_once(monkeypatch):
    """Those of [2, 3], [2, 4, 5], [2] and [] are [2], [2, 3], [2, 4] and [2, 4, 5]; the other source has [2]."""
    stepper, stepped = random_stepper(9, 8), []
    step = stepper.step
    monkeypatch.setattr(stepper, "step", lambda *given: stepped.append(len(given[2])) or step(*given))
    score(stepper, [([3], [2, 3]), ([3], [2, 4, 5]), ([3], [2]), ([4, 4], [2]), ([3], []), ([3], [2, 3])])
    assert stepped == [2, 2, 1, 0]


@pytest.mark.parametrize("variant", SWITCHES)
def test_sharing_changes_nothing(variant):
    model = encdec_network(SWITCHES[variant], dtype=torch.float32)
    stepper = EncDecStepper(model)
    pairs = random_pairs(300)
    together = score(stepper, pairs)
    alone = np.concatenate([score(stepper, [pair]) for pair in pairs])
    np.testing.assert_allclose(together, alone, rtol=1e-5)
