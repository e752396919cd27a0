"""The work between products that learns, compiled and not: the same values and gradients."""

import pytest
import torch

from moses_rnn.networks.hardware import EAGER, Kernel
from moses_rnn.networks.recurrence import Recurrence
from moses_rnn.networks.softmax import chosen_log_probs

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
H, ACTIVE = 3, [4, 3, 1, 1]  # five phrases, of which the last one has no step


def states(kernel, reset_after, x, c, h_0, *matrices):
    return Recurrence(*matrices, reset_after, kernel).states(x, c, h_0, ACTIVE)


def log_probs(kernel, projected, G_l, b_G):
    return chosen_log_probs(projected, G_l, b_G, torch.tensor([2, 0, 7, 2, 5]), kernel)


SIZES = (sum(ACTIVE), 3 * H), (5, 3 * H), (5, H), (H, H), (H, H), (H, H)
FUNCTIONS = {
    "reset after": (lambda kernel, *given: states(kernel, True, *given), SIZES),
    "reset before": (lambda kernel, *given: states(kernel, False, *given), SIZES),
    "words": (log_probs, ((5, 3), (8, 3), (8,))),
}


@pytest.mark.parametrize(("function", "sizes"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_fused_and_unfused_work_agree(function, sizes):
    results = []
    for kernel in (EAGER, Kernel(compiled=True)):
        random = torch.Generator().manual_seed(1)
        given = [torch.randn(size, generator=random).requires_grad_() for size in sizes]
        values = function(kernel, *given)
        values.sum().backward()
        results.append([values, *(tensor.grad for tensor in given)])
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)
