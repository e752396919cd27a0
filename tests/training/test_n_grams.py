"""Learning a CSLM: every n-gram once an epoch, resumable to the same weights, held-out lines never learned."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from moses_rnn.models.bengio import Bengio, BengioConfig
from moses_rnn.models.cslm import CSLM, Cslm, CslmConfig
from moses_rnn.models.vocabulary import Vocabulary
from moses_rnn.training import n_grams as n_grams_module
from moses_rnn.training.config import NGramConfig, TrainingConfig
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.n_grams import NGrams, TextConfig, build_texts, chosen_lines
from moses_rnn.training.trainer import Trainer
from tests.training.texts import Listener, sentences

FAST = TrainingConfig(optimiser="adam", learning_rate=0.01, batch_size=32, evaluate_every=10**9, max_minutes=0)
VOCABULARY = Vocabulary([b"<unk>", b"</s>", *(b"w%d" % i for i in range(10))])
BEGIN = len(VOCABULARY)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return build_texts(sentences(800), sentences(60, seed=1), tmp_path_factory.mktemp("text"), VOCABULARY, 4)


NETWORKS = {
    "cslm": lambda: Cslm(CslmConfig(len(VOCABULARY), 4, 8, 16, 16), seed=1),
    "bengio": lambda: Bengio(BengioConfig(len(VOCABULARY), 4, 8, 16), seed=1),
    "without direct connections": lambda: Bengio(BengioConfig(len(VOCABULARY), 4, 8, 16, direct=False), seed=1),
}


def trainer_of(texts, learning=NGramConfig(), network="cslm", **changes):  # noqa: B008, frozen
    config = dataclasses.replace(FAST, **changes)
    model = NETWORKS[network]()
    return Trainer(NGrams(model, *texts, config, learning), config)


def run(trainer, folder, listener, stop=lambda: False):
    with ModelFolder(folder, CSLM) as kept:
        return trainer.run(kept, listener, stop)


def test_sentences_stand_between_their_boundaries(tmp_path):
    text, held_out = build_texts([b"w3 odd", b"", b" \t", b"w1\r\n"], [b"w2"], tmp_path, VOCABULARY, 3)
    assert text.flat.tolist() == [BEGIN, BEGIN, 5, 0, 1, BEGIN, BEGIN, 3, 1]
    assert held_out.flat.tolist() == [BEGIN, BEGIN, 4, 1]
    assert text.predicted(0, len(text.flat)).tolist() == [2, 3, 4, 7, 8]
    assert (text.tokens(), held_out.tokens()) == (5, 2)


def test_every_n_gram_comes_once_an_epoch(texts, monkeypatch):
    monkeypatch.setattr(n_grams_module, "BLOCK", 700)  # several blocks
    task = trainer_of(texts).task
    epochs = [list(task.batches(epoch, 0)) for epoch in (0, 1)]
    for batches in epochs:
        seen = np.concatenate(batches)
        assert np.array_equal(np.sort(seen), texts[0].predicted(0, len(texts[0].flat)))
        assert task.examples == len(seen)
    assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))
    for first in (1, 20, 60, len(epochs[0])):
        rest = list(task.batches(0, first))
        assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in epochs[0][first:]]


@pytest.mark.parametrize(
    ("network", "margin"), [("cslm", 0.25), ("bengio", 0.15), ("without direct connections", 0.25)]
)
def test_learns_a_language(texts, tmp_path, network, margin):
    listener = Listener()
    progress = run(trainer_of(texts, network=network, max_epochs=6), tmp_path, listener)
    costs = [figures["nats_per_token"] for figures in listener.figures]
    # a sentence: one first word of 10, on average 3.5 further ones of 2, one length of 6; 5.5 tokens with the end
    least = (math.log(10) + 3.5 * math.log(2) + math.log(6)) / 5.5
    assert least < costs[-1] < least + margin < costs[0]
    assert [figures["n-grams"] for figures in listener.figures] == [progress.examples // 6 * n for n in range(1, 7)]


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_stopped_run_goes_on_to_the_same_weights(texts, tmp_path, dropout):
    learning = NGramConfig(self_normalise=0.1)
    options = {"dropout": dropout, "threads": 2, "max_epochs": 2}
    whole = trainer_of(texts, learning, **options)
    run(whole, tmp_path / "whole", Listener())
    countdown = itertools.count(1)
    run(trainer_of(texts, learning, **options), tmp_path / "stopped", Listener(), lambda: next(countdown) >= 133)
    torch.manual_seed(99)
    resumed = trainer_of(texts, learning, **options)
    run(resumed, tmp_path / "stopped", Listener())
    assert resumed.resumed
    for old, new in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(old, new)


def test_the_penalty_brings_log_z_towards_0(texts, tmp_path):
    last = []
    for penalty in (0.0, 0.03):
        listener = Listener()
        run(trainer_of(texts, NGramConfig(self_normalise=penalty), max_epochs=8), tmp_path / str(penalty), listener)
        last.append(listener.figures[-1])
    assert 2 * last[1]["mean_abs_log_z"] < last[0]["mean_abs_log_z"]
    assert last[1]["nats_per_token"] < last[0]["nats_per_token"] + 0.1  # at next to no cost


def test_a_step_is_along_the_gradient_however_that_lies_in_memory(texts):
    """Those of G and W are columns of one matrix: a step by places in memory would mix them."""
    trainer = trainer_of(texts, network="bengio", clip_norm=0.0)
    (rows, *_) = trainer.task.batches(0, 0)
    before = [tensor.detach().clone() for tensor in trainer.model.parameters()]
    cost = trainer.task.cost(rows, 0)
    gradients = torch.autograd.grad(cost.objective / len(rows), list(trainer.model.parameters()))
    assert not all(gradient.is_contiguous() for gradient in gradients)
    trainer.learn(rows)
    for old, new, gradient in zip(before, trainer.model.parameters(), gradients, strict=True):
        first_of_adam = old - 0.01 * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(new.detach(), first_of_adam, rtol=0, atol=1e-4)


SHARES = [
    (100, TextConfig(), 10),  # at most a tenth
    (20_000, TextConfig(), 1000),  # at least 1 000
    (3_000_000, TextConfig(), 3000),  # the paper's 0.1 %
    (20_000, TextConfig(held_out_lines=7), 7),
    (3, TextConfig(), 1),
]


@pytest.mark.parametrize(("lines", "config", "expected"), SHARES)
def test_how_many_lines_are_held_out(lines, config, expected):
    assert chosen_lines(lines, config).sum() == expected
