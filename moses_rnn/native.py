"""The native core: a shared library, built from `native/` where there was a C++ compiler. All works without it too."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

from moses_rnn.errors import InputError, shown_value

LIBRARY = Path(__file__).parent / "_native.so"
INTERFACE = 2  # version of the library's functions, which must match
MOST_THREADS = 1024  # limit for users; torch crashes if the system grants fewer threads than asked for
SWITCH = "MOSES_RNN_NATIVE"  # "0": do not use the core; or the best instruction set to use
INSTRUCTION_SETS = ("portable", "avx2", "avx512", "avx512bf16", "amx")  # from the least to the most, as native/cpu.h


PRECISIONS = ("fp32", "bf16")  # of products, as native/kernels.h numbers them


class NativeCore:
    """The library, and the instruction set that its kernels use (an index of INSTRUCTION_SETS)."""

    def __init__(self, functions: ctypes.CDLL, instructions: int) -> None:
        self.functions = functions
        self.instructions = instructions
        self.name = f"native core, {INSTRUCTION_SETS[instructions]}"

    def multiplies(self, precision: str) -> bool:
        """Whether its instructions support products in a precision."""
        return precision == "fp32" or (
            precision in PRECISIONS and self.instructions >= INSTRUCTION_SETS.index("avx512bf16")
        )

    def __str__(self) -> str:
        return self.name


def native_core() -> NativeCore | None:
    """Return the library, if it was built and is not switched off (see SWITCH)."""
    wanted = os.environ.get(SWITCH, INSTRUCTION_SETS[-1])
    if wanted not in ("0", *INSTRUCTION_SETS):
        raise InputError(f"{SWITCH}: expected 0 or one of {', '.join(INSTRUCTION_SETS)}, found {shown_value(wanted)}")
    functions = None if wanted == "0" else _load()
    if functions is None:
        return None
    best: int = functions.moses_rnn_instructions()
    return NativeCore(functions, min(best, INSTRUCTION_SETS.index(wanted)))


@functools.cache
def _load() -> ctypes.CDLL | None:
    try:
        functions = ctypes.CDLL(str(LIBRARY))
        interface: int = functions.moses_rnn_interface()
    except (OSError, AttributeError):  # not built, built for other machines, or not ours
        return None
    return functions if interface == INTERFACE else None
