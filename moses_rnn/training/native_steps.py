"""The native core's passes over weights and gradients: an optimiser's step reads and writes each number once."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from torch import Tensor

from moses_rnn.native import NativeCore


class NativeSteps:
    """Steps of tensors in float32 on the CPU, without temporaries; the formulas are those of `optimisers`.

    Args:
        core: the library.
    """

    def __init__(self, core: NativeCore) -> None:
        self._functions = core.functions
        self._instructions = core.instructions
        self._functions.moses_rnn_train_sum_squares.restype = ctypes.c_double

    def adam(self, weights: Tensor, gradient: Tensor, state: Mapping[str, Tensor], options: Sequence[float]) -> None:
        """One step in place; options as in native/training.h."""
        self._step("adam", options, [weights, gradient, state["exp_avg"], state["exp_avg_sq"]])

    def adadelta(
        self, weights: Tensor, gradient: Tensor, state: Mapping[str, Tensor], options: Sequence[float]
    ) -> None:
        """One step in place; options: learning rate, ρ, ε, factor on the gradient."""
        self._step("adadelta", options, [weights, gradient, state["square_avg"], state["acc_delta"]])

    def sum_squares(self, gradient: Tensor) -> float:
        """Σ g² of a tensor; sums of some thousand numbers are added in double precision."""
        numbers = gradient.contiguous()
        total: float = self._functions.moses_rnn_train_sum_squares(
            ctypes.c_int64(self._instructions), ctypes.c_void_p(numbers.data_ptr()), ctypes.c_int64(numbers.numel())
        )
        return total

    def _step(self, rule: str, options: Sequence[float], tensors: Sequence[Tensor]) -> None:
        weights, gradient, *averages = tensors
        operands = [weights, gradient.contiguous(), *averages]
        getattr(self._functions, f"moses_rnn_train_{rule}")(
            ctypes.c_int64(self._instructions),
            (ctypes.c_float * len(options))(*options),
            *(ctypes.c_void_p(tensor.data_ptr()) for tensor in operands),
            ctypes.c_int64(weights.numel()),
        )
