"""What the normaliser keeps: small probabilities beside a certain word, and one of equal words."""

import numpy as np
import pytest
import torch

from moses_rnn.networks.kernel import normaliser

K = 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_certain_word_keeps_its_relative_precision(dtype):
    """exp(-30) is lost beside 1 in float32; alone it is not."""
    logits = torch.full((1, K), -30.0, dtype=dtype)
    logits[0, 4] = 0.0
    largest, at, rest = normaliser(logits, torch.zeros(K), torch.arange(K, dtype=torch.float32))
    assert (largest.item(), at.item()) == (0.0, 4)
    assert rest.item() == pytest.approx((K - 1) * np.exp(-30), rel=1e-5)


def test_of_equal_largest_ones_the_last_is_taken_out():
    logits = torch.tensor([[0.0, 2.0, 1.0, 2.0], [3.0, 3.0, 3.0, 3.0]])
    largest, at, rest = normaliser(logits, torch.zeros(4), torch.arange(4.0))
    assert (largest.tolist(), at.tolist()) == ([2.0, 3.0], [3, 3])
    assert rest.tolist() == pytest.approx([np.exp(-2) + np.exp(-1) + 1, 3.0])
