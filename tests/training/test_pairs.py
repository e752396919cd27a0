"""The minibatches of an epoch, and what pairs cost."""

import dataclasses

import numpy as np
import pytest
import torch

from moses_rnn.training import pairs
from moses_rnn.training.pairs import PhrasePairs, epoch_batches
from moses_rnn.training.threads import Threads
from tests.training.small import FAST, network


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


def test_pairs_are_evaluated_in_blocks_of_a_bounded_number_of_words(corpus, monkeypatch):
    monkeypatch.setattr(pairs, "EVALUATION_WORDS", 12)
    rows = pairs.by_length(corpus, corpus.held_out)
    lengths = np.diff(corpus.target.ends) + 1
    assert all(np.diff(lengths[rows]) <= 0)
    blocks = list(pairs.evaluation_blocks(corpus, rows))
    assert np.concatenate(blocks).tolist() == rows.tolist()
    assert len(blocks) > 10
    assert all(len(block) * lengths[block[0]] <= 12 for block in blocks)


def test_the_held_out_cost_is_the_mean_whatever_the_blocks(corpus, monkeypatch):
    task = PhrasePairs(network(corpus), corpus, FAST)
    log_probs = task._log_probs(corpus.held_out).double()
    figures = task.held_out(Threads(2))
    assert figures["nats_per_token"] == pytest.approx(-log_probs.mean().item(), rel=1e-5)
    assert figures["nats_per_pair"] == pytest.approx(-log_probs.sum().item() / len(corpus.held_out), rel=1e-5)
    monkeypatch.setattr(pairs, "EVALUATION_WORDS", 12)
    assert task.held_out(Threads()) == pytest.approx(figures, rel=1e-5)


def test_seed_and_step_decide_what_a_minibatch_is_estimated_to_cost(corpus):
    model = network(corpus)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.mul_(30)  # so that layers matter

    def nats(step, **changes):
        config = dataclasses.replace(FAST, **changes)
        return PhrasePairs(model, corpus, config).cost(corpus.training[:16], step).nats

    assert nats(1) == nats(2)
    for changes in ({"sampled_words": 3}, {"dropout": 0.5}):
        assert nats(1, **changes) == nats(1, **changes)
        assert len({nats(1, **changes), nats(2, **changes), nats(1, seed=2, **changes), nats(1)}) == 4
