"""Learning while reading against scalar loops; at a rate of 0 nothing changes, to the bit."""

import numpy as np
import pytest
import torch

from moses_rnn.inference.dynamic import Learner
from moses_rnn.inference.rnnlm import SentenceScores
from moses_rnn.models.vocabulary import END_ID
from tests.models import reference_rnnlm
from tests.models.networks import laid_out, rnnlm_network, some_sentences, weights_of

REACHES = pytest.mark.parametrize("reach", [0, 1, 2])


def by_sentences(learner, sentences):
    """Each sentence's values, with a step after each."""
    values = []
    for ids in sentences:
        values.append(learner.scores.log_probs(*laid_out([ids])))
        learner.learn(ids)
    return values


def by_words(learner, sentences):
    return [learner.read(ids) for ids in sentences]


def double(rate, reach):
    return Learner(rnnlm_network(), torch.float64, rate, reach)


WAYS = [(by_sentences, reference_rnnlm.dynamic_by_sentences), (by_words, reference_rnnlm.dynamic_by_words)]


@REACHES
@pytest.mark.parametrize(("way", "reference"), WAYS, ids=["sentence", "word"])
def test_values_and_weights_are_those_of_the_equations(way, reference, reach):
    sentences = some_sentences(12, longest=6)
    learner = double(0.1, reach)
    values = way(learner, sentences)
    expected, weights = reference(
        weights_of(rnnlm_network()), [[*ids, END_ID] for ids in sentences], rate=0.1, reach=reach
    )
    for one, other in zip(values, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-10)
    for name, rows in weights.items():
        given = learner.model.state_dict()[name]
        torch.testing.assert_close(given, torch.tensor(rows, dtype=torch.float64), rtol=0, atol=1e-10)


@pytest.mark.parametrize("way", [by_sentences, by_words])
@pytest.mark.parametrize("hidden_size", [3, 32, 50])
def test_at_a_rate_of_0_it_is_static_to_the_bit(way, hidden_size):
    model = rnnlm_network(hidden_size, 301, scale=0.3, dtype=torch.float32)
    sentences = some_sentences(30, 301)
    flat, lengths = laid_out(sentences)
    static = SentenceScores(model).log_probs(flat, lengths)
    assert np.array_equal(np.concatenate(way(Learner(model, rate=0.0), sentences)), static)


def test_the_first_sentence_is_scored_before_it_is_learned_from():
    model = rnnlm_network(dtype=torch.float32)
    flat, lengths = laid_out([[2, 3, 4]])
    static = SentenceScores(model).log_probs(flat, lengths)
    first, again = by_sentences(Learner(model), [[2, 3, 4], [2, 3, 4]])
    assert np.array_equal(first, static)
    assert again.sum() > first.sum()  # it was learned from
    word_by_word = Learner(model).read([2, 3, 4])
    assert word_by_word[0] == static[0]
    assert not np.array_equal(word_by_word, static)


def test_the_model_given_stays_as_it_is():
    model = rnnlm_network(dtype=torch.float32)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    learner = Learner(model)
    learner.learn([2, 3])
    learner.read([2, 3])
    for name, tensor in before.items():
        assert torch.equal(model.state_dict()[name], tensor)
        assert not torch.equal(learner.model.state_dict()[name], tensor)
