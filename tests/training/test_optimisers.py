"""The optimisers against others' code or their papers' equations in numbers, and the average of their weights."""

import dataclasses

import numpy as np
import pytest
import torch

from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.training.descent import OPTIMISERS
from moses_rnn.training.networks import PHRASES, for_optimiser
from moses_rnn.training.tasks import epoch_batches
from tests.training.small import FAST, network, trainer_of


def test_adam_is_torchs(corpus, tmp_path):
    """With decay on matrices alone."""
    config = dataclasses.replace(FAST, weight_decay=0.3)
    ours, theirs = network(corpus), network(corpus)
    matrices = [tensor for tensor in theirs.parameters() if tensor.dim() > 1]
    biases = [tensor for tensor in theirs.parameters() if tensor.dim() == 1]
    reference = torch.optim.AdamW(
        [{"params": matrices}, {"params": biases, "weight_decay": 0.0}], 0.01, weight_decay=0.3
    )
    optimiser = OPTIMISERS["adam"](ours.parameters(), config)
    random = torch.Generator().manual_seed(0)
    for _ in range(5):
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            gradient = torch.randn(one.shape, generator=random)
            one.grad, other.grad = gradient.clone(), gradient / 2
        weights = list(ours.parameters())
        optimiser.step_along(0.5, weights[::2])
        optimiser.step_along(0.5, weights[1::2])
        reference.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
@pytest.mark.parametrize("compiled", [False, True])
def test_adadelta_is_zeilers(compiled):
    """Algorithm 1 of Zeiler (2012) in numpy, with both accumulators' ε inside the roots."""
    config = dataclasses.replace(PHRASES["paper"].training, compiled=compiled)
    model = EncDec(EncDecConfig(3, 3, 2, 2, 2, 2), seed=1)
    optimiser = OPTIMISERS[config.optimiser](model.parameters(), config)
    x = model.encoder.U.detach().double().numpy().copy()
    squared_gradient, squared_step = np.zeros_like(x), np.zeros_like(x)
    random = np.random.default_rng(0)
    for _ in range(20):
        g = random.normal(size=x.shape)
        squared_gradient = 0.95 * squared_gradient + 0.05 * g**2
        step = -np.sqrt(squared_step + 1e-6) / np.sqrt(squared_gradient + 1e-6) * g
        squared_step = 0.95 * squared_step + 0.05 * step**2
        x += step
        model.encoder.U.grad = torch.tensor(g, dtype=torch.float32)
        optimiser.step_along(1.0, [model.encoder.U])
    np.testing.assert_allclose(model.encoder.U.detach().numpy(), x, rtol=1e-4)


@pytest.mark.parametrize(("reduction", "examples"), [("pair-mean", 1), ("sum", 5)])
@pytest.mark.parametrize("native", [False, True])
def test_sgd_is_a_step_along_the_gradient(native, reduction, examples):
    """θ - lr (s g + nλθ) in numpy, with λ of matrices alone, n the examples that a sum is of; all the same natively."""
    instructions = instructions_to_learn("cpu", "fp32") if native else ""
    config = dataclasses.replace(for_optimiser(FAST, "sgd"), learning_rate=0.7, weight_decay=0.1, native=instructions)
    config = dataclasses.replace(config, batch_size=5, reduction=reduction)
    model = EncDec(EncDecConfig(3, 3, 2, 2, 2, 2), seed=1)
    optimiser = OPTIMISERS[config.optimiser](model.parameters(), config)
    weights = [model.encoder.U, model.encoder.b]
    expected = [tensor.detach().double().numpy().copy() for tensor in weights]
    random = np.random.default_rng(0)
    for rate in (0.7, 0.35):
        optimiser.learning_rate = rate
        for i, tensor in enumerate(weights):
            g = random.normal(size=expected[i].shape)
            expected[i] -= rate * (0.5 * g + (0.1 * examples * expected[i] if tensor.dim() > 1 else 0))
            tensor.grad = torch.tensor(g, dtype=torch.float32)
        optimiser.step_along(0.5, weights)
    for tensor, numbers in zip(weights, expected, strict=True):
        np.testing.assert_allclose(tensor.detach().numpy(), numbers, rtol=1e-5, atol=1e-7)


def test_the_average_is_of_the_last_share_of_the_steps(corpus, tmp_path):
    """Against the same recurrence in numbers; it is judged and kept, and learning continues from the weights."""
    config = dataclasses.replace(FAST, averaging=0.25, max_epochs=1)
    plain = trainer_of(corpus, dataclasses.replace(config, averaging=0))
    averaging = trainer_of(corpus, config)
    expected = None
    for step, rows in enumerate(epoch_batches(corpus, config, 0), start=1):
        plain.learn(rows), averaging.learn(rows)
        if step % 10 == 0:
            weights = plain.model.decoder.U.detach().double().numpy()
            rate = min(10 / (0.25 * step), 1)
            expected = weights.copy() if expected is None else expected + rate * (weights - expected)
    assert torch.equal(averaging.model.decoder.U, plain.model.decoder.U)
    with averaging._average.in_place(averaging.progress.steps):
        np.testing.assert_allclose(averaging.model.decoder.U.detach().numpy(), expected, rtol=1e-4, atol=1e-6)
    assert torch.equal(averaging.model.decoder.U, plain.model.decoder.U)
