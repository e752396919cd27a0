"""Numbers that leave a network: finite, or an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from moses_rnn.errors import ScoreError

Floats = npt.NDArray[np.floating[Any]]


def finite(tensor: Tensor) -> Tensor:
    """Return the tensor, or raise ScoreError if a value is not finite."""
    if not tensor.isfinite().all():
        raise ScoreError("expected finite numbers inside the network, found nan or infinity")
    return tensor


def finite_array(tensor: Tensor) -> npt.NDArray[Any]:
    """Copy a tensor to the CPU as an array, or raise ScoreError if a value is not finite."""
    array: npt.NDArray[Any] = finite(tensor.detach()).cpu().numpy()
    return array
