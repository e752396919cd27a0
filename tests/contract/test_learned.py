"""What learns computes what scores: the equations, their gradients, with dropout where it belongs, by every kernel."""

import re

import numpy as np
import pytest
import torch

from moses_rnn.native import native_core
from moses_rnn.networks.compute import EAGER, Kernel
from moses_rnn.networks.native_learning import NativeKernel
from moses_rnn.networks.network import drop_units
from tests.contract.rows import CASES, FIRST, TARGET, of_smoothed, of_translation
from tests.networks.id_pairs import random_pairs
from tests.networks.native_kernels import needs_native
from tests.networks.networks import weights_of

PAIRS = [*random_pairs(8), ([], []), ([2, 3], []), ([], [4, 0]), ([8, 2, 3, 4, 5, 6], [7, 2, 3, 4, 5, 6])]
LEARNED = pytest.mark.parametrize("case", [case for case in CASES if case.row.learned], ids=str)
FEW = pytest.mark.parametrize("case", [case for case in FIRST if case.row.learned], ids=str)
OF_PAIRS = [case for case in FIRST if case.row.learned in (of_translation,) or case.key == "ranker"]
OF_SENTENCES = [case for case in FIRST if any(of.material == "sentences" for of in case.row.trainings)]


@LEARNED
def test_it_is_what_the_equations_say(case):
    for dtype, off in ((torch.float64, {"abs": 1e-10}), (torch.float32, {"rel": 1e-4, "abs": 1e-5})):
        model = case.make(dtype)
        assert case.row.learned(model, PAIRS).tolist() == pytest.approx(case.expected(model, PAIRS), **off)
    alone = [case.row.learned(model, [pair]).item() for pair in PAIRS[-3:]]  # some of them have no step at all
    assert alone == pytest.approx(case.expected(model, PAIRS[-3:]), rel=1e-4)


@pytest.mark.parametrize("case", OF_SENTENCES, ids=str)
def test_smoothed_labels_cost_what_the_equations_say(case):
    model = case.make()
    expected = case.expected(model, PAIRS, smoothing=0.3)
    for partition in (None, torch.arange(len(TARGET))):
        assert of_smoothed(model, PAIRS, 0.3, partition).tolist() == pytest.approx(expected, abs=1e-10)
    check_gradients(model, lambda: of_smoothed(model, PAIRS, 0.3))


@LEARNED
def test_gradients_are_those_of_finite_differences_and_every_weight_counts(case):
    model = case.make()
    check_gradients(model, lambda: case.row.learned(model, PAIRS))


def check_gradients(model, learned):
    """Finite differences along a random way of each tensor, of a sum in which each pair counts otherwise."""
    shares, random = torch.linspace(0.5, 2, len(PAIRS)).double(), torch.Generator().manual_seed(3)
    model.requires_grad_(True)
    (learned() * shares).sum().backward()
    for name, tensor in model.named_parameters():
        way, sums = torch.randn(tensor.shape, generator=random, dtype=torch.float64), []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                tensor.add_(way, alpha=step)
                sums.append((learned() * shares).sum().item())
                tensor.sub_(way, alpha=step)
        along = (tensor.grad * way).sum().item()
        assert along == pytest.approx((sums[0] - sums[1]) / 2e-6, rel=1e-5, abs=1e-6), name
        assert along, name


@LEARNED
def test_dropout_is_of_what_is_read_and_never_on_the_way_from_state_to_state(case):
    """Twice as much of all that can be left out is as good as tensors twice as large that read it."""
    model = case.make()
    weights = {
        name: (2 * np.array(values)).tolist() if re.search(case.row.dropped, name) else values
        for name, values in {**weights_of(model), **case.row.constants}.items()
    }
    assert weights != weights_of(model)
    doubled = case.row.learned(model, PAIRS, drop=lambda x: 2 * x)
    assert doubled.tolist() == pytest.approx(case.expected(model, PAIRS, weights), abs=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 0.999999])
def test_units_are_left_out_or_scaled_up(share):
    x = 1 + torch.rand(200, 300, generator=torch.Generator().manual_seed(1))
    dropped = drop_units(share, 7, torch.device("cpu"))(x)
    out = dropped == 0
    assert out.float().mean().item() == pytest.approx(share, abs=0.01)  # 6 standard deviations of 60,000 units
    torch.testing.assert_close(dropped[~out], x[~out] / (1 - share))


def gradients(case, kernel=EAGER):
    """The scores, and the gradient of a sum in which each counts otherwise, as one vector each."""
    model = case.make(torch.float32, scale=0.3).requires_grad_(True)
    model.use_kernel(kernel)
    values = case.row.learned(model, PAIRS)
    (values * torch.linspace(0.5, 2, len(PAIRS))).sum().backward()
    return values.detach(), torch.cat([tensor.grad.flatten() for tensor in model.parameters()])


@FEW
def test_rounded_products_stay_near(case):
    exact, rough = gradients(case), gradients(case, Kernel(torch.bfloat16))
    assert rough[0].dtype == rough[1].dtype == torch.float32
    assert 0 < (exact[0] - rough[0]).abs().mean() < 0.05
    assert torch.nn.functional.cosine_similarity(exact[1], rough[1], dim=0) > 0.99


@needs_native
@pytest.mark.parametrize("case", [case for case in CASES if case.key in {of.key for of in OF_PAIRS}], ids=str)
def test_the_native_core_gives_the_same_gradients(case):
    for native, eager in zip(gradients(case, NativeKernel(core=native_core())), gradients(case), strict=True):
        torch.testing.assert_close(native, eager, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:torch.searchsorted")  # of a network that has no partitions
@pytest.mark.parametrize("case", [case for case in FIRST if case.row.learned is of_translation], ids=str)
def test_a_partition_of_all_words_is_the_exact_sum(case):
    model, every = case.make(), torch.arange(len(TARGET))
    torch.testing.assert_close(of_translation(model, PAIRS, partition=every), of_translation(model, PAIRS))


@FEW
def test_seeds_decide_the_first_weights(case):
    model, drawn = case.make(torch.float32), []
    for seed in (1, 1, 2):
        model.initialise(seed, 0.1)
        drawn.append(torch.cat([tensor.flatten() for tensor in model.parameters()]))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


PAPERS = {  # words of each side, and how many weights the papers' networks have of them
    "encdec": ((15_002, 15_002), 18_274_602),
    "rnnsearch": ((30_002, 30_002), 80_445_482),
    "seq2seq": ((160_002, 80_002), 384_142_002),
    "bengio": ((16_383,), 5_762_543),
}


@pytest.mark.parametrize("key", PAPERS)
def test_the_defaults_are_the_papers_sizes(key):
    words, count = PAPERS[key]
    case = next(case for case in FIRST if case.key == key)
    with torch.device("meta"):
        weights = case.architecture.module(case.architecture.config(*words), seed=None).state_dict().values()
    assert sum(tensor.numel() for tensor in weights) == count
