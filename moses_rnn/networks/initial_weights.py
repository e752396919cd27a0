"""Tensors that are to be learned, and the uniform distribution that most feed-forward networks begin from."""

from __future__ import annotations

import torch
from torch import nn


def unset(*shape: int) -> nn.Parameter:
    """A tensor to be learned, of whatever numbers the memory holds."""
    return nn.Parameter(torch.empty(*shape))


class GatedStep(nn.Module):
    """The weights of a gated step of H units that reads E numbers, but for those of a context."""

    def _add_cell(self, H: int, E: int) -> None:
        self.W, self.W_z, self.W_r = unset(H, E), unset(H, E), unset(H, E)
        self.U, self.U_z, self.U_r = unset(H, H), unset(H, H), unset(H, H)
        self.b, self.b_z, self.b_r = unset(H), unset(H), unset(H)


@torch.no_grad()
def draw_uniformly(model: nn.Module, seed: int, deviation: float) -> None:
    """Draw all weights uniformly from ±`deviation`; equal seeds give equal weights."""
    random = torch.Generator().manual_seed(seed)
    for tensor in model.parameters():
        tensor.copy_(deviation * (2 * torch.rand(tensor.shape, generator=random) - 1))
