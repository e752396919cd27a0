"""The native core's products, recurrences and normalisations, and their gradients, against float64."""

import pytest
import torch

from moses_rnn.errors import MosesRnnError
from moses_rnn.native import INSTRUCTION_SETS, SWITCH
from moses_rnn.networks.compute import EAGER
from moses_rnn.networks.native_learning import NativeKernel, core_named, instructions_to_learn
from moses_rnn.networks.recurrence import Recurrence
from moses_rnn.networks.softmax import chosen_log_probs
from tests.networks.native_kernels import (
    BF16,
    EACH,
    FLOAT32,
    KINDS,
    close,
    gradients_of_network,
    kernel_of,
    needs_native,
    similarity,
)
from tests.networks.networks import CUSTOM

pytestmark = needs_native
SHAPES = [(1, 1, 1), (7, 33, 19), (64, 100, 37), (13, 450, 70), (500, 35, 45)]  # rows, inner, columns


def some(*sizes, seed=1, scale=1.0):
    """Float64 tensors that float32 holds exactly."""
    random = torch.Generator().manual_seed(seed)
    return [(torch.randn(size, generator=random) * scale).double() for size in sizes]


def computed(function, operands, dtype):
    """What it gives of operands in a type, and their gradients; each result counts by a weight of its own."""
    given = [tensor.to(dtype).clone().requires_grad_() for tensor in operands]
    values = function(*given)
    values.backward(some(values.shape, seed=2)[0].to(dtype))
    return [values.detach(), *(tensor.grad for tensor in given)]


@EACH
@pytest.mark.parametrize("shape", SHAPES)
def test_products_and_their_gradients(kind, shape):
    rows, inner, columns = shape
    operands = some((rows, inner), (columns, inner))
    exact = computed(torch.nn.functional.linear, operands, torch.float64)
    values = computed(lambda x, W: kernel_of(*kind).matmul(x, W), operands, torch.float32)
    close(values, exact, kind[1])


@EACH
def test_operands_may_be_parts_of_others_and_lie_across(kind):
    x, W = some((40, 9), (22, 40))
    exact = torch.nn.functional.linear(x[:20].T, W[1:8, 5:25])
    value = kernel_of(*kind).matmul(x.float()[:20].T, W.float()[1:8, 5:25])
    close([value], [exact], kind[1])


@EACH
@pytest.mark.parametrize("reset_after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("H", [3, 40, 64])
def test_states_and_their_gradients(kind, reset_after, H):
    active = [21, 13, 5, 1]
    phrases = active[0] + 1  # and one without steps
    x, c, h_0 = some((sum(active), 3 * H), (phrases, 3 * H), (phrases, H))
    operands = x, c, h_0, *some((H, H), (H, H), (H, H), seed=3, scale=H**-0.5)

    def states(*given, kernel=EAGER):
        return Recurrence(*given[3:], reset_after, kernel).states(*given[:3], active)

    def native(*given):
        return states(*given, kernel=kernel_of(*kind))

    close(computed(native, operands, torch.float32), computed(states, operands, torch.float64), kind[1])


@FLOAT32
def test_states_near_0_are_as_exact_as_large_ones(instructions):
    values = torch.cat([torch.logspace(-12, 1, 200), -torch.logspace(-12, 1, 200)])
    x = torch.zeros(400, 3)
    x[:, 2] = values
    nothing, U = torch.zeros(400, 3), torch.zeros(1, 1)
    recurrence = Recurrence(U, U, U, True, kernel_of(instructions))
    states = recurrence.states(x, nothing, nothing[:, :1], [400])[:, 0]
    torch.testing.assert_close(states.double(), values.double().tanh() / 2, rtol=5e-7, atol=0)


@pytest.mark.parametrize("reset_after", [True, False], ids=["after", "before"])
def test_phrases_without_steps_have_no_states(reset_after):
    x, c, h_0, U = (tensor.float().requires_grad_() for tensor in some((0, 9), (2, 9), (2, 3), (3, 3)))
    states = Recurrence(U, U, U, reset_after, kernel_of(0)).states(x, c, h_0, [])
    assert states.shape == (0, 3)
    states.sum().backward()
    assert not U.grad.any()


@EACH
@pytest.mark.parametrize(("nodes", "R", "K"), [(1, 1, 1), (30, 12, 700), (420, 35, 90), (5, 3, 512)])
def test_normalised_scores_and_their_gradients(kind, nodes, R, K):
    operands = some((nodes, R), (K, R), (K,))
    words = torch.arange(nodes) ** 2 % K

    def log_probs(*given, kernel=EAGER):
        return chosen_log_probs(*given, words, kernel)

    def native(*given):
        return log_probs(*given, kernel=kernel_of(*kind))

    values, exact = computed(native, operands, torch.float32), computed(log_probs, operands, torch.float64)
    if K == 1:  # p = 1 whatever is learned
        assert all(tensor.abs().max() < 0.01 for tensor in values)
    else:
        close(values, exact, kind[1])


@FLOAT32
def test_large_scores_do_not_overflow(instructions):
    projected, G_l, b_G = some((6, 4), (50, 4), (50,))
    words = torch.arange(6)
    exact = chosen_log_probs(1e4 * projected, G_l, b_G, words, EAGER)
    given = (1e4 * projected).float(), G_l.float(), b_G.float()
    values = chosen_log_probs(*given, words, kernel_of(instructions))
    torch.testing.assert_close(values.double(), exact, rtol=1e-6, atol=1e-2)


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
@EACH
def test_the_gradient_of_a_network_is_that_of_the_equations(kind, switches):
    values, again = (gradients_of_network(switches, kernel_of(*kind)) for _ in range(2))
    assert all(map(torch.equal, values, again))
    exact = gradients_of_network(switches)
    if kind[1] == torch.float32:
        close(values, exact, torch.float32)
    else:
        assert similarity(values, exact) > 0.999


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_tiles_written_out_in_software_learn(software_tiles, switches):
    values = gradients_of_network(switches, kernel_of(software_tiles, torch.bfloat16))
    assert similarity(values, gradients_of_network(switches)) > 0.999


def test_what_learns_is_the_machines_choice(monkeypatch):
    assert instructions_to_learn("cuda", "fp32") == ""
    for name in INSTRUCTION_SETS:
        monkeypatch.setenv(SWITCH, name)
        used = instructions_to_learn("cpu", "fp32")
        assert INSTRUCTION_SETS.index(used) <= INSTRUCTION_SETS.index(name)
        assert instructions_to_learn("cpu", "bf16") == (used if INSTRUCTION_SETS.index(used) >= BF16 else "")
    monkeypatch.setenv(SWITCH, "0")
    assert instructions_to_learn("cpu", "fp32") == ""


def test_instructions_that_are_not_there_are_refused(monkeypatch):
    monkeypatch.setenv(SWITCH, "portable")
    assert core_named("portable").instructions == 0
    with pytest.raises(MosesRnnError, match="expected the native core with amx, found native core, portable"):
        core_named("amx")


def test_a_step_without_memory_says_so():
    class Functions:
        moses_rnn_train_product = staticmethod(lambda *arguments: 1)

    core = kernel_of(KINDS[0][0]).core
    with pytest.raises(MemoryError, match="a step of training"):
        NativeKernel(core=type(core)(Functions, 0)).run("product")
