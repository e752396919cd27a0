import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.checkpoint import ENCDEC
from moses_rnn.models.encdec import EncDec, EncDecConfig
from moses_rnn.training.config import PRESETS, TrainingConfig, for_optimiser
from moses_rnn.training.corpus import CorpusConfig, build_corpus
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.optimisers import make_optimiser
from moses_rnn.training.pairs import PhrasePairs, epoch_batches
from moses_rnn.training.trainer import Trainer

FAST = TrainingConfig(optimiser="adam", learning_rate=0.01, batch_size=16, evaluate_every=400, max_minutes=0)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A language to be learned: word w3 is translated by v3, and v0 closes every phrase."""
    random = np.random.default_rng(0)
    words = [random.integers(8, size=random.integers(1, 5)) for _ in range(3000)]
    pairs = [(b" ".join(b"w%d" % i for i in ids), b" ".join([*(b"v%d" % i for i in ids), b"v0"])) for ids in words]
    return build_corpus(pairs, tmp_path_factory.mktemp("corpus"), CorpusConfig(held_out_pairs=100))


def network(corpus):
    return EncDec(EncDecConfig(len(corpus.source_vocabulary), len(corpus.target_vocabulary), 24, 12, 12, 8), seed=1)


class Listener:
    def __init__(self):
        self.losses, self.evaluations = [], []

    def starting(self, trainer):
        pass

    def stepped(self, trainer, loss):
        self.losses.append(loss)

    def evaluated(self, trainer, is_best):
        self.evaluations.append((trainer.progress.history[-1]["nats_per_token"], is_best))


def never():
    return False


def trainer_of(corpus, config):
    return Trainer(PhrasePairs(network(corpus), corpus, config), config)


def train(corpus, folder, stop=never, **changes):
    listener = Listener()
    trainer = trainer_of(corpus, dataclasses.replace(FAST, **changes))
    with ModelFolder(folder, ENCDEC) as kept:
        trainer.run(kept, listener, stop)
    return trainer, listener


def test_learns_a_language(corpus, tmp_path):
    trainer, listener = train(corpus, tmp_path, max_epochs=8)
    costs = [cost for cost, _ in listener.evaluations]
    assert costs[-1] < 0.7 * corpus.unigram_nats_per_token
    assert trainer.progress.best == min(costs)
    assert trainer.progress.finished == "8 epochs are done"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimiser", ["adam", "adadelta"])
def test_every_optimiser_and_precision_learns(corpus, tmp_path, precision, optimiser):
    config = for_optimiser(FAST, optimiser)
    _, listener = train(corpus, tmp_path, **{**dataclasses.asdict(config), "precision": precision, "max_epochs": 3})
    assert np.mean(listener.losses[-20:]) < listener.losses[0] - 0.3


@pytest.mark.parametrize("optimiser", ["adam", "adadelta"])
def test_a_stopped_run_goes_on_to_the_same_weights(corpus, tmp_path, optimiser):
    changes = {**dataclasses.asdict(for_optimiser(FAST, optimiser)), "max_epochs": 2}
    whole, _ = train(corpus, tmp_path / "whole", **changes)
    for steps in (1, 7, 80):  # in the first epoch, within a group of batches, and in the second epoch
        countdown = itertools.count(1)
        folder = tmp_path / str(steps)
        stopped, _ = train(corpus, folder, lambda c=countdown, n=steps: next(c) >= n, **changes)
        assert not stopped.progress.finished
        resumed, _ = train(corpus, folder, **changes)
        assert resumed.resumed
        assert resumed.progress.steps == whole.progress.steps
        for old, new in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
            assert torch.equal(old, new)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_with_everything_goes_on_to_the_same_weights(corpus, tmp_path, threads):
    changes = {
        "dropout": 0.1, "averaging": 0.2, "weight_decay": 0.1, "warm_up": 30, "cool_down": 0.5, "threads": threads,
        "max_epochs": 2,
    }  # fmt: skip
    whole, listener = train(corpus, tmp_path / "whole", **changes)
    for steps in (5, 123):
        countdown = itertools.count(1)
        folder = tmp_path / str(steps)
        train(corpus, folder, lambda c=countdown, n=steps: next(c) >= n, **changes)
        resumed, rest = train(corpus, folder, **changes)
        for old, new in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
            assert torch.equal(old, new)
        assert rest.evaluations == listener.evaluations[-len(rest.evaluations) :]


def steps_of(corpus, config, count):
    """The network after some steps."""
    trainer = trainer_of(corpus, config)
    for rows in itertools.islice(epoch_batches(corpus, config, 0), count):
        trainer.learn(rows)
    return trainer


@pytest.mark.parametrize("optimiser", ["adam", "adadelta"])
@pytest.mark.parametrize("reduction", ["sum", "pair-mean", "token-mean"])
def test_threads_learn_what_one_learns(corpus, tmp_path, optimiser, reduction):
    config = dataclasses.replace(for_optimiser(FAST, optimiser), reduction=reduction, learning_rate=0.01)
    alone = steps_of(corpus, config, 12)
    for threads in (2, 3):
        shared = steps_of(corpus, dataclasses.replace(config, threads=threads), 12)
        assert dataclasses.replace(shared.progress, seconds=0) == dataclasses.replace(alone.progress, seconds=0)
        for one, other in zip(alone.model.parameters(), shared.model.parameters(), strict=True):
            torch.testing.assert_close(other, one, rtol=1e-3, atol=2e-5)
        assert shared.task.held_out(shared._threads) == pytest.approx(alone.task.held_out(alone._threads), rel=1e-5)


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


def test_the_learning_rate_rises_and_falls(corpus, tmp_path):
    trainer = trainer_of(corpus, dataclasses.replace(FAST, warm_up=4, cool_down=0.5, max_epochs=1))
    rates = []
    for rows in trainer.task.batches(0, 0):
        trainer.learn(rows)
        rates.append(trainer._optimiser.param_groups[0]["lr"])
    assert rates[:5] == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01])
    middle = len(rates) // 2
    assert rates[middle - 2] == 0.01
    assert all(np.diff(rates[middle + 1 :]) < 0)
    assert 0 < rates[-1] < 0.0005


def test_the_rate_falls_with_the_time_budget(corpus, tmp_path):
    trainer = trainer_of(corpus, dataclasses.replace(FAST, cool_down=0.5, max_minutes=1))
    for seconds, rate in ((0, 0.01), (30, 0.01), (45, 0.005), (60, 0), (70, 0)):
        trainer.progress.seconds = seconds
        assert trainer._learning_rate() == pytest.approx(rate)


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


def test_learns_from_sampled_words_and_goes_on_with_the_same(corpus, tmp_path):
    changes = {"sampled_words": 5, "max_epochs": 4}
    whole, listener = train(corpus, tmp_path / "whole", **changes)
    costs = [cost for cost, _ in listener.evaluations]  # exact
    assert costs[-1] < 0.9 * corpus.unigram_nats_per_token
    countdown = itertools.count(1)
    train(corpus, tmp_path / "stopped", lambda: next(countdown) >= 7, **changes)
    resumed, _ = train(corpus, tmp_path / "stopped", **changes)
    for old, new in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(old, new)


def test_a_finished_run_goes_on_when_its_limit_is_raised(corpus, tmp_path):
    train(corpus, tmp_path, max_epochs=1)
    same, listener = train(corpus, tmp_path, max_epochs=1)
    assert (same.progress.finished, listener.losses) == ("1 epochs are done", [])
    more, listener = train(corpus, tmp_path, max_epochs=2)
    assert len(listener.losses) == more.progress.steps / 2


def test_patience_starts_over_when_a_used_budget_is_raised(corpus, tmp_path):
    """A larger budget raises a learning rate that had fallen; what brought no gain before is no reason to end then."""
    still = {"learning_rate": 1e-30, "patience": 3, "cool_down": 0.5, "evaluate_every": 200}
    used, listener = train(corpus, tmp_path, max_epochs=0.6, **still)
    assert [best for _, best in listener.evaluations] == [True, False, False]
    assert used.progress.finished == "0.6 epochs are done"
    for epochs, evaluations in ((9, 3), (9, 0), (99, 0)):  # a run that lost patience needs no larger budget
        more, listener = train(corpus, tmp_path, max_epochs=epochs, **still)
        assert [best for _, best in listener.evaluations] == [False] * evaluations
        assert more.progress.finished == "3 evaluations brought no gain"


def test_a_larger_patience_continues_counting(corpus, tmp_path):
    still = {"learning_rate": 1e-30, "max_epochs": 9}
    train(corpus, tmp_path, patience=2, **still)
    more, listener = train(corpus, tmp_path, patience=3, **still)
    assert (len(listener.evaluations), more.progress.without_gain) == (1, 3)


def test_a_run_with_other_choices_is_not_continued(corpus, tmp_path):
    train(corpus, tmp_path, max_epochs=1)
    with pytest.raises(CheckpointError, match="found others: batch_size 16, now 8; seed 1, now 3\n.*--restart"):
        train(corpus, tmp_path, max_epochs=2, batch_size=8, seed=3)


def test_a_damaged_state_is_refused(corpus, tmp_path):
    from safetensors.torch import save

    for content in (b"no state", save({"a": torch.zeros(1)})):
        (tmp_path / "training").mkdir(exist_ok=True)
        (tmp_path / "training" / "state.safetensors").write_bytes(content)
        with pytest.raises(CheckpointError, match="state.safetensors: expected a saved training state, found"):
            train(corpus, tmp_path)


def test_training_stops_when_patience_ends(corpus, tmp_path):
    trainer, listener = train(corpus, tmp_path, learning_rate=1e-12, patience=2, decay_on_plateau=0.5)
    assert trainer.progress.finished == "2 evaluations brought no gain"
    assert [best for _, best in listener.evaluations][-2:] == [False, False]
    assert trainer.progress.learning_rate <= 1e-12 / 4


def test_the_time_budget_ends_with_an_evaluation(corpus, tmp_path):
    trainer, listener = train(corpus, tmp_path, max_minutes=1e-9)
    assert trainer.progress.finished.startswith("the time budget of 1e-09 minutes is used")
    assert (len(listener.losses), len(listener.evaluations)) == (1, 1)


@pytest.mark.parametrize("sort_batches", [1, 10])
def test_an_epoch_has_every_pair_once_and_can_be_entered_anywhere(corpus, sort_batches):
    config = dataclasses.replace(FAST, sort_batches=sort_batches)
    batches = list(epoch_batches(corpus, config, 0))
    assert sorted(np.concatenate(batches)) == sorted(corpus.training)
    assert {len(batch) for batch in batches[:-10]} == {16}
    for first in (1, 9, 10, 11, len(batches) - 1, len(batches)):
        rest = list(epoch_batches(corpus, config, 0, first))
        assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in batches[first:]]
    assert [b.tolist() for b in epoch_batches(corpus, config, 1)] != [b.tolist() for b in batches]


@pytest.mark.parametrize("sort_batches", [1, 10])
def test_minibatches_hold_a_bounded_number_of_words(corpus, sort_batches):
    config = dataclasses.replace(FAST, sort_batches=sort_batches, batch_tokens=30)
    batches = list(epoch_batches(corpus, config, 0))
    assert sorted(np.concatenate(batches)) == sorted(corpus.training)
    tokens = [(np.diff(corpus.target.ends)[batch] + 1).sum() for batch in batches]
    assert 20 < np.mean(tokens) <= max(tokens) <= 30
    for first in (1, 25, 26, len(batches) - 1):
        rest = list(epoch_batches(corpus, config, 0, first))
        assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in batches[first:]]
    tiny = dataclasses.replace(config, batch_tokens=1)
    assert {len(batch) for batch in epoch_batches(corpus, tiny, 0)} == {1}


def test_sorting_makes_batches_of_like_lengths(corpus):
    def spread(sort_batches):
        config = dataclasses.replace(FAST, sort_batches=sort_batches)
        lengths = np.diff(corpus.target.ends)
        return np.mean([np.ptp(lengths[batch]) for batch in epoch_batches(corpus, config, 0)])

    assert spread(10) < spread(1) / 2


def gradient_norm(corpus, reduction, clip_norm):
    """The norm of the gradient that the optimiser sees in the first step."""
    config = dataclasses.replace(FAST, reduction=reduction, clip_norm=clip_norm)
    trainer = trainer_of(corpus, config)
    rows = next(epoch_batches(corpus, config, 0))
    trainer.learn(rows)
    norm = math.sqrt(sum(tensor.grad.double().square().sum().item() for tensor in trainer.model.parameters()))
    return norm, trainer.progress.clipped_steps, rows


def test_reductions_scale_the_gradient(corpus, tmp_path):
    whole, clipped, rows = gradient_norm(corpus, "sum", 0)
    tokens = (np.diff(corpus.target.ends)[rows] + 1).sum()
    assert clipped == 0
    assert gradient_norm(corpus, "pair-mean", 0)[0] == pytest.approx(whole / len(rows), rel=1e-4)
    assert gradient_norm(corpus, "token-mean", 0)[0] == pytest.approx(whole / tokens, rel=1e-4)


def test_the_gradient_is_clipped_and_counted(corpus, tmp_path):
    norm, clipped, _ = gradient_norm(corpus, "sum", 0.5)
    assert (norm, clipped) == (pytest.approx(0.5, rel=1e-3), 1)


def test_a_gradient_that_is_not_finite_moves_nothing(corpus, tmp_path):
    trainer = trainer_of(corpus, FAST)
    with torch.no_grad():
        trainer.model.decoder.b_G[2] = math.inf
    before = [tensor.clone() for tensor in trainer.model.parameters()]
    trainer.learn(next(epoch_batches(corpus, FAST, 0)))
    assert trainer.progress.skipped_steps == 1
    assert all(torch.equal(old, new) for old, new in zip(before, trainer.model.parameters(), strict=True))


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


def test_the_papers_preset_is_the_papers():
    paper = PRESETS["paper"]
    assert (paper.hidden_size, paper.embedding_size, paper.maxout_size, paper.output_rank) == (1000, 100, 500, 100)
    assert paper.shortlist == 15_000
    training = paper.training
    assert (training.optimiser, training.rho, training.epsilon, training.batch_size) == ("adadelta", 0.95, 1e-6, 64)
