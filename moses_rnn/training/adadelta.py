"""Adadelta (Zeiler 2012) that can pass once over the weights; torch's passes over them twelve times."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from moses_rnn.models.fusing import fused


def update(tensors: list[Tensor], scale: Tensor, options: list[float]) -> None:
    """Algorithm 1, ε inside both roots, in place.

    Args:
        tensors: weights, their gradient, the averages of its squares and of the steps' squares; all of one shape.
        scale: a factor on the gradient.
        options: lr, ρ and ε.
    """
    weights, gradient, square_avg, acc_delta = tensors
    lr, rho, epsilon = options
    g = gradient * scale
    square_avg.mul_(rho).addcmul_(g, g, value=1 - rho)
    step = torch.sqrt(acc_delta + epsilon) / torch.sqrt(square_avg + epsilon) * g
    acc_delta.mul_(rho).addcmul_(step, step, value=1 - rho)
    weights.sub_(step, alpha=lr)


class Adadelta(torch.optim.Optimizer):
    """Its state has the names of torch.optim.Adadelta's.

    Args:
        weights: to be trained.
        lr: factor on the steps.
        rho: decay of both averages.
        epsilon: see `update`.
        one_pass: compile the update.
    """

    def __init__(self, weights: Iterable[Tensor], lr: float, rho: float, epsilon: float, *, one_pass: bool) -> None:
        super().__init__(weights, {"lr": lr, "rho": rho, "epsilon": epsilon})
        self._update = fused(update) if one_pass else update

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step along the gradients."""
        assert closure is None
        self.step_along(1.0)

    @torch.no_grad()
    def step_along(self, scale: float) -> None:
        """One step along the gradients times `scale`."""
        for group in self.param_groups:
            options = [group["lr"], group["rho"], group["epsilon"]]
            for weights in group["params"]:
                if weights.grad is None:
                    continue
                state = self.state[weights]
                if not state:
                    state["square_avg"] = torch.zeros_like(weights)
                    state["acc_delta"] = torch.zeros_like(weights)
                tensors = [weights.data, _plain(weights.grad), state["square_avg"], state["acc_delta"]]
                factor = torch.full((), scale, device=weights.device)  # a number would be compiled into the pass
                self._update(tensors, factor, options)


def _plain(tensor: Tensor) -> Tensor:
    """Neither a parameter nor the middle of another tensor, for which torch.compile would make passes of their own."""
    return tensor.data if tensor.storage_offset() == 0 else tensor.data.clone()
