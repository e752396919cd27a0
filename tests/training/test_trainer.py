"""Training to its end, stopped, resumed, with larger budgets, and what a step does with its gradient."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.ranks import PeerFailed, Ranks
from moses_rnn.training.tasks import PhrasePairs, epoch_batches
from moses_rnn.training.trainer import Trainer
from tests.training.small import FAST, Listener, network, never, train, trainer_of


class Deserted(Ranks):
    """With others, one of which is gone some exchanges later."""

    def __init__(self, exchanges):
        super().__init__()
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
    deserted = Trainer(PhrasePairs(network(corpus), corpus, config), Deserted(exchanges))
    with ModelFolder(tmp_path / "model", ENCDEC) as kept, pytest.raises(PeerFailed, match="gone"):
        deserted.run(kept, Listener(), never)
    resumed, listener = train(corpus, tmp_path / "model", max_epochs=1)
    assert len(listener.losses) == whole.progress.steps - deserted.progress.steps
    assert 50 < deserted.progress.steps < 70
    for old, new in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(old, new)


@pytest.mark.parametrize("every", [130, 1 << 30])
def test_an_evaluation_in_which_another_process_dies_is_made_up_for(corpus, tmp_path, monkeypatch, every):
    evaluate, left = PhrasePairs.held_out, iter(range(1))

    def fail_the_second(task, threads):
        if next(left, None) is None:
            raise PeerFailed("gone")
        return evaluate(task, threads)

    course = {"max_epochs": 2, "evaluate_every": every}
    whole, _ = train(corpus, tmp_path / "whole", **course)
    with monkeypatch.context() as during:
        during.setattr(PhrasePairs, "held_out", fail_the_second)
        with pytest.raises(PeerFailed, match="gone"):
            train(corpus, tmp_path / "model", **course)
    resumed, _ = train(corpus, tmp_path / "model", **course)
    places = [[one["pairs"] for one in trainer.progress.history] for trainer in (whole, resumed)]
    assert places[0] == places[1]
    assert resumed.progress.best == whole.progress.best


def test_newbob_halves_and_ends(corpus, tmp_path):
    """With no gain at all: halved after the second epoch, ended after the third."""
    changes = {"schedule": "newbob", "learning_rate": 1e-30, "max_epochs": 9, "evaluate_every": 1 << 30}
    trainer, listener = train(corpus, tmp_path, **changes)
    assert len(listener.evaluations) == 3
    assert trainer.progress.finished == "two epochs gained less than 0.3% of the held-out cost"
    assert [record["learning_rate"] for record in trainer.progress.history] == [1e-30, 1e-30, 0.5e-30]
    again, listener = train(corpus, tmp_path, **{**changes, "max_epochs": 10})
    assert (again.progress.finished, listener.losses) == (trainer.progress.finished, [])


def test_the_learning_rate_rises_and_falls(corpus):
    trainer = trainer_of(corpus, dataclasses.replace(FAST, warm_up=4, cool_down=0.5, max_epochs=1))
    rates = []
    for rows in trainer.task.batches(0, 0):
        rates.append(trainer._learning_rate())
        trainer.learn(rows)
    assert rates[:5] == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01])
    middle = len(rates) // 2
    assert rates[middle - 2] == 0.01
    assert all(np.diff(rates[middle + 1 :]) < 0)
    assert 0 < rates[-1] < 0.0005


def test_a_long_warm_up_ends_within_a_quarter_of_the_budget(corpus):
    trainer = trainer_of(corpus, dataclasses.replace(FAST, warm_up=1_000_000, max_epochs=1))
    rates = {}
    for rows in trainer.task.batches(0, 0):
        rates[trainer.share_over()] = trainer._learning_rate()
        trainer.learn(rows)
    late = [rate for share, rate in rates.items() if share >= 0.25]
    assert late == [FAST.learning_rate] * len(late)
    early = [rate for share, rate in rates.items() if share < 0.25]
    assert early == sorted(early)
    assert early[-1] < FAST.learning_rate == late[0]


def test_the_rate_falls_with_the_time_budget(corpus):
    trainer = trainer_of(corpus, dataclasses.replace(FAST, cool_down=0.5, max_minutes=1))
    for seconds, rate in ((0, 0.01), (30, 0.01), (45, 0.005), (60, 0), (70, 0)):
        trainer.progress.seconds = seconds
        assert trainer._learning_rate() == pytest.approx(rate)


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


def test_a_limit_lowered_before_the_first_evaluation_still_ends_with_one(corpus, tmp_path):
    stops = iter([False, True])
    first, _ = train(corpus, tmp_path, stop=lambda: next(stops), max_epochs=9)
    assert (first.progress.steps, first.progress.history) == (2, [])
    ended, listener = train(corpus, tmp_path, max_epochs=0.001)
    assert (len(listener.evaluations), ended.progress.finished) == (1, "0.001 epochs are done")


def test_a_larger_patience_continues_counting(corpus, tmp_path):
    still = {"learning_rate": 1e-30, "max_epochs": 9}
    train(corpus, tmp_path, patience=2, **still)
    more, listener = train(corpus, tmp_path, patience=3, **still)
    assert (len(listener.evaluations), more.progress.without_gain) == (1, 3)


def test_the_time_budget_ends_with_an_evaluation(corpus, tmp_path):
    trainer, listener = train(corpus, tmp_path, max_minutes=1e-9)
    assert trainer.progress.finished.startswith("the time budget of 1e-09 minutes is used")
    assert (len(listener.losses), len(listener.evaluations)) == (1, 1)


def gradient_norm(corpus, reduction, clip_norm):
    config = dataclasses.replace(FAST, reduction=reduction, clip_norm=clip_norm)
    trainer = trainer_of(corpus, config)
    rows = next(epoch_batches(corpus, config, 0))
    trainer.learn(rows)
    norm = math.sqrt(sum(tensor.grad.double().square().sum().item() for tensor in trainer.model.parameters()))
    return norm, trainer.progress.clipped_steps, rows


def test_reductions_scale_the_gradient(corpus):
    whole, clipped, rows = gradient_norm(corpus, "sum", 0)
    tokens = (np.diff(corpus.target.ends)[rows] + 1).sum()
    assert clipped == 0
    assert gradient_norm(corpus, "pair-mean", 0)[0] == pytest.approx(whole / len(rows), rel=1e-4)
    assert gradient_norm(corpus, "token-mean", 0)[0] == pytest.approx(whole / tokens, rel=1e-4)


def test_the_gradient_is_clipped_and_counted(corpus):
    norm, clipped, _ = gradient_norm(corpus, "sum", 0.5)
    assert (norm, clipped) == (pytest.approx(0.5, rel=1e-3), 1)


def test_a_gradient_that_is_not_finite_moves_nothing(corpus):
    trainer = trainer_of(corpus, FAST)
    with torch.no_grad():
        trainer.model.decoder.b_G[2] = math.inf
    before = [tensor.clone() for tensor in trainer.model.parameters()]
    trainer.learn(next(epoch_batches(corpus, FAST, 0)))
    assert trainer.progress.skipped_steps == 1
    assert all(torch.equal(old, new) for old, new in zip(before, trainer.model.parameters(), strict=True))
