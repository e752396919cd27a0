"""Train on CPUs with the native core: products, recurrences and normalisations, each with its gradient.

The results equal those of torch's operations, up to the last digits of float32 sums, in fewer passes over memory. Each
call runs in its own thread, without the GIL. Tensors are row-major float32 on the CPU; products are computed in float32
or with operands rounded to bfloat16, and always summed in float32.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from moses_rnn.errors import MosesRnnError
from moses_rnn.native import INSTRUCTION_SETS, PRECISIONS, NativeCore, native_core
from moses_rnn.networks.compute import Kernel


@dataclass(frozen=True, kw_only=True)
class NativeKernel(Kernel):
    """Computes products, recurrences and normalisations in the native core, and the rest in torch."""

    core: NativeCore

    def run(self, function: str, *arguments: object) -> None:
        """Call a library function in the kernel's precision."""
        precision = PRECISIONS.index("bf16" if self.product_dtype == torch.bfloat16 else "fp32")
        call = getattr(self.core.functions, f"moses_rnn_train_{function}")
        if call(*map(_argument, (self.core.instructions, precision, *arguments))):
            raise MemoryError("cannot allocate memory for a step of training")

    def prepared(self, x: Tensor) -> Tensor:
        """Return x unchanged: the core rounds it."""
        return x

    def matmul(self, x: Tensor, W: Tensor) -> Tensor:
        """See `Kernel`."""
        rows: Tensor = Linear.apply(x, W, self)  # type: ignore[no-untyped-call]
        return rows


def instructions_to_learn(device: str, precision: str) -> str:
    """Return the native core's instruction set for training in a precision, fp32 or bf16; "" if torch trains."""
    core = native_core() if device == "cpu" else None
    return INSTRUCTION_SETS[core.instructions] if core is not None and core.multiplies(precision) else ""


def core_named(instructions: str) -> NativeCore:
    """Return the native core limited to a named instruction set, so that a resumed training computes the same sums."""
    core = native_core()
    place = INSTRUCTION_SETS.index(instructions)
    if core is None or core.instructions < place:
        raise MosesRnnError(f"expected the native core with {instructions}, found {core or 'none'}")
    return NativeCore(core.functions, place)


def _argument(value: object) -> object:
    if isinstance(value, Tensor):
        return ctypes.c_void_p(address(value))
    return ctypes.c_int64(value) if isinstance(value, int) else value


def address(tensor: Tensor) -> int:
    """Return the address of a tensor, valid for one call: torch moves a tensor's memory when it is shared or converted.

    Raise MosesRnnError unless it is what the core reads: float32 numbers or int64 ids, row by row, on the CPU.
    """
    if tensor.dtype not in {torch.float32, torch.int64} or tensor.device.type != "cpu" or not tensor.is_contiguous():
        expected = "contiguous float32 or int64 tensors on the CPU for the native core"
        found = f"{tensor.dtype} on {tensor.device}, strides {tensor.stride()}"
        raise MosesRnnError(f"expected {expected}, found {found}")
    return tensor.data_ptr()


def addresses(tensors: Sequence[Tensor | None]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the tensors' addresses, as `address` does, as a C array; null for None."""
    return (ctypes.c_void_p * len(tensors))(*(None if tensor is None else address(tensor) for tensor in tensors))


def numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """Return integers as a C array."""
    return (ctypes.c_int64 * len(values))(*values)


class Linear(torch.autograd.Function):
    """Multiply rows by a matrix: ``linear(x, W)``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, kernel: NativeKernel) -> Tensor:
        """x is rows × inner, W columns × inner."""
        x, W = x.detach().contiguous(), W.detach().contiguous()
        ctx.save_for_backward(x, W)
        ctx.kernel = kernel
        return _product(kernel, (x, False), (W, True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x and W."""
        x, W = ctx.saved_tensors
        grad = gradients[0].contiguous()
        grad_x = _product(ctx.kernel, (grad, False), (W, False)) if ctx.needs_input_grad[0] else None
        grad_W = _product(ctx.kernel, (grad, True), (x, False)) if ctx.needs_input_grad[1] else None
        return grad_x, grad_W, None


def _product(kernel: NativeKernel, A: tuple[Tensor, bool], B: tuple[Tensor, bool]) -> Tensor:
    """Return the product A B; each may be given transposed."""
    (a, a_transposed), (b, b_transposed) = A, B
    rows, inner = reversed(a.shape) if a_transposed else a.shape
    out = a.new_empty(rows, b.shape[0] if b_transposed else b.shape[1])
    operands = a, a.shape[1], int(a_transposed), b, b.shape[1], int(b_transposed)
    kernel.run("product", *operands, out, rows, inner, out.shape[1])
    return out


class States(torch.autograd.Function):
    """All states of a recurrence; see `Recurrence.states`."""

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917, the operands of which autograd wants gradients
        ctx: Any,
        x: Tensor,
        c: Tensor,
        h_0: Tensor,
        U_z: Tensor,
        U_r: Tensor,
        U: Tensor,
        kernel: NativeKernel,
        reset_after: bool,
        active: Sequence[int],
    ) -> Tensor:
        """See `Recurrence.states`."""
        H = h_0.shape[1]
        given = [tensor.detach().contiguous() for tensor in (x, c, h_0, U_z, U_r, U)]
        kept = [x.new_empty(len(x), size) for size in (H, 2 * H, H, H)]  # states, gates, h~, inside
        ctx.sizes = numbers((H, len(h_0), len(active), int(reset_after))), numbers(active)
        kernel.run("states", *ctx.sizes, addresses([*given, *kept]))
        ctx.save_for_backward(*given, *kept)
        ctx.kernel = kernel
        return kept[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, c, h_0 and the matrices."""
        saved = ctx.saved_tensors
        x, c, h_0, *matrices = saved[:6]
        made = [torch.empty_like(x), torch.zeros_like(c), torch.zeros_like(h_0), *map(torch.empty_like, matrices)]
        grad = gradients[0].contiguous()
        ctx.kernel.run("states_back", *ctx.sizes, addresses(saved), addresses([grad, *made]))
        return *made, None, None, None


class ChosenLogProbs(torch.autograd.Function):
    """Log softmax at one word per row; see `chosen_log_probs`. Logits are recomputed instead of kept."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, G_l: Tensor, b_G: Tensor, words: Tensor, kernel: NativeKernel) -> Tensor:
        """See `chosen_log_probs`."""
        given = [tensor.detach().contiguous() for tensor in (projected, G_l, b_G, words)]
        log_probs, log_total = (projected.new_empty(len(words)) for _ in range(2))
        ctx.sizes = *projected.shape, len(G_l)
        kernel.run("log_probs", *ctx.sizes, *given, log_probs, log_total)
        ctx.save_for_backward(*given, log_total)
        ctx.kernel = kernel
        return log_probs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `projected`, G_l and b_G."""
        saved = ctx.saved_tensors
        projected, G_l, b_G, *_ = saved
        made = [torch.zeros_like(projected), torch.empty_like(G_l), torch.empty_like(b_G)]
        ctx.kernel.run("log_probs_back", *ctx.sizes, *saved, gradients[0].contiguous(), *made)
        return *made, None, None
