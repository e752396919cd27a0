"""The gated recurrence over packed rows against a loop over phrases, and its written-out gradient against autograd's."""

import pytest
import torch

from moses_rnn.models.hardware import COMPILED
from moses_rnn.models.recurrence import Recurrence

H = 3
LENGTHS = [4, 2, 2, 1, 0]  # steps of each phrase; the last has none
ACTIVE = [4, 3, 1, 1]
RESETS = pytest.mark.parametrize("reset_after", [True, False], ids=["after", "before"])


def operands(dtype=torch.float64):
    """x (nodes × 3H), c (phrases × 3H), h_0 (phrases × H), and U_z, U_r, U."""
    random = torch.Generator().manual_seed(1)
    sizes = (sum(ACTIVE), 3 * H), (len(LENGTHS), 3 * H), (len(LENGTHS), H), (H, H), (H, H), (H, H)
    return [torch.randn(size, generator=random, dtype=torch.float64).to(dtype).requires_grad_() for size in sizes]


def states(reset_after, x, c, h_0, *matrices, dtype=torch.float64, **options):
    return Recurrence(*matrices, reset_after, dtype, **options).states(x, c, h_0, ACTIVE)


def step(reset_after, x, c, h, U_z, U_r, U):
    """h_t, z and r of one phrase by the equations."""
    x_z, x_r, x_h = (x + torch.cat([c[: 2 * H], torch.zeros_like(h)])).split(H)
    z, r = torch.sigmoid(x_z + U_z @ h), torch.sigmoid(x_r + U_r @ h)
    C = c[2 * H :]
    h_tilde = torch.tanh(x_h + (r * (U @ h + C) if reset_after else U @ (r * h) + C))
    return z * h + (1 - z) * h_tilde, z, r


def by_phrases(reset_after, x, c, h_0, *matrices):
    """h_t, z and r of every step, packed; nodes × H each. Each phrase goes its way alone."""
    of_node = {}
    for phrase, length in enumerate(LENGTHS):
        h = h_0[phrase]
        for t in range(length):
            node = sum(ACTIVE[:t]) + phrase
            of_node[node] = step(reset_after, x[node], c[phrase], h, *matrices)
            h = of_node[node][0]
    return [torch.stack(rows) for rows in zip(*(of_node[node] for node in range(sum(ACTIVE))), strict=True)]


@RESETS
def test_states_and_gates_are_those_of_each_phrase_alone(reset_after):
    given = operands()
    h, z, r = by_phrases(reset_after, *given)
    torch.testing.assert_close(states(reset_after, *given), h, rtol=1e-12, atol=1e-14)
    gates = Recurrence(*given[3:], reset_after, torch.float64).gates(*given[:3], ACTIVE)
    torch.testing.assert_close(gates, (z.detach(), r.detach()), rtol=1e-12, atol=1e-14)


@RESETS
def test_the_gradient_is_that_of_autograd(reset_after):
    """Every state counts, not the last ones alone."""
    weights = torch.randn(sum(ACTIVE), H, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    gradients = []
    for h in (lambda given: by_phrases(reset_after, *given)[0], lambda given: states(reset_after, *given)):
        given = operands()
        h(given).backward(weights)
        gradients.append([tensor.grad for tensor in given])
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-14)


@RESETS
def test_the_gradient_is_that_of_finite_differences(reset_after):
    assert torch.autograd.gradcheck(lambda *given: states(reset_after, *given), operands())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
@RESETS
def test_fused_and_unfused_steps_agree(reset_after):
    gradients = []
    for options in ({}, {"kernel": COMPILED}):
        given = operands(torch.float32)
        h = states(reset_after, *given, dtype=torch.float32, **options)
        h.sum().backward()
        gradients.append([h, *(tensor.grad for tensor in given)])
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)


@RESETS
def test_products_in_bfloat16_leave_states_and_gradients_in_float32(reset_after):
    exact, given = states(reset_after, *operands()), operands(torch.float32)
    h = states(reset_after, *given, dtype=torch.bfloat16)
    h.sum().backward()
    assert {h.dtype, *(tensor.grad.dtype for tensor in given)} == {torch.float32}
    torch.testing.assert_close(h.double(), exact, rtol=0, atol=0.05)
    assert not torch.equal(h, states(reset_after, *given, dtype=torch.float32))


@RESETS
def test_phrases_without_steps_have_no_states(reset_after):
    _, c, h_0, *matrices = operands()
    recurrence = Recurrence(*matrices, reset_after, torch.float64)
    x = torch.zeros(0, 3 * H, dtype=torch.float64)
    assert recurrence.states(x, c, h_0, []).shape == (0, H)
    assert [gate.shape for gate in recurrence.gates(x, c, h_0, [])] == [(0, H)] * 2
