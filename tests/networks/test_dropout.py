"""Dropout: the share that is left out, what becomes of the others, and that a number decides which."""

import pytest
import torch

from moses_rnn.networks.network import drop_units, keep

CPU = torch.device("cpu")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_units_are_left_out_or_scaled_up(share):
    x = 1 + torch.rand(200, 300, generator=torch.Generator().manual_seed(1))
    dropped = drop_units(share, 7, CPU)(x)
    out = dropped == 0
    assert out.float().mean().item() == pytest.approx(share, abs=0.01)  # 6 standard deviations of 60,000 units
    torch.testing.assert_close(dropped[~out], x[~out] / (1 - share))
    assert dropped.mean().item() == pytest.approx(x.mean().item(), rel=0.06)


def test_without_a_share_nothing_changes():
    assert drop_units(0.0, 7, CPU) is keep
    x = torch.randn(3, 4)
    assert keep(x) is x


def test_the_number_decides_which_and_each_call_leaves_out_others():
    x = torch.ones(50, 60)
    first, second = (drop_units(0.5, 7, CPU) for _ in range(2))
    calls = [first(x), first(x)]
    assert torch.equal(calls[0], second(x))
    assert torch.equal(calls[1], second(x))
    assert not torch.equal(*calls)
    assert not torch.equal(calls[0], drop_units(0.5, 8, CPU)(x))
