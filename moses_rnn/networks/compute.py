"""Choose where and how a network computes: device, precision, and torch or the native core."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.errors import ArgumentError

CPU_FLAGS = Path("/proc/cpuinfo")
LARGE = 512  # hidden units from which products and memory decide the speed

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp64": torch.float64}


@dataclass(frozen=True)
class Compute:
    """Where and how a network computes."""

    device: str = "cpu"
    precision: str = "fp32"  # of matrix products: one of PRECISIONS, or of native.PRECISIONS
    native: bool = False  # whether the native core computes instead of torch
    floors_long: bool = False  # whether pairs that are too long for a network score the floor instead of an error

    @property
    def dtype(self) -> torch.dtype:
        """The type of matrix products."""
        return PRECISIONS[self.precision]


HERE = Compute()  # the reference: torch on the CPU in float32


@dataclass(frozen=True)
class Kernel:
    """How a network computes matrix products."""

    product_dtype: torch.dtype | None = None  # None: the type of the operands

    def rounded(self, x: Tensor) -> Tensor:
        """Convert an operand to the type of products."""
        return x.to(self.product_dtype or x.dtype)

    def prepared(self, x: Tensor) -> Tensor:
        """Round an operand once for several `matmul`."""
        return self.rounded(x)

    def matmul(self, x: Tensor, W: Tensor) -> Tensor:
        """Multiply rows by a matrix; return the result in the type of the rows."""
        return linear(self.rounded(x), self.rounded(W)).to(x.dtype)


EAGER = Kernel()


def choose_device(wanted: str, argument: str) -> str:
    """Return a torch device; "auto" prefers CUDA. Raise ArgumentError, naming the argument, for a missing device."""
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    given, expected = f"{argument} {wanted}", "cpu, cuda or cuda:N that torch can use here"
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", wanted):
        raise ArgumentError(given, expected, "no such device")
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise ArgumentError(given, "a CUDA device", f"none ({argument} cpu works everywhere)")
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise ArgumentError(given, expected, "no such device") from error
    return wanted


def choose_precision(wanted: str, device: str, hidden_size: int) -> str:
    """Return the precision of matrix products; "auto" is bf16 if the hardware supports it and the network is large."""
    if wanted != "auto":
        return wanted
    if device.startswith("cuda"):
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if hidden_size >= LARGE and _cpu_multiplies_bf16() else "fp32"


def _cpu_multiplies_bf16() -> bool:
    try:
        flags = CPU_FLAGS.read_text()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
