"""Training to its end, stopped, resumed, with larger budgets, and what a step does with its gradient."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.training.config import CUSTOMARY_RATES, for_optimiser
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.pairs import PhrasePairs, epoch_batches
from moses_rnn.training.ranks import PeerFailed, Ranks
from moses_rnn.training.schedules import SCHEDULES
from moses_rnn.training.trainer import Trainer
from tests.training.small import FAST, Listener, network, never, train, trainer_of


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


def test_sgd_learns_from_larger_weights(corpus):
    """It has no averages to make small gradients into large steps."""
    trainer = trainer_of(corpus, for_optimiser(FAST, "sgd"))
    trainer.model.initialise(1, 0.3)
    losses = [trainer.learn(rows) for epoch in range(3) for rows in trainer.task.batches(epoch, 0)]
    assert np.mean(losses[-20:]) < np.mean(losses[:5]) - 0.3


@pytest.mark.parametrize("optimiser", CUSTOMARY_RATES)
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


class Deserted(Ranks):
    """With others, one of which is gone some exchanges later."""

    def __init__(self, exchanges):
        self._left = exchanges

    def sums(self, numbers):
        self._left -= 1
        if self._left < 0:
            raise PeerFailed("gone")
        return super().sums(numbers)


@pytest.mark.parametrize("exchanges", [120, 121])  # before the end of a step, and of the question whether to stop
def test_what_was_learned_is_saved_when_another_process_dies(corpus, tmp_path, exchanges):
    whole, _ = train(corpus, tmp_path / "whole", max_epochs=1)
    config = dataclasses.replace(FAST, max_epochs=1)
    deserted = Trainer(PhrasePairs(network(corpus), corpus, config), config, Deserted(exchanges))
    with ModelFolder(tmp_path / "model", ENCDEC) as kept, pytest.raises(PeerFailed, match="gone"):
        deserted.run(kept, Listener(), never)
    resumed, listener = train(corpus, tmp_path / "model", max_epochs=1)
    assert len(listener.losses) == whole.progress.steps - deserted.progress.steps
    assert 50 < deserted.progress.steps < 70
    for old, new in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(old, new)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_with_every_schedule_a_stopped_run_goes_on_to_the_same_weights(corpus, tmp_path, schedule):
    """Over six and a half epochs, as far as it comes: newbob may end before."""
    changes = {"schedule": schedule, "optimiser": "sgd", "learning_rate": 0.7, "decay_on_plateau": 0.5}
    changes |= {"max_epochs": 6.5, "evaluate_every": 1 << 30, "batch_size": 64, "patience": 99}
    whole, listener = train(corpus, tmp_path / "whole", **changes)
    for steps in (whole.progress.steps // 2, whole.progress.steps - 3):
        countdown = itertools.count(1)
        folder = tmp_path / str(steps)
        train(corpus, folder, lambda c=countdown, n=steps: next(c) >= n, **changes)
        resumed, rest = train(corpus, folder, **changes)
        assert resumed.progress.finished == whole.progress.finished
        assert rest.evaluations == listener.evaluations[-len(rest.evaluations) :]
        for old, new in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
            assert torch.equal(old, new)


def test_newbob_halves_and_ends(corpus, tmp_path):
    """With no gain at all: halved after the second epoch, ended after the third."""
    changes = {"schedule": "newbob", "learning_rate": 1e-30, "max_epochs": 9, "evaluate_every": 1 << 30}
    trainer, listener = train(corpus, tmp_path, **changes)
    assert len(listener.evaluations) == 3
    assert trainer.progress.finished == "two epochs gained less than 0.3% of the held-out cost"
    assert [record["learning_rate"] for record in trainer.progress.history] == [1e-30, 1e-30, 0.5e-30]
    again, listener = train(corpus, tmp_path, **{**changes, "max_epochs": 10})
    assert (again.progress.finished, listener.losses) == (trainer.progress.finished, [])


def test_half_epochs_begin_after_the_fifth(corpus, tmp_path):
    trainer = trainer_of(corpus, dataclasses.replace(FAST, schedule="half-epochs"))
    for epochs, rate in ((4.9, 0.01), (5, 0.005), (5.5, 0.0025), (7.25, 0.0003125)):
        trainer.progress.examples = round(epochs * trainer.task.examples)
        assert trainer._learning_rate() == pytest.approx(rate)


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
    assert (same.progress.finished, listener.losses) == ("1 epoch is done", [])
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
