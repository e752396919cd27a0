"""Scores of sentences: to the bit the same whatever company a sentence comes in, of sizes that fill no vector."""

import numpy as np
import pytest
import torch

from moses_rnn.networks.rnnlm import ROWS, SentenceScores
from tests.networks.id_pairs import flat
from tests.networks.networks import rnnlm_network, some_sentences


def each(scores, sentences):
    """The values of each sentence, all scored together."""
    ids, lengths = flat(sentences)
    return np.split(scores.log_probs(ids, lengths), np.cumsum(lengths + 1)[:-1])


@pytest.mark.parametrize("hidden_size", [3, 32, 50])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_a_score_does_not_depend_on_its_company(hidden_size, precision):
    model = rnnlm_network(hidden_size, 301, scale=0.3, dtype=torch.float32)
    scores, sentences = SentenceScores(model, dtype=precision), some_sentences(3 * ROWS, 301)
    together = each(scores, sentences)
    order = np.random.default_rng(1).permutation(len(sentences))
    for i, values in zip(order, each(scores, [sentences[i] for i in order]), strict=True):
        assert np.array_equal(values, together[i])
    for ids, values in list(zip(sentences, together, strict=True))[:20]:
        assert np.array_equal(each(scores, [ids])[0], values)


def test_what_the_model_has_learned_meanwhile_counts():
    scores = SentenceScores(rnnlm_network(dtype=torch.float32))
    before = each(scores, [[2, 3]])[0]
    with torch.no_grad():
        scores.model.G[3] += 1
    assert not np.array_equal(each(scores, [[2, 3]])[0], before)
