"""What is equal is computed once: prefixes of targets and of sources, contexts of n-grams."""

import numpy as np
import pytest
import torch

from moses_rnn.networks.cells import cell_stepper
from moses_rnn.networks.layers import SteppedLayer
from moses_rnn.networks.n_grams import ROWS, NGramScores
from moses_rnn.networks.rnnlm import SentenceScores
from moses_rnn.networks.seq2seq import Seq2SeqStepper, SteppedStack
from tests.networks.id_pairs import flat
from tests.networks.networks import (
    PAPERS,
    cell_network,
    cslm_network,
    rnnlm_network,
    seq2seq_network,
    some_n_grams,
)


def counting(monkeypatch, owner, name, which=0):
    counts, method = [], getattr(owner, name)
    by_class = isinstance(owner, type)

    def counted(*given):
        counts.append(len(given[which + by_class]))
        return method(*given)

    monkeypatch.setattr(owner, name, counted)
    return counts


def test_a_beginning_that_sources_share_is_read_once_by_other_cells(monkeypatch):
    stepper = cell_stepper(cell_network(PAPERS["lstm"]), "cpu", torch.float64)
    steps = counting(monkeypatch, SteppedLayer, "step")
    stepper.encode(*flat([[2, 3], [2, 4], [2, 3], [2]]))
    assert steps == [1, 3, 2]  # 2; 3, 4 and </s>; two </s>


@pytest.mark.parametrize(("order", "stepped"), [("reversed", [2, 2, 2]), ("forward", [3, 2, 2])])
def test_beginnings_in_the_order_of_reading_are_read_once_by_a_deep_lstm(monkeypatch, order, stepped):
    """[2, 3], [4, 3] and [], of which two end alike; the end symbol is a step of its own."""
    stepper = Seq2SeqStepper(seq2seq_network(order))
    steps = counting(monkeypatch, SteppedStack, "step")
    stepper.encode(*flat([[2, 3], [4, 3], [2, 3], [], [4, 3]]))
    assert steps == stepped


def test_each_distinct_context_of_n_grams_is_computed_once(monkeypatch):
    scores = NGramScores(cslm_network())
    computed = counting(monkeypatch, scores.model, "summary")
    n_grams = np.tile(some_n_grams(40), (100, 1))
    assert np.array_equal(scores.n_gram_log_probs(n_grams), np.tile(scores.n_gram_log_probs(n_grams[:40]), 100))
    assert computed == [ROWS, ROWS]  # one block for each call


def test_each_distinct_prefix_of_sentences_is_computed_once(monkeypatch):
    scores = SentenceScores(rnnlm_network(dtype=torch.float32))
    computed = counting(monkeypatch, scores, "next_states")
    scores.log_probs(*flat([[2, 3, 4], [2, 3, 5], [2], [2, 3, 4]]))
    assert computed == [1, 1, 1, 2, 0]  # after <s>, 2, 3, 4 and 5; nothing follows an end
