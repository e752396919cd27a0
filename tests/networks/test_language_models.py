"""What feed-forward language models have in common: log Z, which only they give with log p."""

import pytest
import torch

from tests.networks.networks import bengio_network, cslm_network, some_n_grams

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
