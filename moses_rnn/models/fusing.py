"""Element-wise work as one pass over memory."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

from moses_rnn.errors import MosesRnnError

VARIANTS = 64  # of a function: types, numbers of threads, single rows; beyond torch's limit of 8 it would run unfused

Function = TypeVar("Function", bound=Callable[..., Any])


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    options: dict[str, Any] = {"dynamic": True}
    if "recompile_limit" in inspect.signature(torch.compile).parameters:  # newer than the oldest torch that will do
        options["recompile_limit"] = VARIANTS
    return torch.compile(function, **options)


def fused(function: Function) -> Function:
    """The same function by torch.compile; needs a C++ compiler on a CPU, and some seconds the first time."""
    return cast(Function, _compiled(function))


def require_fusing() -> None:
    """Try it out.

    Raises:
        MosesRnnError: torch cannot compile here.
    """
    try:
        fused(torch.sin)(torch.zeros(3))
    except Exception as error:  # whatever is missing of the tool chain has its own class
        reason = str(error).strip().partition("\n")[0]
        raise MosesRnnError(f"--compile: torch cannot compile here (is there a C++ compiler?): {reason}") from error


def can_fuse() -> bool:
    """Whether torch can compile here."""
    try:
        require_fusing()
    except MosesRnnError:
        return False
    return True
