"""Language models: log Z, and how far errors go back, against scalar loops."""

import pytest
import torch

from moses_rnn.networks.batches import Batch
from moses_rnn.networks.vocabulary import END_ID
from tests.networks import reference_rnnlm
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
