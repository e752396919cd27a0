"""How much a stepper does at once."""

import numpy as np
import pytest
import torch

from moses_rnn.networks import steps
from moses_rnn.networks.steps import node_blocks, row_blocks

ROWS = torch.tensor([0, 0, 2, 3, 3, 3, 5, 6])  # no word follows the prefixes 1 and 4


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


@pytest.mark.parametrize(("device", "prefixes", "nodes"), [("cpu", 1, 2), ("cuda", 3, 3)])
def test_the_device_decides_how_much_is_done_at_once(monkeypatch, device, prefixes, nodes):
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE", 8)
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE_ELSEWHERE", 24)
    assert next(row_blocks(7, 8, torch.device(device))) == slice(0, prefixes)
    assert node_blocks(ROWS.numpy(), 7, 8, torch.device(device))[0] == (slice(0, prefixes), slice(0, nodes))
