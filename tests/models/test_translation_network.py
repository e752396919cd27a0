"""What training asks of every network of pairs."""

import pytest
import torch

from moses_rnn.models.batches import Batch
from moses_rnn.models.hardware import COMPILED, EAGER
from moses_rnn.models.translation_network import TranslationNetwork
from tests.models.networks import CUSTOM, encdec_network, search_network, seq2seq_network

NETWORKS = {"encdec": encdec_network(CUSTOM[0]), "rnnsearch": search_network(), "seq2seq": seq2seq_network()}


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
def test_it_scores_each_word_of_its_targets(model):
    assert isinstance(model, TranslationNetwork)
    targets = Batch.from_lists([[2, 3], [4], []])
    values = model.word_log_probs(Batch.from_lists([[2, 3], [4]]), targets, torch.tensor([0, 1, 1]))
    assert values.shape == targets.packed().shape
    assert (values < 0).all()


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
def test_it_describes_itself_and_takes_a_kernel(model):
    assert f"H {model.config.width}" in model.config.description
    model.use_kernel(COMPILED)
    assert model.kernel is COMPILED
    model.use_kernel(EAGER)


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
def test_equal_seeds_give_equal_weights(model):
    drawn = []
    for seed in (1, 1, 2):
        model.initialise(seed, 0.1)
        drawn.append(torch.cat([tensor.flatten() for tensor in model.parameters()]))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
