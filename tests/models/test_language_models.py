"""What language models have in common: a summary, an output, log p and log Z."""

import pytest
import torch

from moses_rnn.models.folders import Kind
from moses_rnn.models.language_models import check_language_model
from tests.models.networks import bengio_network, cslm_network, some_n_grams

NETWORKS = {"cslm": cslm_network, "bengio": lambda: bengio_network(dtype=torch.float32)}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_log_p_and_log_z_are_those_of_summary_and_output(network):
    model = network()
    n_grams = torch.from_numpy(some_n_grams(30))
    contexts, words = n_grams[:, :-1], n_grams[:, -1]
    log_p, log_Z = model.log_probs(contexts, words)
    logits = model.summary(contexts) @ model.output.T + model.b_G
    torch.testing.assert_close(log_Z, logits.logsumexp(1))
    torch.testing.assert_close(log_p, logits.log_softmax(1)[torch.arange(30), words])
    assert model.words == len(model.output) == 6


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_products_may_be_of_another_type(network):
    model = network()
    n_grams = torch.from_numpy(some_n_grams(30))
    whole, half = (
        model.log_probs(n_grams[:, :-1], n_grams[:, -1], dtype)[0] for dtype in (torch.float32, torch.bfloat16)
    )
    assert half.dtype == torch.float32
    assert not torch.equal(half, whole)
    torch.testing.assert_close(half, whole, rtol=0.1, atol=0.1)


VALID = {
    "network": "x", "unit": "phrases", "direction": "source-to-target", "rare": None, "target_vocabulary_size": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{}, {"network": "y"}, {"unit": None}, {"direction": "target-to-source"}, {"rare": "posall"},
     {"target_vocabulary_size": 0}, {"target_vocabulary_size": True}],
)  # fmt: skip
def test_the_keys_of_a_config_are_checked(wrong):
    refused = []
    kind = Kind("x", "X", ("target",), lambda *_: None, lambda *_: None, format=2)
    check_language_model({**VALID, **wrong}, lambda key, valid, _: valid or refused.append(key), kind)
    assert refused == list(wrong)
