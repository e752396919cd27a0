"""Layers of long short-term memory against the scalar equations, over packed phrases."""

import pytest
import torch

from moses_rnn.models.hardware import EAGER
from moses_rnn.models.lstm import Lstm, LstmStack, State, lstm_step
from moses_rnn.models.native_learning import NativeKernel
from moses_rnn.native import native_core
from tests.models import reference_seq2seq as reference
from tests.models.networks import weights_of, with_large_weights

ACTIVE = [4, 3, 3, 1]  # steps of phrases of 4, 3, 3 and 1 words
LENGTHS = [4, 3, 3, 1]


def layer_of(peepholes=True):
    return with_large_weights(Lstm(3, 5, peepholes=peepholes).double())


def inputs():
    """Packed inputs, and a state that each phrase begins with."""
    random = torch.Generator().manual_seed(4)
    a, h, m = (torch.randn(*shape, generator=random).double() for shape in ((sum(ACTIVE), 3), (4, 5), (4, 5)))
    return a, State(h, m)


def step_by_step(layer, a, h, m):
    """Every h_t of a phrase and its last m, by scalars."""
    weights, every = weights_of(layer), []
    for a_t in a.tolist():
        h, m = reference.lstm_step(weights, a_t, h, m, layer.peepholes)
        every.append(h)
    return every, m


@pytest.mark.parametrize("peepholes", [True, False])
def test_packed_phrases_agree_with_the_scalar_equations(peepholes):
    layer, (a, start) = layer_of(peepholes), inputs()
    states, last = layer.states(a, start, ACTIVE, torch.float64, EAGER)
    row_of = torch.cat([torch.arange(rows) for rows in ACTIVE])
    for row, (h, m) in enumerate(zip(*start, strict=True)):
        every, memory = step_by_step(layer, a[row_of == row], h.tolist(), m.tolist())
        assert len(every) == LENGTHS[row]
        torch.testing.assert_close(states[row_of == row], torch.tensor(every).double(), rtol=0, atol=1e-6)
        assert last.h[row].tolist() == pytest.approx(every[-1], abs=1e-12)
        assert last.m[row].tolist() == pytest.approx(memory, abs=1e-12)


def test_a_memory_that_is_kept_and_not_written_stays():
    m = torch.randn(2, 5).double()
    sums = torch.tensor([-1e9, 1e9, 0.3, -1e9]).double().repeat_interleave(5).expand(2, 20)  # i = 0, f = 1, o = 0
    h_t, m_t = lstm_step(sums, torch.zeros(2, 20).double(), torch.ones(3, 5).double(), m)
    assert torch.equal(m_t, m)
    assert not h_t.any()


def test_the_output_gate_sees_the_new_memory():
    """From nothing, with all sums 0: i = 1/2 and m~ = tanh(1), hence o = σ(p_o m_t)."""
    sums = torch.tensor([0.0, 0, 1, 0]).double()[None]
    p = torch.tensor([[7.0], [7], [3]]).double()
    h_t, m_t = lstm_step(sums, torch.zeros(1, 4).double(), p, torch.zeros(1, 1).double())
    assert m_t.item() == pytest.approx(torch.tanh(torch.tensor(1.0)).item() / 2)
    assert h_t.item() == pytest.approx((torch.sigmoid(3 * m_t) * torch.tanh(m_t)).item())


def test_products_are_rounded_and_states_are_not():
    layer, (a, start) = layer_of().float(), inputs()
    a, start = a.float(), State(*(tensor.float() for tensor in start))
    exact, rough = (layer.states(a, start, ACTIVE, dtype, EAGER)[0] for dtype in (torch.float32, torch.bfloat16))
    assert rough.dtype == torch.float32
    assert not torch.equal(exact, rough)
    torch.testing.assert_close(exact, rough, rtol=0, atol=0.05)


@pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")
@pytest.mark.parametrize("peepholes", [True, False])
def test_the_native_core_gives_the_same_states_and_gradients(peepholes):
    layer, (a, start) = layer_of(peepholes).float(), inputs()
    a, start = a.float(), State(*(tensor.float() for tensor in start))
    results = []
    for kernel in (EAGER, NativeKernel(core=native_core())):
        layer.zero_grad()
        states, last = layer.states(a, start, ACTIVE, torch.float32, kernel)
        (states.square().sum() + last.m.sum()).backward()
        results.append([states, last.m, *(tensor.grad for tensor in layer.parameters())])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("peepholes", [True, False])
def test_gradients_are_those_of_finite_differences(peepholes):
    layer, (a, start) = layer_of(peepholes), inputs()
    names, values = zip(*layer.named_parameters(), strict=True)

    def of_operands(a, h, m, *weights):
        named = {f"layer.{name}": tensor for name, tensor in zip(names, weights, strict=True)}
        states, last = torch.func.functional_call(Called(layer), named, (a, h, m))
        return states, *last

    operands = [tensor.requires_grad_() for tensor in (a, *start)]
    assert torch.autograd.gradcheck(of_operands, (*operands, *values), fast_mode=True)


class Called(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, a, h, m):
        return self.layer.states(a, State(h, m), ACTIVE, torch.float64, EAGER)


def test_a_layer_reads_what_the_layer_below_it_shows():
    stack = with_large_weights(LstmStack(7, 3, 5, 3, peepholes=True).double())
    assert [layer.W_i.shape for layer in stack.layers] == [(5, 3), (5, 5), (5, 5)]
    words = torch.tensor([2, 3, 4, 5, 6, 1])
    a, lasts = stack.embedding[words], []
    for layer, before in zip(stack.layers, stack.nothing(3), strict=True):
        a, last = layer.states(a, before, [3, 2, 1], torch.float64, EAGER)
        lasts.append(last)
    highest, states = stack.states(words, stack.nothing(3), [3, 2, 1], torch.float64)
    assert torch.equal(highest, a)
    assert all(torch.equal(*pair) for layers in zip(states, lasts, strict=True) for pair in zip(*layers, strict=True))


def test_units_are_left_out_of_what_each_layer_reads():
    stack = with_large_weights(LstmStack(7, 3, 5, 2, peepholes=True).double())
    words, seen = torch.tensor([2, 3, 1]), []

    def drop(x):
        seen.append(x)
        return torch.zeros_like(x)

    highest, _ = stack.states(words, stack.nothing(2), [2, 1], torch.float64, drop)
    assert torch.equal(seen[0], stack.embedding[words])
    assert [x.shape for x in seen] == [(3, 3), (3, 5)]  # e(x_t) and h^1_t, never h^2_t
    first, second = stack.layers
    nothing = torch.zeros(3, 5).double()
    unread, _ = second.states(nothing, stack.nothing(2)[1], [2, 1], torch.float64, EAGER)
    assert torch.equal(highest, unread)
    shown, _ = first.states(torch.zeros(3, 3).double(), stack.nothing(2)[0], [2, 1], torch.float64, EAGER)
    assert torch.equal(seen[1], shown)
