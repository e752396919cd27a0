"""How two columns of figures correlate, all of them or a sample."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SAMPLE_SIZE = 100_000  # rows from which a rank correlation is estimated


def ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    means: Floats = np.cumsum(sizes) - (sizes - 1) / 2
    return means[group]


def pearson(x: Floats, y: Floats) -> float | None:
    """The correlation of two columns, -1 to 1; None if one of them is constant or there are fewer than two values."""
    if not len(x) or (x == x[0]).all() or (y == y[0]).all():  # rounding would make tiny variances of constants
        return None
    x, y = x - x.mean(), y - y.mean()
    both = math.sqrt(x @ x) * math.sqrt(y @ y)
    return max(-1.0, min(1.0, float(x @ y) / both)) if both else None


def spearman(x: Floats, y: Floats) -> float | None:
    """The correlation of their ranks; None as for `pearson`."""
    return pearson(ranks(x), ranks(y))


def draw(rows: Floats, keys: Floats, size: int) -> Floats:
    """The rows with the smallest keys, in their order: of random keys, each row is as likely to be drawn as any other.

    Args:
        rows: one for each key.
        keys: random numbers.
        size: how many rows to draw at most.
    """
    drawn: Floats = rows[np.argsort(keys, kind="stable")[:size]]
    return drawn
