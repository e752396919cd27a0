"""Language models: log Z, how far errors go back, and learning while reading, against scalar loops."""

import pytest
import torch

from moses_rnn.networks.batches import Batch
from moses_rnn.networks.hardware import Compute
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.scorers.dynamic import Learner
from tests.networks import reference_rnnlm
from tests.networks.id_pairs import flat
from tests.networks.networks import (
    bengio_network,
    cslm_network,
    rnnlm_network,
    some_n_grams,
    some_sentences,
    weights_of,
)

NETWORKS = {"cslm": cslm_network, "bengio": lambda: bengio_network(dtype=torch.float32)}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_log_z_is_that_of_summary_and_output(network):
    model = network()
    n_grams = torch.from_numpy(some_n_grams(30))
    contexts, words = n_grams[:, :-1], n_grams[:, -1]
    _, log_Z = model.log_probs(contexts, words)
    G, b_G = model.output
    logits = model.summary(contexts) @ G.T + b_G
    torch.testing.assert_close(log_Z, logits.logsumexp(1))


@pytest.mark.parametrize("reach", [0, 1, 2, 3, 99])
def test_errors_go_back_as_far_as_they_shall(reach):
    model, sentences = rnnlm_network().requires_grad_(True), some_sentences(8)
    batch = Batch.from_lists(sorted(sentences, key=len, reverse=True))
    nats = -model.word_log_probs(batch, reach=reach).sum()
    given = dict(zip(("embedding", "U", "G"), torch.autograd.grad(nats, list(model.parameters())), strict=True))
    weights = weights_of(model)
    expected = {name: torch.zeros_like(tensor) for name, tensor in given.items()}
    for ids in sentences:
        for name, rows in reference_rnnlm.sentence_gradient(weights, [*ids, END_ID], reach).items():
            expected[name] += torch.tensor(rows)
    for name, rows in expected.items():
        torch.testing.assert_close(given[name], rows, rtol=1e-6, atol=1e-6)


def by_sentences(learner, sentences):
    """Each sentence's values, with a step after each."""
    values = []
    for ids in sentences:
        values.append(learner.scores.log_probs(*flat([ids])))
        learner.learn(ids)
    return values


def by_words(learner, sentences):
    return [learner.read(ids) for ids in sentences]


WAYS = [(by_sentences, reference_rnnlm.dynamic_by_sentences), (by_words, reference_rnnlm.dynamic_by_words)]


@pytest.mark.parametrize(("way", "reference"), WAYS, ids=["sentence", "word"])
def test_values_and_weights_are_those_of_the_equations(way, reference):
    sentences = some_sentences(12, longest=6)
    learner = Learner(rnnlm_network(), Compute(precision="fp64"), 0.1)
    values = way(learner, sentences)
    expected, weights = reference(weights_of(rnnlm_network()), [[*ids, END_ID] for ids in sentences], rate=0.1)
    for one, other in zip(values, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-10)
    for name, rows in weights.items():
        given = learner.model.state_dict()[name]
        torch.testing.assert_close(given, torch.tensor(rows, dtype=torch.float64), rtol=0, atol=1e-10)


def test_the_model_given_stays_as_it_is():
    model = rnnlm_network(dtype=torch.float32)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    learner = Learner(model)
    learner.learn([2, 3])
    learner.read([2, 3])
    for name, tensor in before.items():
        assert torch.equal(model.state_dict()[name], tensor)
        assert not torch.equal(learner.model.state_dict()[name], tensor)
