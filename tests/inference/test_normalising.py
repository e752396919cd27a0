"""log p of all words and of some: the same, however little is computed."""

import math

import numpy as np
import pytest
import torch

from moses_rnn.inference.normalising import OutputLayer
from moses_rnn.inference.steps import Columns, node_blocks

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


def test_candidates_alone_are_normalised_over():
    layer, projected, exact = layer_and_states(torch.float64, torch.float64)
    words = torch.tensor([0, 1, 4, 17, 49])
    allowed = torch.tensor([[True, True, True, False, True], [True, True, False, True, False]])
    sources = torch.tensor([0, 0, 1, 1, 1, 0])
    values = layer.log_probs(projected, sources, Columns(words, allowed))
    for prefix, source in enumerate(sources.tolist()):
        mine = [k for k, may in zip(words.tolist(), allowed[source].tolist(), strict=True) if may]
        total = sum(math.exp(exact[prefix, k]) for k in mine)
        expected = [exact[prefix, k].item() - math.log(total) if k in mine else -math.inf for k in words.tolist()]
        assert values[prefix].tolist() == pytest.approx(expected, abs=1e-12)


def test_all_words_as_candidates_change_nothing():
    layer, projected, _ = layer_and_states(torch.float32, torch.float32)
    every = Columns(torch.arange(K), torch.ones(1, K, dtype=torch.bool))
    sources = torch.zeros(PREFIXES, dtype=torch.int64)
    assert torch.equal(layer.log_probs(projected, sources, every), layer.log_probs(projected, sources))
