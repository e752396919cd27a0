"""What every stepper inherits: words after prefixes, from whole distributions, some prefixes at a time."""

import numpy as np
import pytest
import torch

from moses_rnn.inference import steps
from moses_rnn.inference.steps import node_blocks, row_blocks
from tests.inference.id_pairs import flat
from tests.producers.bigrams import random_stepper

SOURCES = [[2, 3, 4], [], [6, 0], [2]]
ROWS = torch.tensor([0, 0, 2, 3, 3, 3, 5, 6])  # no word follows the prefixes 1 and 4
WORDS = torch.tensor([1, 4, 0, 2, 2, 7, 1, 5])


def prefixes_of(stepper):
    """Terms of the sources, and seven prefixes of one word."""
    terms, _ = stepper.read(*flat(SOURCES))
    rows = torch.tensor([0, 1, 1, 2, 3, 3, 3])
    return terms, stepper.step(terms, stepper.start(terms), rows, torch.tensor([2, 3, 4, 5, 6, 7, 0]))


def blocks_of(stepper):
    """Those of the seven prefixes and the words after them."""
    return node_blocks(ROWS.numpy(), 7, stepper.words)


def test_without_attention_there_is_no_alignment():
    stepper = random_stepper(9, 8)
    assert stepper.alignment(*prefixes_of(stepper)) is None


def test_no_words_have_no_log_probs():
    stepper = random_stepper(9, 8)
    terms, prefixes = prefixes_of(stepper)
    nothing = torch.zeros(0, dtype=torch.int64)
    assert stepper.word_log_probs(terms, prefixes, nothing, nothing, node_blocks(nothing.numpy(), 7, 8)).shape == (0,)
    none = prefixes.take(slice(0, 0))
    assert stepper.word_log_probs(terms, none, nothing, nothing, []).shape == (0,)


@pytest.mark.parametrize(("prefixes", "words"), [(0, 5), (1, 5), (7, 5), (8, 5), (3, 1000)])
def test_blocks_are_all_rows_in_order(monkeypatch, prefixes, words):
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE", 20)
    blocks = list(row_blocks(prefixes, words))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(prefixes))
    assert all(block.stop - block.start <= max(20 // words, 1) for block in blocks)
    assert np.ceil(prefixes / max(20 // words, 1)) == len(blocks)


@pytest.mark.parametrize("at_once", [1 << 20, 24, 8])
def test_nodes_are_in_the_blocks_of_their_prefixes(monkeypatch, at_once):
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE", at_once)
    blocks = node_blocks(ROWS.numpy(), 7, 8)
    assert [block for block, _ in blocks] == list(row_blocks(7, 8))
    assert [row for _, nodes in blocks for row in range(len(ROWS))[nodes]] == list(range(len(ROWS)))
    assert all(block.start <= row < block.stop for block, nodes in blocks for row in ROWS[nodes].tolist())


def test_without_prefixes_there_are_no_blocks():
    assert node_blocks(np.zeros(0, np.int64), 0, 8) == []


@pytest.mark.parametrize(("device", "prefixes", "nodes"), [("cpu", 1, 2), ("cuda", 3, 3)])
def test_the_device_decides_how_much_is_done_at_once(monkeypatch, device, prefixes, nodes):
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE", 8)
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE_ELSEWHERE", 24)
    assert next(row_blocks(7, 8, torch.device(device))) == slice(0, prefixes)
    assert node_blocks(ROWS.numpy(), 7, 8, torch.device(device))[0] == (slice(0, prefixes), slice(0, nodes))
