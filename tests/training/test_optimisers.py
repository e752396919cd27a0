"""The optimisers against others' code or their papers' equations in numbers, and the average of their weights."""

import dataclasses

import numpy as np
import pytest
import torch

from moses_rnn.models.encdec import EncDec, EncDecConfig
from moses_rnn.training.config import PRESETS
from moses_rnn.training.optimisers import make_optimiser
from moses_rnn.training.pairs import epoch_batches
from tests.training.small import FAST, network, train, trainer_of


def test_adam_is_torchs(corpus, tmp_path):
    """With decay on matrices alone."""
    config = dataclasses.replace(FAST, weight_decay=0.3)
    ours, theirs = network(corpus), network(corpus)
    matrices = [tensor for tensor in theirs.parameters() if tensor.dim() > 1]
    biases = [tensor for tensor in theirs.parameters() if tensor.dim() == 1]
    reference = torch.optim.AdamW(
        [{"params": matrices}, {"params": biases, "weight_decay": 0.0}], 0.01, weight_decay=0.3
    )
    optimiser = make_optimiser(ours, config)
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
    config = dataclasses.replace(PRESETS["paper"].training, compiled=compiled)
    model = EncDec(EncDecConfig(3, 3, 2, 2, 2, 2), seed=1)
    optimiser = make_optimiser(model, config)
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
        optimiser.step()
    np.testing.assert_allclose(model.encoder.U.detach().numpy(), x, rtol=1e-4)


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


def test_an_average_costs_less_than_the_last_weights(corpus, tmp_path):
    rough = {"learning_rate": 0.03, "max_epochs": 4}
    best = [train(corpus, tmp_path / str(a), averaging=a, **rough)[0].progress.best for a in (0.0, 0.2)]
    assert best[1] < best[0]
