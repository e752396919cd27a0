"""How two columns of figures correlate: over a stream, or over a sample that was drawn from one."""

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
    moments = Moments()
    moments.add(x, y)
    return moments.pearson


def spearman(x: Floats, y: Floats) -> float | None:
    """The correlation of their ranks; None as for `pearson`."""
    return pearson(ranks(x), ranks(y))


class Moments:
    """Sums over a stream of pairs of values from which their correlation follows; about the means, so none cancels."""

    def __init__(self) -> None:
        self.count = 0
        self._means = np.zeros(2)
        self._products = np.zeros((2, 2))  # sums of products of deviations
        self._first = np.zeros(2)
        self._varies = np.zeros(2, np.bool_)

    def add(self, x: Floats, y: Floats) -> None:
        """Take a block of pairs in (Chan, Golub and LeVeque 1979: how the moments of two samples are joined)."""
        if not len(x):
            return
        block = np.stack([x, y])  # [2, pairs]
        if not self.count:
            self._first = block[:, 0].copy()
        self._varies |= (block != self._first[:, None]).any(axis=1)
        means = block.mean(axis=1)
        deviations = block - means[:, None]
        count = self.count + len(x)
        apart = means - self._means
        self._products += deviations @ deviations.T + np.outer(apart, apart) * (self.count * len(x) / count)
        self._means += apart * (len(x) / count)
        self.count = count

    @property
    def pearson(self) -> float | None:
        """The correlation, -1 to 1; None if one of the columns is constant or there are fewer than two pairs."""
        if not self._varies.all():  # rounding would make tiny variances of constants
            return None
        both = math.sqrt(self._products[0, 0]) * math.sqrt(self._products[1, 1])
        return max(-1.0, min(1.0, float(self._products[0, 1]) / both)) if both else None


class RowSample:
    """A number of rows of a stream, each as likely as any other (a reservoir).

    Rows come with random keys, and those with the smallest are kept: which ones that are does not depend on how the
    stream is cut into blocks.

    Args:
        size: rows to keep.
        width: values of a row.
    """

    def __init__(self, size: int, width: int = 2) -> None:
        self._size = size
        self._kept = np.empty((0, width + 1))  # keys, then values; by ascending key
        self._waiting: list[Floats] = []
        self._waiting_rows = 0

    def add(self, keys: Floats, rows: Floats) -> None:
        """Take a block in: keys [n] uniform in 0 to 1, rows [n, width]."""
        block = np.column_stack([keys, rows])
        if len(self._kept) == self._size:
            block = block[keys < self._kept[-1, 0]]
        if len(block):
            self._waiting.append(block)
            self._waiting_rows += len(block)
        if self._waiting_rows >= self._size:  # not for every block: sorting costs more than holding twice as many
            self._merge()

    def _merge(self) -> None:
        together = np.concatenate([self._kept, *self._waiting])
        self._kept = together[np.argsort(together[:, 0], kind="stable")[: self._size]]
        self._waiting, self._waiting_rows = [], 0

    @property
    def rows(self) -> Floats:
        """What was drawn, in random order."""
        self._merge()
        return self._kept[:, 1:]

    @property
    def spearman(self) -> float | None:
        """Of the first two columns."""
        rows = self.rows
        return spearman(rows[:, 0], rows[:, 1])
