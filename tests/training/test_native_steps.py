"""The native core's optimisers against torch's and Zeiler's equations, and trainings that it computes."""

import dataclasses

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.training.descent import OPTIMISERS, NativeSteps
from moses_rnn.training.networks import CUSTOMARY_RATES, for_optimiser
from tests.networks.native_kernels import FLOAT32, kernel_of, needs_native
from tests.training.small import FAST, network, train

pytestmark = needs_native
NATIVE = instructions_to_learn("cpu", "fp32")
EACH = pytest.mark.parametrize("optimiser", CUSTOMARY_RATES)


def natively(config=FAST, **changes):
    return dataclasses.replace(config, native=NATIVE, **changes)


@EACH
def test_the_steps_are_those_that_torch_does(corpus, optimiser):
    """With decay on matrices alone, and a factor on the gradient."""
    plain = dataclasses.replace(for_optimiser(FAST, optimiser), weight_decay=0.3)
    models = network(corpus), network(corpus)
    optimisers = [
        OPTIMISERS[optimiser](model.parameters(), config)
        for model, config in zip(models, (plain, natively(plain)), strict=True)
    ]
    random = torch.Generator().manual_seed(0)
    for _ in range(5):
        for one, other in zip(*(model.parameters() for model in models), strict=True):
            one.grad = torch.randn(one.shape, generator=random)
            other.grad = one.grad.clone()
        for model, steps in zip(models, optimisers, strict=True):
            weights = list(model.parameters())
            steps.step_along(0.5, weights[::2])
            steps.step_along(0.5, weights[1::2])
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other)
    states = [steps.state_dict()["state"] for steps in optimisers]
    torch.testing.assert_close(*states, check_dtype=True)


@FLOAT32
@pytest.mark.parametrize("size", [0, 1, 37, 4096, 100_003])
def test_squares_are_added_exactly_enough(instructions, size):
    numbers = torch.randn(size, generator=torch.Generator().manual_seed(1))
    total = NativeSteps(kernel_of(instructions).core).sum_squares(numbers)
    assert total == pytest.approx(float(numbers.double().square().sum()), rel=1e-6)


def test_what_is_no_number_stays_none():
    steps = NativeSteps(kernel_of(0).core)
    assert np.isnan(steps.sum_squares(torch.tensor([1.0, float("nan")])))
    assert np.isinf(steps.sum_squares(torch.tensor([1.0, float("inf")])))


def test_a_run_by_the_core_is_not_continued_by_torch(corpus, tmp_path):
    train(corpus, tmp_path, native=NATIVE, max_epochs=1)
    with pytest.raises(CheckpointError, match=f"found others: native '{NATIVE}', now ''"):
        train(corpus, tmp_path, max_epochs=2)
