"""How much a stepper does at once."""

import pytest
import torch

from moses_rnn.networks import steps
from moses_rnn.networks.steps import node_blocks, row_blocks

ROWS = torch.tensor([0, 0, 2, 3, 3, 3, 5, 6])  # no word follows the prefixes 1 and 4


@pytest.mark.parametrize(("device", "prefixes", "nodes"), [("cpu", 1, 2), ("cuda", 3, 3)])
def test_the_device_decides_how_much_is_done_at_once(monkeypatch, device, prefixes, nodes):
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE", 8)
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE_ELSEWHERE", 24)
    assert next(row_blocks(7, 8, torch.device(device))) == slice(0, prefixes)
    assert node_blocks(ROWS.numpy(), 7, 8, torch.device(device))[0] == (slice(0, prefixes), slice(0, nodes))
