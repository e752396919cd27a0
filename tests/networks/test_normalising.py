"""log p of all words and of some: the same, however little is computed."""

import numpy as np
import pytest
import torch

from moses_rnn.networks.softmax import OutputLayer
from moses_rnn.networks.steps import node_blocks

R, K, PREFIXES = 4, 50, 6
ROWS, WORDS = np.array([0, 0, 2, 3, 5, 5, 5]), np.array([1, 49, 3, 0, 7, 7, 8])


def layer_and_states(product_dtype, dtype, scale=1.0):
    random = torch.Generator().manual_seed(1)
    G = torch.randn(K, R, generator=random, dtype=torch.float64) * scale
    b_G, projected = torch.randn(K, generator=random), torch.randn(PREFIXES, R, generator=random)
    exact = torch.log_softmax(projected.double() @ G.T + b_G.double(), 1)
    return OutputLayer(G, b_G, product_dtype, dtype), projected.to(dtype), exact


def chosen(layer, projected):
    blocks = node_blocks(ROWS, PREFIXES, K)
    return layer.chosen(projected, torch.from_numpy(ROWS), torch.from_numpy(WORDS), blocks)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_all_words_and_some_words_agree(dtype):
    layer, projected, exact = layer_and_states(dtype, dtype)
    torch.testing.assert_close(layer.log_probs(projected, torch.arange(PREFIXES)), exact, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(chosen(layer, projected).double(), exact[ROWS, WORDS], rtol=1e-5, atol=1e-5)


def test_near_certainty_is_exact_in_bfloat16():
    layer, projected, exact = layer_and_states(torch.bfloat16, torch.float32, scale=30.0)
    values = chosen(layer, projected).double()
    torch.testing.assert_close(values, exact[ROWS, WORDS], rtol=2e-3, atol=1e-3)
