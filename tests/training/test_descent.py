"""A step is the same however many threads, parts and ranks compute its gradient, and whoever takes it."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.training import descent
from moses_rnn.training.descent import OPTIMISERS, Gradients, NativeSteps
from moses_rnn.training.presets import CUSTOMARY_RATES, PHRASES, for_optimiser
from moses_rnn.training.ranks import ALONE, Threads
from moses_rnn.training.tasks import PhrasePairs, epoch_batches, seed_of
from tests.networks.native_kernels import FLOAT32, kernel_of, needs_native
from tests.training.pretended_ranks import in_ranks
from tests.training.small import FAST, network, trainer_of


def sums_and_gradients(corpus, rows, ranks=ALONE, **changes):
    config = dataclasses.replace(FAST, **changes)
    task = PhrasePairs(network(corpus), corpus, config)
    task.model.initialise(1, 0.3)
    gradients = Gradients(task, Threads(config.threads), ranks)
    sums = gradients.compute(rows, 7, lambda: 100.0 + ranks.rank)
    return sums, [tensor.grad.clone() for tensor in task.model.parameters()]


def check_equal(one, other, tolerance=1e-5):
    sums, gradients = one
    other_sums, other_gradients = other
    assert sums.tokens == other_sums.tokens
    assert sums.nats == pytest.approx(other_sums.nats, rel=1e-6)
    assert sums.squares == pytest.approx(other_sums.squares, rel=1e-4)
    for tensor, same in zip(gradients, other_gradients, strict=True):
        torch.testing.assert_close(tensor, same, rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("changes", [{"threads": 2}, {"accumulate": 3}, {"threads": 2, "accumulate": 2}])
@pytest.mark.parametrize("examples", [1, 2, 33])
def test_parts_add_up_to_the_whole(corpus, changes, examples):
    rows = corpus.training[:examples]
    check_equal(sums_and_gradients(corpus, rows), sums_and_gradients(corpus, rows, **changes))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("examples", [1, 2, 33])
def test_ranks_share_a_minibatch_and_have_its_gradient(corpus, size, examples):
    rows = corpus.training[:examples]
    shared = in_ranks(size, lambda ranks: sums_and_gradients(corpus, rows, ranks, accumulate=2, threads=2))
    alone = sums_and_gradients(corpus, rows)
    for of_rank in shared:
        check_equal(of_rank, alone)
        assert of_rank[0] == shared[0][0]
        assert of_rank[0].seconds == 100.0  # by the first one's clock
        for tensor, same in zip(of_rank[1], shared[0][1], strict=True):
            assert torch.equal(tensor, same)


def test_dropout_depends_on_the_number_of_parts_and_not_on_who_computes_them(corpus):
    rows, dropout = corpus.training[:40], {"dropout": 0.5}
    ways = [
        *in_ranks(2, lambda ranks: sums_and_gradients(corpus, rows, ranks, threads=2, **dropout)),
        *in_ranks(2, lambda ranks: sums_and_gradients(corpus, rows, ranks, accumulate=4, **dropout)),
        *in_ranks(4, lambda ranks: sums_and_gradients(corpus, rows, ranks, **dropout)),
        sums_and_gradients(corpus, rows, accumulate=4, **dropout),
        sums_and_gradients(corpus, rows, threads=4, **dropout),
    ]
    for way in ways[1:]:
        check_equal(way, ways[0])
    other = sums_and_gradients(corpus, rows, **dropout)
    assert abs(other[0].nats - ways[0][0].nats) > 1e-3


def test_an_error_is_raised_once_all_have_ended():
    ended = []

    def work(number):
        if number == 0:
            raise ZeroDivisionError
        ended.append(number)

    with pytest.raises(ZeroDivisionError):
        Threads(3).each(work, range(3))
    assert sorted(ended) == [1, 2]


def test_every_part_of_every_minibatch_has_a_seed_of_its_own():
    places = list(itertools.product((1, 2), range(20), range(4)))
    seeds = [seed_of(*place) for place in places]
    assert len(set(seeds)) == len(places)
    assert seeds == [seed_of(*place) for place in places]
    assert 0 <= min(seeds) < max(seeds) < 2**63


def test_adam_is_torchs(corpus):
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
        optimiser.step_along(0.01, 0.5, weights[::2], 1)
        optimiser.step_along(0.01, 0.5, weights[1::2], 1)
        reference.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_adadelta_is_zeilers():
    """Algorithm 1 of Zeiler (2012) in numpy, with both accumulators' ε inside the roots."""
    config = PHRASES["paper"].training
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
        optimiser.step_along(1.0, 1.0, [model.encoder.U], 1)
    np.testing.assert_allclose(model.encoder.U.detach().numpy(), x, rtol=1e-4)


@pytest.mark.parametrize(("reduction", "examples"), [("pair-mean", 1), ("sum", 5)])
def test_sgd_is_a_step_along_the_gradient(reduction, examples):
    """θ - lr (s g + nλθ) in numpy, with λ of matrices alone, n the examples that a sum is of."""
    config = dataclasses.replace(for_optimiser(FAST, "sgd"), weight_decay=0.1, batch_size=64, reduction=reduction)
    model = EncDec(EncDecConfig(3, 3, 2, 2, 2, 2), seed=1)
    optimiser = OPTIMISERS[config.optimiser](model.parameters(), config)
    weights = [model.encoder.U, model.encoder.b]
    expected = [tensor.detach().double().numpy().copy() for tensor in weights]
    random = np.random.default_rng(0)
    for rate in (0.7, 0.35):
        for i, tensor in enumerate(weights):
            g = random.normal(size=expected[i].shape)
            expected[i] -= rate * (0.5 * g + (0.1 * examples * expected[i] if tensor.dim() > 1 else 0))
            tensor.grad = torch.tensor(g, dtype=torch.float32)
        optimiser.step_along(rate, 0.5, weights, 5)
    for tensor, numbers in zip(weights, expected, strict=True):
        np.testing.assert_allclose(tensor.detach().numpy(), numbers, rtol=1e-5, atol=1e-7)


def test_the_average_is_of_the_last_share_of_the_steps(corpus, monkeypatch):
    """Against the same recurrence in numbers; it is judged and kept, and learning continues from the weights.

    Each of the first steps counts, then one in ten.
    """
    monkeypatch.setattr(descent, "STEPS_BETWEEN", 2)
    config = dataclasses.replace(FAST, averaging=0.25, max_epochs=1)
    plain = trainer_of(corpus, dataclasses.replace(config, averaging=0))
    averaging = trainer_of(corpus, config)
    expected = None
    for step, rows in enumerate(epoch_batches(corpus, config, 0), start=1):
        plain.learn(rows), averaging.learn(rows)
        between = 2 if 0.25 * step > 4 else 1
        if step % between == 0:
            weights = plain.model.decoder.U.detach().double().numpy()
            rate = min(between / (0.25 * step), 1)
            expected = weights.copy() if expected is None else expected + rate * (weights - expected)
    assert torch.equal(averaging.model.decoder.U, plain.model.decoder.U)
    with averaging._average.in_place():
        np.testing.assert_allclose(averaging.model.decoder.U.detach().numpy(), expected, rtol=1e-4, atol=1e-6)
    assert torch.equal(averaging.model.decoder.U, plain.model.decoder.U)


@needs_native
@pytest.mark.parametrize("optimiser", CUSTOMARY_RATES)
def test_the_steps_are_those_that_torch_does(corpus, optimiser):
    plain = dataclasses.replace(for_optimiser(FAST, optimiser), weight_decay=0.3)
    models = network(corpus), network(corpus)
    optimisers = [
        OPTIMISERS[optimiser](model.parameters(), config)
        for model, config in zip(
            models, (plain, dataclasses.replace(plain, native=instructions_to_learn("cpu", "fp32"))), strict=True
        )
    ]
    random = torch.Generator().manual_seed(0)
    for _ in range(5):
        for one, other in zip(*(model.parameters() for model in models), strict=True):
            one.grad = torch.randn(one.shape, generator=random)
            other.grad = one.grad.clone()
        for model, steps in zip(models, optimisers, strict=True):
            weights = list(model.parameters())
            steps.step_along(plain.learning_rate, 0.5, weights[::2], 1)
            steps.step_along(plain.learning_rate, 0.5, weights[1::2], 1)
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other)
    states = [steps.state_dict()["state"] for steps in optimisers]
    torch.testing.assert_close(*states, check_dtype=True)


@needs_native
@FLOAT32
@pytest.mark.parametrize("size", [0, 1, 37, 4096, 100_003])
def test_squares_are_added_exactly_enough(instructions, size):
    numbers = torch.randn(size, generator=torch.Generator().manual_seed(1))
    total = NativeSteps(kernel_of(instructions).core).sum_squares(numbers)
    assert total == pytest.approx(float(numbers.double().square().sum()), rel=1e-6)


@needs_native
def test_what_is_no_number_stays_none():
    steps = NativeSteps(kernel_of(0).core)
    assert np.isnan(steps.sum_squares(torch.tensor([1.0, float("nan")])))
    assert np.isinf(steps.sum_squares(torch.tensor([1.0, float("inf")])))
