"""Weights averaged over the last steps, which cost less than the last ones while the learning rate is still high."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

STEPS = 10  # between two weights that are averaged: neighbours differ little


class Average:
    """A running average whose horizon grows with the number of steps (Shamir and Zhang 2013, section 4).

    The weights of step t enter with 1 / (share · t), so that about the last `share` of all steps count, whenever
    training ends.

    Args:
        model: whose weights.
        share: of the steps; 0 for no average.
    """

    def __init__(self, model: nn.Module, share: float) -> None:
        self._share = share
        self._weights = list(model.parameters())
        names = [name for name, _ in model.named_parameters()] if share else []
        self.tensors = {
            name: tensor.detach().clone() for name, tensor in zip(names, self._weights, strict=False)
        }  # by name, as they are saved
        self._averages = list(self.tensors.values())

    @torch.no_grad()
    def add(self, part: list[int], steps: int) -> None:
        """Let the weights at some places count, now and then.

        Args:
            part: places among the network's weights.
            steps: done before the one that led to these weights.
        """
        if not self._averages or (steps + 1) % STEPS:
            return
        rate = min(STEPS / (self._share * (steps + 1)), 1.0)
        torch._foreach_lerp_([self._averages[i] for i in part], [self._weights[i].detach() for i in part], rate)

    @contextlib.contextmanager
    def in_place(self, steps: int) -> Iterator[None]:
        """Have the network compute with the averages; before there are any, with its own weights."""
        if not self._averages or steps < STEPS:
            yield
            return
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for average, weights in zip(self._averages, self._weights, strict=True):
            kept = average.clone()
            average.copy_(weights)
            weights.copy_(kept)
