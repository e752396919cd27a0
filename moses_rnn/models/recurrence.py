"""The gated recurrence over packed phrases, with its gradient written out.

Autograd would add up each matrix's gradient step after step, and so write it to memory as often as the phrases are
long; here the steps' factors are kept and multiplied once. Packed rows come step by step: those of step 1 for all
phrases, of step 2 for the phrases that have one, …; phrases are sorted, longest first. H hidden units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.models.hardware import fused

Forward = tuple[Tensor, Tensor, Tensor, Tensor]


def step_after(x: Tensor, Uh: Tensor, c: Tensor, h: Tensor) -> Forward:
    """One step where r acts on U h + c: h_t, the gates, h~, and U h + c."""
    H = h.shape[1]
    of_h = Uh + c
    gates = torch.sigmoid(x[:, : 2 * H] + of_h[:, : 2 * H])
    z, r = gates.chunk(2, 1)
    q = of_h[:, 2 * H :]
    h_tilde = torch.tanh(x[:, 2 * H :] + r * q)
    return torch.lerp(h_tilde, h, z), gates, h_tilde, q


def gates_before(x: Tensor, Uh: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """The gates where r acts on h, and r h."""
    H = h.shape[1]
    gates = torch.sigmoid(x[:, : 2 * H] + Uh + c[:, : 2 * H])
    return gates, gates[:, H:] * h


def state_before(x: Tensor, Urh: Tensor, c: Tensor, gates: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """h_t and h~ from U (r h)."""
    H = h.shape[1]
    h_tilde = torch.tanh(x[:, 2 * H :] + Urh + c[:, 2 * H :])
    return torch.lerp(h_tilde, h, gates[:, :H]), h_tilde


def back_after(d: Tensor, gates: Tensor, h_tilde: Tensor, q: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """From the gradient d of h_t to those of the sums inside z, r and h~; of U h + c; of h, but for products."""
    z, r = gates.chunk(2, 1)
    of_tilde = d * (1 - z) * (1 - h_tilde * h_tilde)
    of_gates = torch.cat([d * (h - h_tilde) * z * (1 - z), of_tilde * q * r * (1 - r)], 1)
    return torch.cat([of_gates, of_tilde], 1), torch.cat([of_gates, of_tilde * r], 1), d * z


def back_tilde(d: Tensor, gates: Tensor, h_tilde: Tensor) -> Tensor:
    """From the gradient d of h_t to that of the sum inside h~."""
    return d * (1 - gates[:, : h_tilde.shape[1]]) * (1 - h_tilde * h_tilde)


def back_before(d: Tensor, of_rh: Tensor, gates: Tensor, h_tilde: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """From the gradients of h_t and of r h to those of the sums inside z and r; of h, but for products."""
    z, r = gates.chunk(2, 1)
    return torch.cat([d * (h - h_tilde) * z * (1 - z), of_rh * h * r * (1 - r)], 1), d * z + of_rh * r


class Steps(NamedTuple):
    """The work between products; one operation after the other, or fused."""

    step_after: Callable[[Tensor, Tensor, Tensor, Tensor], Forward]
    gates_before: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
    state_before: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
    back_after: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
    back_tilde: Callable[[Tensor, Tensor, Tensor], Tensor]
    back_before: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]

    @classmethod
    def eager(cls) -> Steps:
        """One operation after the other."""
        return cls(step_after, gates_before, state_before, back_after, back_tilde, back_before)

    @classmethod
    def compiled(cls) -> Steps:
        """Fused by torch.compile."""
        return cls(
            fused(step_after),
            fused(gates_before),
            fused(state_before),
            fused(back_after),
            fused(back_tilde),
            fused(back_before),
        )


class Recurrence(NamedTuple):
    """h_t = z h_{t-1} + (1 - z) h~ for packed rows.

    `U_z`, `U_r` and `U` are H × H. With `reset_after`, h~ = tanh(x + r (U h + c)), else tanh(x + U (r h) + c).
    `product` is the type that products are computed in, `do` the work between them.
    """

    U_z: Tensor
    U_r: Tensor
    U: Tensor
    reset_after: bool
    product: torch.dtype
    do: Steps

    def states(self, x: Tensor, c: Tensor, h_0: Tensor, active: Sequence[int]) -> Tensor:
        """All states h_t, packed.

        Args:
            x: what is added inside z, r and h~, in this order; nodes × 3H.
            c: what is added at every step of a phrase, likewise; phrases × 3H.
            h_0: phrases × H.
            active: how many phrases have a step; descending.
        """
        states: Tensor = _Function.apply(x, c, h_0, self.U_z, self.U_r, self.U, self, active)  # type: ignore[no-untyped-call]
        return states


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        c: Tensor,
        h_0: Tensor,
        U_z: Tensor,
        U_r: Tensor,
        U: Tensor,
        of: Recurrence,
        active: Sequence[int],
    ) -> Tensor:
        x, c, h = x.detach(), c.detach(), h_0.detach()
        U_zr, U = torch.cat([U_z, U_r]).to(of.product), U.to(of.product)
        U_all = torch.cat([U_zr, U]) if of.reset_after else U_zr
        states, saved = [], []
        for part in torch.split(x, list(active)):
            rows = len(part)
            x_t, c_t, h = part.clone(), c[:rows].clone(), _first(h, rows)
            of_h = linear(h.to(of.product), U_all)
            above = h
            if of.reset_after:
                h, gates, h_tilde, inside = of.do.step_after(x_t, of_h, c_t, h)  # inside: U h + c
            else:
                gates, inside = of.do.gates_before(x_t, of_h, c_t, h)  # inside: r h
                h, h_tilde = of.do.state_before(x_t, linear(inside.to(of.product), U), c_t, gates, h)
            states.append(h)
            saved.append((above, gates, h_tilde, inside))
        ctx.save_for_backward(U_all, U, *(tensor for step in saved for tensor in step))
        ctx.of, ctx.phrases = of, len(h_0)
        return torch.cat(states) if states else x.new_empty(0, h_0.shape[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        of_states, of = gradients[0], ctx.of
        U_all, U, *flat = ctx.saved_tensors
        steps = [flat[i : i + 4] for i in range(0, len(flat), 4)]
        H = of_states.shape[1]
        of_x: list[Tensor] = []  # inside z, r and h~; last step first
        of_Uh: list[Tensor] = []  # inside z and r, and of U h + c or inside h~
        of_c = of_states.new_zeros(ctx.phrases, 3 * H)
        of_h = of_states.new_zeros(ctx.phrases, H)
        last = len(of_states)
        for above, gates, h_tilde, inside in reversed(steps):
            rows = len(above)
            d = of_h[:rows] + of_states[last - rows : last]
            if of.reset_after:
                of_x_t, of_Uh_t, direct = of.do.back_after(d, gates, h_tilde, inside, above)
                through = of_Uh_t
            else:
                of_tilde = of.do.back_tilde(d, gates, h_tilde)
                of_gates, direct = of.do.back_before(d, of_tilde.to(of.product) @ U, gates, h_tilde, above)
                of_x_t = of_Uh_t = torch.cat([of_gates, of_tilde], 1)
                through = of_gates
            of_h[:rows] = direct + through.to(of.product) @ U_all
            of_c[:rows] += of_Uh_t
            of_x.append(of_x_t)
            of_Uh.append(of_Uh_t)
            last -= rows
        if not steps:
            return None, None, None, *(None,) * 5
        every_Uh = torch.cat(of_Uh[::-1]).to(of.product)
        above, inside = (torch.cat([step[i] for step in steps]).to(of.product) for i in (0, 3))
        of_zr = every_Uh[:, : 2 * H].T @ above
        of_U = every_Uh[:, 2 * H :].T @ (above if of.reset_after else inside)
        kind = of_states.dtype
        of_weights = (matrix.to(kind, copy=True) for matrix in (of_zr[:H], of_zr[H:], of_U))
        return torch.cat(of_x[::-1]), of_c, of_h, *of_weights, None, None


def _first(h: Tensor, rows: int) -> Tensor:
    """The first rows; no view, for which torch.compile would make a pass of its own."""
    return h if len(h) == rows else h[:rows].clone()
