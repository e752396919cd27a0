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

from moses_rnn.models.fusing import fused

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
        H, nodes, product = h_0.shape[1], len(x), of.product
        U_zr, U = torch.cat([U_z, U_r]).to(product), U.to(product)
        U_all = torch.cat([U_zr, U]) if of.reset_after else U_zr
        states, above = x.new_empty(nodes, H), x.new_empty(nodes, H)  # h_t and h_{t-1}
        gates, h_tilde = x.new_empty(nodes, 2 * H), x.new_empty(nodes, H)
        inside = x.new_empty(nodes, H)  # U h + c, or r h
        h, first = h_0, 0
        for rows in active:
            here = slice(first, first + rows)
            h = h[:rows]
            above[here] = h
            of_h = linear(h.to(product), U_all)
            if of.reset_after:
                h, gates[here], h_tilde[here], inside[here] = of.do.step_after(x[here], of_h, c[:rows], h)
            else:
                gates[here], inside[here] = of.do.gates_before(x[here], of_h, c[:rows], h)
                of_rh = linear(inside[here].to(product), U)
                h, h_tilde[here] = of.do.state_before(x[here], of_rh, c[:rows], gates[here], h)
            states[here] = h
            first += rows
        ctx.save_for_backward(above, gates, h_tilde, inside, U_all, U)
        ctx.of, ctx.active, ctx.phrases = of, active, len(h_0)
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (of_states,) = gradients
        above, gates, h_tilde, inside, U_all, U = ctx.saved_tensors
        H, product = above.shape[1], ctx.of.product
        of_x = of_states.new_empty(len(above), 3 * H)  # inside z, r, h~
        of_Uh = torch.empty_like(of_x) if ctx.of.reset_after else of_x
        of_c = of_states.new_zeros(ctx.phrases, 3 * H)
        of_h = of_states.new_zeros(ctx.phrases, H)
        last = len(above)
        for rows in reversed(ctx.active):
            here = slice(last - rows, last)
            d = of_h[:rows] + of_states[here]
            if ctx.of.reset_after:
                of_x[here], of_Uh[here], direct = ctx.of.do.back_after(
                    d, gates[here], h_tilde[here], inside[here], above[here]
                )
                of_c[:rows] += of_Uh[here]
                through = of_Uh[here]
            else:
                of_x[here, 2 * H :] = ctx.of.do.back_tilde(d, gates[here], h_tilde[here])
                of_rh = of_x[here, 2 * H :].to(product) @ U
                of_x[here, : 2 * H], direct = ctx.of.do.back_before(d, of_rh, gates[here], h_tilde[here], above[here])
                of_c[:rows] += of_x[here]
                through = of_x[here, : 2 * H]
            of_h[:rows] = direct + through.to(product) @ U_all
            last -= rows
        of_zr = of_Uh[:, : 2 * H].to(product).T @ above.to(product)
        of_U = of_Uh[:, 2 * H :].to(product).T @ (above if ctx.of.reset_after else inside).to(product)
        kind = above.dtype
        return of_x, of_c, of_h, of_zr[:H].to(kind), of_zr[H:].to(kind), of_U.to(kind), None, None
