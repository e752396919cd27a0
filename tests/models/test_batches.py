"""Batches: padding, packing and their order."""

import numpy as np
import pytest
import torch

from moses_rnn.models.batches import Batch


def test_phrases_are_padded_with_their_end_symbol():
    batch = Batch.from_lists([[5, 6, 7], [8], []])
    assert batch.ids.tolist() == [[5, 6, 7, 1], [8, 1, 1, 1], [1, 1, 1, 1]]
    assert batch.active == [3, 2, 1, 1]  # rows that have a first, second, … word, the end symbol counted


def test_packing_leaves_the_padding_out():
    batch = Batch.from_lists([[5, 6, 7], [8], []])
    assert batch.packed().tolist() == [5, 8, 1, 6, 1, 7, 1]
    assert batch.rows().tolist() == [0, 1, 2, 0, 1, 0, 0]


def test_flat_and_listed_phrases_are_the_same():
    flat = Batch.from_flat(np.array([5, 6, 8], dtype=np.int32), np.array([2, 1]))
    assert torch.equal(flat.ids, Batch.from_lists([[5, 6], [8]]).ids)


def test_unsorted_phrases_are_a_mistake():
    with pytest.raises(AssertionError, match="longest first"):
        Batch.from_lists([[5], [6, 7]])
