"""Dropout (Srivastava et al. 2014) decided by a number, so that a resumed training leaves out the same units."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Drop = Callable[[Tensor], Tensor]


def keep(x: Tensor) -> Tensor:
    """Leave nothing out."""
    return x


def drop_units(share: float, seed: int, device: torch.device) -> Drop:
    """A function that sets a share of the units to zero and scales the others up; of any shape.

    Args:
        share: of the units, from 0 to below 1.
        seed: decides which.
        device: of the units.
    """
    if not share:
        return keep
    random = torch.Generator(device).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        kept = torch.empty_like(x).bernoulli_(1 - share, generator=random)
        return x * kept.div_(1 - share)

    return drop
