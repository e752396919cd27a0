"""The gated recurrence over packed phrases, with its gradient written out.

Autograd would add to each matrix's gradient at every step, writing it to memory each time. This code keeps the factors
of all steps and multiplies them once. Packed rows are ordered by step: step 1 of all phrases, then step 2 of the
phrases that have one, …; phrases are sorted, longest first. H hidden units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.networks.compute import EAGER, Kernel
from moses_rnn.networks.native_learning import NativeKernel, States


def gates_before(x: Tensor, Uh: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gates of a step in which r acts on h, and r h."""
    H = h.shape[1]
    gates = torch.sigmoid(x[:, : 2 * H] + Uh + c[:, : 2 * H])
    return gates, gates[:, H:] * h


def state_before(x: Tensor, Urh: Tensor, c: Tensor, gates: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Return h_t and h~ from U (r h)."""
    H = h.shape[1]
    h_tilde = torch.tanh(x[:, 2 * H :] + Urh + c[:, 2 * H :])
    return torch.lerp(h_tilde, h, gates[:, :H]), h_tilde


class Step(NamedTuple):
    """The values of a step that its gradient needs; one row for each phrase with this step."""

    h: Tensor  # h_t; H
    above: Tensor  # h_{t-1}; H
    gates: Tensor  # z and r; 2H
    h_tilde: Tensor  # H
    inside: Tensor  # U h + c if the reset gate acts after the product, otherwise r h; H


class Recurrence(NamedTuple):
    """h_t = z h_{t-1} + (1 - z) h~ for packed rows.

    `U_z`, `U_r` and `U` are H × H. With `reset_after`, h~ = tanh(x + r (U h + c)), else tanh(x + U (r h) + c).
    """

    U_z: Tensor
    U_r: Tensor
    U: Tensor
    reset_after: bool
    kernel: Kernel = EAGER

    def states(self, x: Tensor, c: Tensor | None, h_0: Tensor | None, active: Sequence[int]) -> Tensor:
        """Return all states h_t, packed (nodes × H); `active` is the number of phrases at each step, descending.

        `x` is added inside z, r and h~, in this order (nodes × 3H), and so is `c` at every step of a phrase (phrases ×
        3H); h_0 is phrases × H. Without c and h_0 they are 0.
        """
        operands = *self._whole(x, c, h_0, active), self.U_z, self.U_r, self.U
        states: Tensor
        if isinstance(self.kernel, NativeKernel):
            states = States.apply(*operands, self.kernel, self.reset_after, active)  # type: ignore[no-untyped-call]
        else:
            states = _Function.apply(*operands, self, active)  # type: ignore[no-untyped-call]
        return states

    @torch.no_grad()
    def gates(self, x: Tensor, c: Tensor | None, h_0: Tensor | None, active: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return z and r of every step, packed; nodes × H each. Arguments are as in `states`."""
        steps = [step.gates for step in self.steps(*self._whole(x, c, h_0, active), active, *self.matrices())]
        z, r = torch.cat([x.new_empty(0, 2 * len(self.U)), *steps]).chunk(2, 1)
        return z, r

    def _whole(
        self, x: Tensor, c: Tensor | None, h_0: Tensor | None, active: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows, H = (active[0] if h_0 is None else len(h_0)), len(self.U)
        return (
            x,
            x.new_zeros(1, 1).expand(rows, 3 * H) if c is None else c,
            x.new_zeros(rows, H) if h_0 is None else h_0,
        )

    def matrices(self) -> tuple[Tensor, Tensor]:
        """Return the stacked matrices that multiply h, and U, in the type of products."""
        U_zr, U = (self.kernel.rounded(matrix) for matrix in (torch.cat([self.U_z, self.U_r]), self.U))
        return (torch.cat([U_zr, U]) if self.reset_after else U_zr), U

    def steps(
        self, x: Tensor, c: Tensor, h_0: Tensor, active: Sequence[int], U_all: Tensor, U: Tensor
    ) -> Iterator[Step]:
        """Yield the steps; `U_all` and `U` are from `matrices`."""
        h, H = h_0, h_0.shape[1]
        for x_t in torch.split(x, list(active)):
            rows = len(x_t)
            c_t, above = c[:rows], h[:rows]
            Uh = linear(self.kernel.rounded(above), U_all)
            if self.reset_after:
                Uh_c = Uh + c_t
                gates = torch.sigmoid(x_t[:, : 2 * H] + Uh_c[:, : 2 * H])
                inside = Uh_c[:, 2 * H :]
                h_tilde = torch.tanh(x_t[:, 2 * H :] + gates[:, H:] * inside)
                h = torch.lerp(h_tilde, above, gates[:, :H])
            else:
                gates, inside = gates_before(x_t, Uh, c_t, above)
                h, h_tilde = state_before(x_t, linear(self.kernel.rounded(inside), U), c_t, gates, above)
            yield Step(h, above, gates, h_tilde, inside)

    def back(self, grad_h: Tensor, step: Step, U: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Propagate the gradient of h_t back through a step, except through the product with `U_all`.

        Return the gradients of the sums in z, r and h~ (rows × 3H); of U h + c, or of those sums again (rows × 3H); of
        the product with `U_all`; and of h_{t-1}, except through products (rows × H).
        """
        _, above, gates, h_tilde, inside = step
        z, r = gates.chunk(2, 1)
        grad_z = grad_h * (above - h_tilde) * z * (1 - z)
        grad_tilde = grad_h * (1 - z) * (1 - h_tilde * h_tilde)
        if self.reset_after:
            grad_gates = torch.cat([grad_z, grad_tilde * inside * r * (1 - r)], 1)
            grad_Uh = torch.cat([grad_gates, grad_tilde * r], 1)
            return torch.cat([grad_gates, grad_tilde], 1), grad_Uh, grad_Uh, grad_h * z
        grad_rh = self.kernel.rounded(grad_tilde) @ U
        grad_gates = torch.cat([grad_z, grad_rh * above * r * (1 - r)], 1)
        grad_x = torch.cat([grad_gates, grad_tilde], 1)
        return grad_x, grad_x, grad_gates, grad_h * z + grad_rh * r


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917, the operands of which autograd wants gradients
        ctx: Any,
        x: Tensor,
        c: Tensor,
        h_0: Tensor,
        U_z: Tensor,
        U_r: Tensor,
        U: Tensor,
        recurrence: Recurrence,
        active: Sequence[int],
    ) -> Tensor:
        U_all, U = recurrence.matrices()
        steps = list(recurrence.steps(x.detach(), c.detach(), h_0.detach(), active, U_all, U))
        ctx.save_for_backward(U_all, U, *(tensor for step in steps for tensor in step[1:]))
        ctx.recurrence, ctx.phrases = recurrence, len(h_0)
        return torch.cat([step.h for step in steps]) if steps else x.new_empty(0, h_0.shape[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, recurrence = gradients[0], ctx.recurrence
        U_all, U, *flat = ctx.saved_tensors
        if not flat:
            return None, None, None, *(None,) * 5
        steps = [Step(grad_states, *flat[i : i + 4]) for i in range(0, len(flat), 4)]
        H = grad_states.shape[1]
        grad_xs: list[Tensor] = []  # inside z, r and h~; last step first
        grad_Uhs: list[Tensor] = []  # inside z and r, and of U h + c or inside h~
        grad_c = grad_states.new_zeros(ctx.phrases, 3 * H)
        grad_h = grad_states.new_zeros(ctx.phrases, H)
        last = len(grad_states)
        for step in reversed(steps):
            rows = len(step.above)
            grad_step = grad_h[:rows] + grad_states[last - rows : last]
            grad_x, grad_Uh, through, direct = recurrence.back(grad_step, step, U)
            grad_h[:rows] = direct + recurrence.kernel.rounded(through) @ U_all
            grad_c[:rows] += grad_Uh
            grad_xs.append(grad_x)
            grad_Uhs.append(grad_Uh)
            last -= rows
        grad_U = _grad_matrices(recurrence, steps, torch.cat(grad_Uhs[::-1]))
        return torch.cat(grad_xs[::-1]), grad_c, grad_h, *grad_U, None, None


def _grad_matrices(recurrence: Recurrence, steps: Sequence[Step], grad_Uh: Tensor) -> Iterator[Tensor]:
    """Return the gradients of U_z, U_r and U, given those of their products."""
    H, rounded = recurrence.U.shape[0], recurrence.kernel.rounded
    above, inside = (rounded(torch.cat([step[i] for step in steps])) for i in (1, 4))
    grad_products = rounded(grad_Uh)
    grad_zr = grad_products[:, : 2 * H].T @ above
    grad_U = grad_products[:, 2 * H :].T @ (above if recurrence.reset_after else inside)
    return (matrix.to(grad_Uh.dtype, copy=True) for matrix in (grad_zr[:H], grad_zr[H:], grad_U))
