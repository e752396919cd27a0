"""How good a pair is, as a cell of a histogram, and which pairs are good enough that a given number passes."""

from __future__ import annotations

from array import array  # a numpy array's cells are several times as slow to get at one by one
from collections.abc import Callable, Iterable

import numpy as np

from moses_rnn.analysis.scored_table import ScoredTable
from moses_rnn.formats.phrase_table import LOWEST, TableLine

CELLS_PER_NAT = 10_000
LOG_CELLS = int(-LOWEST) * CELLS_PER_NAT + 1
QUANTILE_CELLS = 1_000_000
MOST_CELLS = max(LOG_CELLS, QUANTILE_CELLS)

CellOf = Callable[[TableLine], int]  # the higher, the better the pair


def criterion(table: ScoredTable, by: str, lines: Iterable[TableLine]) -> CellOf:
    """How good a pair is by one of CRITERIA, as a cell of a histogram.

    Args:
        table: whose scores count.
        by: the criterion.
        lines: all of the table; read only for ``both``, whose quantiles are those of all pairs.
    """

    def direct(line: TableLine) -> int:
        return _log_cell(table.log_probs(line)[0])

    def rnn(line: TableLine) -> int:
        return _log_cell(table.log_probs(line)[-1])

    if by != "both":
        return {"direct": direct, "rnn": rnn}[by]
    histograms = zeros(LOG_CELLS), zeros(LOG_CELLS)
    for line in lines:
        for histogram, log_prob in zip(histograms, table.log_probs(line), strict=True):
            histogram[_log_cell(log_prob)] += 1
    quantiles = [_quantiles(histogram) for histogram in histograms]

    def both(line: TableLine) -> int:
        left, right = (q[_log_cell(x)] for q, x in zip(quantiles, table.log_probs(line), strict=True))
        return int((left + right) / 2 * (QUANTILE_CELLS - 1))

    return both


def _log_cell(log_prob: float) -> int:
    return min(int((log_prob - LOWEST) * CELLS_PER_NAT + 0.5), LOG_CELLS - 1)


def zeros(count: int) -> array[int]:
    """An empty histogram."""
    return array("q", bytes(8 * count))


def _quantiles(histogram: array[int]) -> array[float]:
    """The share of pairs below each cell, those within it counted half: 0 to 1, and 1/2 if all are in one."""
    here = np.frombuffer(histogram, np.int64)
    upto = here.cumsum()
    return array("d", ((upto - here / 2) / upto[-1]).tobytes())


class Chooser:
    """Lets a given number of pairs pass: all above the threshold, and evenly spread ones of those within its cell.

    Args:
        histogram: of all pairs that it will be called with.
        wanted: how many of them pass; none if it is below 0.
    """

    def __init__(self, histogram: array[int], wanted: int) -> None:
        wanted = max(wanted, 0)
        from_above = np.frombuffer(histogram, np.int64)[::-1].cumsum()
        cell = min(int(np.searchsorted(from_above, wanted)), len(histogram) - 1)
        self._threshold = len(histogram) - 1 - cell
        self._ties = histogram[self._threshold]
        self._passing = wanted - (int(from_above[cell]) - self._ties)
        self._seen = 0

    @property
    def ties(self) -> tuple[int, int]:
        """How many pairs are at the threshold, and how many of them pass."""
        return self._ties, self._passing

    def __call__(self, cell: int) -> bool:
        """Whether a pair passes; called once for each."""
        if cell != self._threshold:
            return cell > self._threshold
        self._seen += 1
        return self._seen * self._passing // self._ties > (self._seen - 1) * self._passing // self._ties
