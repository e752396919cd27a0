"""Tensors that are to be learned, and the uniform distribution that most feed-forward networks begin from."""

from __future__ import annotations

import torch
from torch import nn


def unset(*shape: int) -> nn.Parameter:
    """A tensor to be learned, of whatever numbers the memory holds."""
    return nn.Parameter(torch.empty(*shape))


@torch.no_grad()
def draw_uniformly(model: nn.Module, seed: int, deviation: float) -> None:
    """Draw all weights uniformly from ±`deviation`; equal seeds give equal weights."""
    random = torch.Generator().manual_seed(seed)
    for tensor in model.parameters():
        tensor.copy_(deviation * (2 * torch.rand(tensor.shape, generator=random) - 1))
