"""What suits a network and a device: the precision of products, whether to compile the rest."""

from __future__ import annotations

from pathlib import Path

import torch

from moses_rnn.models.fusing import can_fuse, require_fusing

CPU_FLAGS = Path("/proc/cpuinfo")
LARGE = 512  # hidden units from which products and memory decide the speed
LARGE_TO_LEARN = 256  # and from which compiling pays in a training, which is longer


def choose_precision(wanted: str, device: str, hidden_size: int) -> str:
    """The precision of matrix products: "auto" is bf16 where the processor computes in it and the network is large."""
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
    """Whether to let torch.compile fuse the work between products: unless said, for long work with a large network.

    Args:
        wanted: what the user said.
        device: where it is done.
        hidden_size: of the network.
        long: whether the work is long enough to win back what compiling takes.
        large: hidden units from which on a network is.

    Raises:
        MosesRnnError: it is wanted, and torch cannot compile here.
    """
    if wanted is None:
        return long and hidden_size >= large and not device.startswith("cuda") and can_fuse()
    if wanted:
        require_fusing()
    return wanted
