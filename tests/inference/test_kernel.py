"""The work between products: each function against its equation, fused against unfused, in place against not."""

import numpy as np
import pytest
import torch

from moses_rnn.inference import kernel
from moses_rnn.models.hardware import COMPILED

H, E, M, K, NODES = 4, 3, 2, 9, 6
SOURCES = torch.tensor([0, 0, 1, 2, 2, 2])
random = torch.Generator().manual_seed(1)


def tensor(*shape):
    return torch.randn(shape, generator=random, dtype=torch.float64)


def operands():
    """Of each function, in float64; some are written into, so that each call wants new ones."""
    random.manual_seed(1)
    words, h, eh = torch.tensor([1, 0, 1, 2, 4, 3]), tensor(NODES, H), tensor(NODES, E + H)
    of_decoder = (tensor(NODES, H), tensor(3, H), tensor(NODES, H), tensor(H))  # U h, C c, W e, b
    return {
        "gathered": (tensor(5, E), words, tensor(3, H), SOURCES),
        "reset_state": (tensor(NODES, 2 * H), tensor(2 * H), eh, h),
        "encoder_state": (tensor(NODES, H), tensor(H), tensor(NODES, H).sigmoid(), h),
        "terms": (tensor(3, 4 * H + 2 * M), tensor(4 * H + 2 * M), H),
        "decoder_gates": (tensor(NODES, 2 * H), tensor(3, 2 * H), SOURCES),
        "decoder_state": (tensor(NODES, 2 * H), tensor(3, 2 * H), *of_decoder, SOURCES, eh, h),
        "maxout": (tensor(NODES, 2 * M), tensor(3, 2 * M), SOURCES),
        "normaliser": (tensor(NODES, K), tensor(K), torch.arange(K, dtype=torch.float64)),
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
@pytest.mark.parametrize("name", operands())
def test_fused_is_unfused(name):
    function = getattr(kernel, name)
    torch.testing.assert_close(COMPILED(function)(*operands()[name]), function(*operands()[name]))


def test_in_place_is_not_in_place():
    torch.testing.assert_close(
        kernel.normaliser_in_place(*operands()["normaliser"]), kernel.normaliser(*operands()["normaliser"])
    )


NORMALISERS = pytest.mark.parametrize("function", [kernel.normaliser, kernel.normaliser_in_place])


@NORMALISERS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_certain_word_keeps_its_relative_precision(function, dtype):
    """exp(-30) is lost beside 1 in float32; alone it is not."""
    logits = torch.full((1, K), -30.0, dtype=dtype)
    logits[0, 4] = 0.0
    largest, at, rest = function(logits, torch.zeros(K), torch.arange(K, dtype=torch.float32))
    assert (largest.item(), at.item()) == (0.0, 4)
    assert rest.item() == pytest.approx((K - 1) * np.exp(-30), rel=1e-5)


@NORMALISERS
def test_of_equal_largest_ones_the_last_is_taken_out(function):
    logits = torch.tensor([[0.0, 2.0, 1.0, 2.0], [3.0, 3.0, 3.0, 3.0]])
    largest, at, rest = function(logits, torch.zeros(4), torch.arange(4.0))
    assert (largest.tolist(), at.tolist()) == ([2.0, 3.0], [3, 3])
    assert rest.tolist() == pytest.approx([np.exp(-2) + np.exp(-1) + 1, 3.0])
