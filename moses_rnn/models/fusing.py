"""Element-wise work as one pass over memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def fused(function: Function) -> Function:
    """The same function by torch.compile; needs a C++ compiler on a CPU, and some seconds the first time."""
    return cast(Function, torch.compile(function, dynamic=True))
