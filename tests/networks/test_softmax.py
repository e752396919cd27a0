"""log p of words, with the gradients that autograd would give; all of them or some."""

from math import exp, log

import numpy as np
import pytest
import torch

from moses_rnn.networks.compute import EAGER
from moses_rnn.networks.softmax import OutputLayer, chosen_log_probs, learned_log_probs
from moses_rnn.networks.steps import node_blocks

WORDS = torch.tensor([2, 0, 7, 2, 5])


def operands(dtype=torch.float64):
    """What the nodes predict (5 × 3), G_l and b_G of 8 words."""
    random = np.random.default_rng(1)
    return [torch.from_numpy(random.normal(size=size)).to(dtype).requires_grad_() for size in ((5, 3), (8, 3), (8,))]


def plain(projected, G_l, b_G):
    return (projected @ G_l.T + b_G).log_softmax(1)[torch.arange(len(WORDS)), WORDS]


def test_large_scores_do_not_overflow():
    projected, G_l, b_G = operands(torch.float32)
    values = chosen_log_probs(1e4 * projected.detach(), G_l, b_G, WORDS, EAGER)
    exact = plain(1e4 * projected.detach().double(), G_l.double(), b_G.double())
    torch.testing.assert_close(values.double(), exact, rtol=1e-6, atol=1e-2)


def of_partition(projected, G_l, b_G, ids, words):
    """The same number by number: an exact softmax over the partition alone."""
    for row, word in zip(projected, words, strict=True):
        logits = {k: sum(g * r for g, r in zip(G_l[k], row, strict=True)) + b_G[k] for k in ids}
        yield log(exp(logits[word]) / sum(map(exp, logits.values())))


def test_a_partition_is_normalised_over_alone():
    given, ids = operands(), [0, 1, 2, 5, 7]
    projected, G_l, b_G = given
    values = learned_log_probs(projected, (G_l, b_G), WORDS, EAGER, torch.tensor(ids))
    numbers = [tensor.tolist() for tensor in given]
    expected = list(of_partition(*numbers, ids, WORDS.tolist()))
    np.testing.assert_allclose(values.detach(), expected, rtol=0, atol=1e-12)
    values.sum().backward()
    outside = [3, 4, 6]
    assert not G_l.grad[outside].any()
    assert not b_G.grad[outside].any()
    assert G_l.grad[ids].all()


# --- for scoring

R, K, PREFIXES = 4, 50, 6
ROWS, CHOSEN = np.array([0, 0, 2, 3, 5, 5, 5]), np.array([1, 49, 3, 0, 7, 7, 8])


def layer_and_states(product_dtype, dtype, scale=1.0):
    random = torch.Generator().manual_seed(1)
    G = torch.randn(K, R, generator=random, dtype=torch.float64) * scale
    b_G, projected = torch.randn(K, generator=random), torch.randn(PREFIXES, R, generator=random)
    exact = torch.log_softmax(projected.double() @ G.T + b_G.double(), 1)
    return OutputLayer(G, b_G, product_dtype, dtype), projected.to(dtype), exact


def chosen(layer, projected):
    blocks = node_blocks(ROWS, PREFIXES, K)
    return layer.chosen(projected, torch.from_numpy(ROWS), torch.from_numpy(CHOSEN), blocks)


def test_near_certainty_is_exact_in_bfloat16():
    layer, projected, exact = layer_and_states(torch.bfloat16, torch.float32, scale=30.0)
    values = chosen(layer, projected).double()
    torch.testing.assert_close(values, exact[ROWS, CHOSEN], rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_certain_word_keeps_its_relative_precision(dtype):
    """exp(-30) is lost beside 1 in float32; alone it is not. Of equal ones, one alone is taken out."""
    G = torch.tensor([[-30.0], [-30.0], [0.0], [-30.0]])
    layer = OutputLayer(G, torch.zeros(4), dtype, torch.float32)
    blocks = node_blocks(np.array([0, 1]), 2, 4)
    certain, even = layer.chosen(torch.tensor([[1.0], [0.0]]), torch.tensor([0, 1]), torch.tensor([2, 3]), blocks)
    assert certain.item() == pytest.approx(-3 * exp(-30), rel=1e-5)
    assert even.item() == pytest.approx(-log(4))
