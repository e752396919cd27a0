"""The minibatches of an epoch, and what pairs cost."""

import dataclasses

import numpy as np

from moses_rnn.training import tasks
from moses_rnn.training.tasks import epoch_batches
from tests.training.small import FAST


def test_sorting_makes_batches_of_like_lengths(corpus):
    def spread(sort_batches):
        config = dataclasses.replace(FAST, sort_batches=sort_batches)
        lengths = np.diff(corpus.target.ends)
        return np.mean([np.ptp(lengths[batch]) for batch in epoch_batches(corpus, config, 0)])

    assert spread(10) < spread(1) / 2


def test_pairs_are_evaluated_in_blocks_of_a_bounded_number_of_words(corpus, monkeypatch):
    monkeypatch.setattr(tasks, "EVALUATION_WORDS", 12)
    rows = tasks.by_length(corpus, corpus.held_out)
    lengths = np.diff(corpus.target.ends) + 1
    assert all(np.diff(lengths[rows]) <= 0)
    blocks = list(tasks.evaluation_blocks(corpus, rows))
    assert np.concatenate(blocks).tolist() == rows.tolist()
    assert len(blocks) > 10
    assert all(len(block) * lengths[block[0]] <= 12 for block in blocks)
