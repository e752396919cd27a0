"""Scores of n-grams against the scalar equations, whatever company an n-gram comes in."""

import numpy as np
import pytest
import torch

from moses_rnn.inference.cslm import ROWS, NGramScores
from moses_rnn.models.cslm import CslmConfig
from tests.models import reference, reference_bengio
from tests.models.networks import BENGIO_SWITCHES, bengio_network, cslm_network, some_n_grams, weights_of


def test_log_p_is_that_of_the_equations():
    model, n_grams = cslm_network(), some_n_grams(50)
    weights = weights_of(model)
    expected = [reference.n_gram_log_prob(weights, context, word) for *context, word in n_grams.tolist()]
    assert NGramScores(model).log_probs(n_grams) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("switches", [one for one in BENGIO_SWITCHES if one["order"] == 4], ids=str)
def test_log_p_of_bengio_s_network_is_that_of_its_equations(switches):
    model, n_grams = bengio_network(switches, dtype=torch.float32), some_n_grams(50)
    weights = weights_of(model)
    expected = [reference_bengio.log_prob(weights, context, word) for *context, word in n_grams.tolist()]
    assert NGramScores(model).log_probs(n_grams) == pytest.approx(expected, rel=1e-4)


def test_normalisers_are_those_of_the_network():
    model, n_grams = cslm_network(), some_n_grams(ROWS + 50)
    given = torch.from_numpy(n_grams)
    _, log_Z = model.log_probs(given[:, :-1], given[:, -1])
    assert NGramScores(model).log_normalisers(n_grams) == pytest.approx(log_Z.numpy(), abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_score_does_not_depend_on_its_company(dtype):
    config = CslmConfig(300, 7, 32, 64, 48)
    scores, n_grams = NGramScores(cslm_network(config), dtype), some_n_grams(3 * ROWS + 7, config)
    together = scores.log_probs(n_grams)
    order = np.random.default_rng(1).permutation(len(n_grams))
    assert np.array_equal(scores.log_probs(n_grams[order]), together[order])
    assert np.array_equal(scores.log_probs(n_grams[:5]), together[:5])
    assert np.array_equal(scores.log_probs(n_grams[[7, 7, 3]]), together[[7, 7, 3]])


def test_each_distinct_context_is_computed_once(monkeypatch):
    scores, computed = NGramScores(cslm_network()), []
    summary = scores.model.summary
    monkeypatch.setattr(
        scores.model, "summary", lambda contexts, *rest: computed.append(len(contexts)) or summary(contexts, *rest)
    )
    n_grams = np.tile(some_n_grams(40), (100, 1))
    assert np.array_equal(scores.log_probs(n_grams), np.tile(scores.log_probs(n_grams[:40]), 100))
    assert computed == [ROWS, ROWS]  # one block for each call


def test_nothing_to_score_is_no_score():
    assert NGramScores(cslm_network()).log_probs(np.zeros((0, 4), np.int64)).shape == (0,)
    assert NGramScores(cslm_network()).log_normalisers(np.zeros((0, 4), np.int64)).shape == (0,)
