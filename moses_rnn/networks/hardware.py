"""Choose where and how a network computes: device, precision, torch or the native core, and fused operations."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.errors import ArgumentError, MosesRnnError
from moses_rnn.native import PRECISIONS as NATIVE_PRECISIONS

CPU_FLAGS = Path("/proc/cpuinfo")
LARGE = 512  # hidden units from which products and memory decide the speed
LARGE_TO_LEARN = 256  # hidden units from which compiling pays off in training, which takes longer
VARIANTS = 64  # compiled variants per function (types, threads, single rows); torch's limit of 8 would disable fusing

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp64": torch.float64}


@dataclass(frozen=True)
class Compute:
    """Where and how a network computes; raises ValueError for a missing device or an unknown precision."""

    device: str = "cpu"
    precision: str = "fp32"  # of matrix products: one of PRECISIONS or NATIVE_PRECISIONS
    native: bool = False  # whether the native core computes instead of torch
    floors_long: bool = False  # whether pairs that are too long for a network score the floor instead of an error

    def __post_init__(self) -> None:
        precisions = NATIVE_PRECISIONS if self.native else tuple(PRECISIONS)
        if self.precision not in precisions:
            raise ValueError(f"expected a precision of {', '.join(precisions)}, found {self.precision!r}")
        if torch.device(self.device).type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"expected a device that torch can use here, found {self.device!r}")

    @property
    def dtype(self) -> torch.dtype:
        """The type of matrix products."""
        return PRECISIONS[self.precision]


HERE = Compute()  # the reference: torch on the CPU in float32


@functools.cache
def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with torch.compile; needs a C++ compiler on a CPU, and a few seconds the first time."""
    options: dict[str, Any] = {"dynamic": True}
    if "recompile_limit" in inspect.signature(torch.compile).parameters:  # missing in older supported versions
        options["recompile_limit"] = VARIANTS
    return torch.compile(function, **options)


@dataclass(frozen=True)
class Kernel:
    """How a network computes: the type of matrix products, and whether the operations between them are fused.

    ``kernel(function)(…)`` calls a function of tensors that way.
    """

    product_dtype: torch.dtype | None = None  # None: the type of the operands
    compiled: bool = False

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, fused if `compiled`."""
        return fused(function) if self.compiled else function

    def rounded(self, x: Tensor) -> Tensor:
        """Convert an operand to the type of products."""
        return x.to(self.product_dtype or x.dtype)

    def prepared(self, x: Tensor) -> Tensor:
        """Round an operand once for several `times`."""
        return self.rounded(x)

    def times(self, x: Tensor, W: Tensor) -> Tensor:
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


def require_fusing() -> None:
    """Raise MosesRnnError unless torch can compile here."""
    try:
        fused(torch.sin)(torch.zeros(3))
    except Exception as error:  # each missing tool raises a different class
        reason = str(error).strip().partition("\n")[0]
        raise MosesRnnError(f"compiled: torch cannot compile here (is there a C++ compiler?): {reason}") from error


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


def choose_compiled(wanted: bool | None, device: str, hidden_size: int, *, long: bool, large: int = LARGE) -> bool:
    """Whether to fuse operations with torch.compile: by default, in long jobs with a large network.

    Long jobs make up for the time of compiling; a network is large if it has at least `large` hidden units.
    """
    if wanted is False or (wanted is None and (not long or hidden_size < large or device.startswith("cuda"))):
        return False
    try:
        require_fusing()
    except MosesRnnError:
        if wanted:
            raise
        return False
    return True
