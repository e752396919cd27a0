"""Scores of sentences against the scalar equations, to the bit the same whatever company a sentence comes in."""

import numpy as np
import pytest
import torch

from moses_rnn.inference import rnnlm as rnnlm_module
from moses_rnn.inference.rnnlm import ROWS, SentenceScores
from moses_rnn.models.vocabulary import END_ID
from tests.models import reference_rnnlm
from tests.models.networks import laid_out, rnnlm_network, some_sentences, weights_of


def each(scores, sentences):
    """The values of each sentence, all scored together."""
    flat, lengths = laid_out(sentences)
    return np.split(scores.log_probs(flat, lengths), np.cumsum(lengths + 1)[:-1])


@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_log_p_is_that_of_the_equations(precision, tolerance):
    model, sentences = rnnlm_network(dtype=precision), some_sentences(60)
    weights = weights_of(model)
    for ids, values in zip(sentences, each(SentenceScores(model, precision), sentences), strict=True):
        expected = reference_rnnlm.log_probs(weights, [*ids, END_ID])
        assert values == pytest.approx(expected, rel=tolerance, abs=tolerance if precision == torch.float64 else None)


@pytest.mark.parametrize("hidden_size", [3, 32, 50])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_a_score_does_not_depend_on_its_company(hidden_size, precision):
    model = rnnlm_network(hidden_size, 301, scale=0.3, dtype=torch.float32)
    scores, sentences = SentenceScores(model, precision), some_sentences(3 * ROWS, 301)
    together = each(scores, sentences)
    order = np.random.default_rng(1).permutation(len(sentences))
    for i, values in zip(order, each(scores, [sentences[i] for i in order]), strict=True):
        assert np.array_equal(values, together[i])
    for ids, values in list(zip(sentences, together, strict=True))[:20]:
        assert np.array_equal(each(scores, [ids])[0], values)


def test_each_distinct_prefix_is_computed_once(monkeypatch):
    model, computed = rnnlm_network(dtype=torch.float32), []
    scores = SentenceScores(model)
    next_states = scores.next_states
    monkeypatch.setattr(
        scores, "next_states", lambda words, states: computed.append(len(words)) or next_states(words, states)
    )
    each(scores, [[2, 3, 4], [2, 3, 5], [2], [2, 3, 4]])
    assert computed == [1, 1, 1, 2, 0]  # after <s>, 2, 3, 4 and 5; nothing follows an end


@pytest.mark.parametrize("cells", [1, 20, 100])
def test_how_many_sentences_make_a_trie_does_not_matter(monkeypatch, cells):
    scores, sentences = SentenceScores(rnnlm_network(dtype=torch.float32)), some_sentences(40)
    expected = each(scores, sentences)
    monkeypatch.setattr(rnnlm_module, "TRIE_CELLS", cells)
    for values, one in zip(each(scores, sentences), expected, strict=True):
        assert np.array_equal(values, one)


def test_nothing_to_score_is_no_score():
    assert SentenceScores(rnnlm_network(dtype=torch.float32)).log_probs(*laid_out([])).shape == (0,)


def test_what_the_model_has_learned_meanwhile_counts():
    model = rnnlm_network(dtype=torch.float32)
    scores = SentenceScores(model)
    before = each(scores, [[2, 3]])[0]
    with torch.no_grad():
        model.G[3] += 1
    assert not np.array_equal(each(scores, [[2, 3]])[0], before)
