"""Learning an RNNLM: every sentence once an epoch, in batches of similar length, resumable; held-out costs exact."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from moses_rnn.models.rnnlm import RNNLM, Rnnlm, RnnlmConfig
from moses_rnn.models.vocabulary import END_ID, Vocabulary
from moses_rnn.training import streams_of_text
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.n_grams import build_texts
from moses_rnn.training.streams_of_text import Sentences
from moses_rnn.training.threads import Threads
from moses_rnn.training.trainer import Trainer
from tests.models import reference_rnnlm
from tests.models.networks import weights_of
from tests.training.texts import Listener, never, sentences

FAST = TrainingConfig(
    optimiser="adam", learning_rate=0.02, batch_size=16, sort_batches=3, evaluate_every=10**9, max_minutes=0
)
VOCABULARY = Vocabulary([b"<unk>", b"</s>", *(b"w%d" % i for i in range(10))])


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return build_texts(sentences(400), sentences(60, seed=1), tmp_path_factory.mktemp("text"), VOCABULARY, 2)


def task_of(texts, bptt=0, **changes):
    config = dataclasses.replace(FAST, **changes)
    return Sentences(Rnnlm(RnnlmConfig(len(VOCABULARY), 16), seed=1), *texts, config, bptt)


def ids_of(lines):
    return [[*VOCABULARY.ids(line.split()), END_ID] for line in lines]


def test_every_sentence_comes_once_an_epoch(texts):
    task = task_of(texts)
    epochs = [list(task.batches(epoch, 0)) for epoch in (0, 1)]
    for batches in epochs:
        assert sorted(np.concatenate(batches).tolist()) == list(range(task.examples)) == list(range(400))
        assert {len(batch) for batch in batches} == {16}
    assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))
    for first in (1, 3, 20, len(epochs[0])):
        rest = [batch.tolist() for batch in task.batches(0, first)]
        assert rest == [batch.tolist() for batch in epochs[0][first:]]


def test_sentences_of_a_batch_are_about_equally_long(texts):
    lengths = np.array([len(ids) for ids in ids_of(sentences(400))])
    spreads = [np.ptp(lengths[batch]) for batch in task_of(texts, sort_batches=25).batches(0, 0)]
    assert max(spreads) <= 1


@pytest.mark.parametrize("part", [np.arange(400), np.array([7, 3, 200])])
def test_a_cost_is_that_of_the_equations(texts, part):
    task = task_of(texts)
    every = ids_of(sentences(400))
    weights = weights_of(task.model)
    expected = -sum(sum(reference_rnnlm.log_probs(weights, every[i])) for i in part[:20])
    cost = task.cost(part[:20], 0)
    assert (cost.nats, cost.objective.item()) == pytest.approx((expected, expected), rel=1e-5)
    assert cost.tokens == sum(len(every[i]) for i in part[:20])


@pytest.mark.parametrize("at_once", [1, 50, 4096])
def test_held_out_figures_are_exact(texts, monkeypatch, at_once):
    monkeypatch.setattr(streams_of_text, "EVALUATION_WORDS", at_once)
    task = task_of(texts, dropout=0.5)
    every = ids_of(sentences(60, seed=1))
    weights = weights_of(task.model)
    expected = -sum(sum(reference_rnnlm.log_probs(weights, ids)) for ids in every) / sum(map(len, every))
    assert task.held_out(Threads(2)) == {"nats_per_token": pytest.approx(expected, rel=1e-5)}


def test_dropout_is_decided_by_seed_step_and_part(texts):
    task, rows = task_of(texts, dropout=0.3), np.arange(16)
    assert task.cost(rows, 5).nats == task.cost(rows, 5).nats
    assert len({task.cost(rows, 5).nats, task.cost(rows, 6).nats, task.cost(rows, 5, 1).nats}) == 3


def test_how_far_errors_go_changes_gradients_and_no_costs(texts):
    costs = {bptt: task_of(texts, bptt).cost(np.arange(16), 0) for bptt in (0, 1)}
    assert costs[0].nats == costs[1].nats
    assert task_of(texts, 1).identity["bptt"] == 1
    assert task_of(texts, 1).describe() == "RNNLM, H 16, errors followed 1 steps back"
    assert task_of(texts).describe() == "RNNLM, H 16, errors followed to the sentence's beginning"


def test_learns_a_language(texts, tmp_path):
    listener = Listener()
    task = task_of(texts, max_epochs=12)
    with ModelFolder(tmp_path, RNNLM) as kept:
        Trainer(task, dataclasses.replace(FAST, max_epochs=12)).run(kept, listener, never)
    costs = [figures["nats_per_token"] for figures in listener.figures]
    # a sentence: one first word of 10, on average 3.5 further ones of 2, one length of 6; 5.5 tokens with the end
    least = (math.log(10) + 3.5 * math.log(2) + math.log(6)) / 5.5
    assert least < costs[-1] < least + 0.25 < costs[0]
    assert torch.isfinite(task.model.U).all()
