"""Figure 3 of the paper: phrase pairs by their log-probabilities under the translation model and under the RNN.

Every pair of the table is in the histogram and in Pearson's correlation; Spearman's is that of a sample. Pairs whose
RNN score is at the floor (moses-rnn-score writes nothing below e^-87) are counted and left out of the rest: that they
stand in a line is the floor's doing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_rnn.analysis.correlation import SAMPLE_SIZE, Floats, draw, pearson, spearman
from moses_rnn.analysis.scored_table import Pairs, split_by_count
from moses_rnn.formats.grids import Grid
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR, LOWEST

BIN = 0.25  # nats
BINS = int(-LOWEST / BIN)
ROUNDING = 1e-6  # nats; scores have nine digits
PARTS = 20  # of either axis of the picture


@dataclass(frozen=True)
class Group:
    """Pairs that were extracted about as often.

    Of `pairs`, `at_floor` have an RNN score at the floor and `without_log` a score of 0; the correlations are those of
    the others, Pearson's over all of them, Spearman's over `sample`. None: there is no correlation.
    """

    name: str
    pairs: int
    at_floor: int
    without_log: int
    pearson: float | None
    sample: int
    spearman: float | None


@dataclass(frozen=True)
class Scatter:
    """How many pairs have which two log-probabilities.

    `histogram[i, j]` counts pairs with log p(target | source) from -(i+1) to -i bins of BIN nats (0 belongs to the
    first), and the RNN's log p likewise by j; [400, 400]. `groups` are all pairs, then the classes of pair counts.
    """

    floor: float
    histogram: npt.NDArray[np.int64]
    groups: list[Group]


def compute_scatter(pairs: Pairs, *, floor: float = DEFAULT_FLOOR, seed: int = 1) -> Scatter:
    """Look at all pairs of a table, whose RNN scores were raised to a floor (a natural logarithm)."""
    keys = np.random.default_rng(seed).random(len(pairs.logs))
    histogram = _histogram(pairs.logs[_has_logs(pairs.logs, floor)])
    classes = split_by_count(pairs.counts)
    return Scatter(floor, histogram, [_group(name, pairs.logs[own], keys[own], floor) for name, own in classes])


def _has_logs(logs: Floats, floor: float) -> npt.NDArray[np.bool_]:
    usable: npt.NDArray[np.bool_] = (logs[:, 0] > LOWEST) & (logs[:, 1] > floor + ROUNDING)
    return usable


def _histogram(logs: Floats) -> npt.NDArray[np.int64]:
    cells = np.clip(np.floor(-logs / BIN), 0, BINS - 1).astype(np.int64)
    return np.bincount(cells[:, 0] * BINS + cells[:, 1], minlength=BINS * BINS).reshape(BINS, BINS)


def _group(name: str, logs: Floats, keys: Floats, floor: float) -> Group:
    usable, without_log = _has_logs(logs, floor), (logs == LOWEST).any(axis=1)
    good, sample = logs[usable], draw(logs[usable], keys[usable], SAMPLE_SIZE)
    at_floor = int((~usable & ~without_log).sum())
    return Group(name, len(logs), at_floor, int(without_log.sum()), pearson(*good.T), len(sample), spearman(*sample.T))


GROUPS_HEADER = ("pairs", "number", "at the floor", "score 0", "Pearson", "sample", "Spearman")


def groups_grid(pairs: Scatter) -> Grid:
    """The correlations as a table of a row for each class, to be rendered by `grids`."""
    rows = [list(vars(group).values()) for group in pairs.groups]
    return Grid("Correlation of log p(target|source) and the RNN's log p", GROUPS_HEADER, rows)


def histogram_grid(pairs: Scatter) -> Grid:
    """The figure as numbers: the middle of each cell that is not empty, in nats, and its pairs."""
    rows = [
        (-(i + 0.5) * BIN, -(j + 0.5) * BIN, int(pairs.histogram[i, j]))
        for i, j in np.argwhere(pairs.histogram).tolist()
    ]
    return Grid("", ("log_p_table", "log_p_rnn", "pairs"), rows)


def merge_by_quantiles(pairs: Scatter, parts: int = PARTS) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """The histogram in coarser cells, whose columns and whose rows hold about as many pairs as each other.

    The likeliest bin is a column or row of its own: p = 1, of sources that were seen once, may be half of all pairs.

    Args:
        pairs: the histogram; not empty.
        parts: at most so many columns, and rows.

    Returns:
        Cells, [columns, rows], from the likeliest on; where columns and rows end, in nats, each from 0 downwards.
    """
    cells: npt.NDArray[np.int64] = pairs.histogram
    ends = []
    for axis in (0, 1):
        last = _last_of_parts(cells.sum(axis=1 - axis), parts)
        cells = np.add.reduceat(cells, np.append(0, last[:-1] + 1), axis=axis)
        ends.append(-BIN * np.append(0, last + 1).astype(np.float64))
    return cells, ends[0], ends[1]


def _last_of_parts(counts: npt.NDArray[np.int64], parts: int) -> npt.NDArray[np.int64]:
    """The last bin of each part, which is none that is empty."""
    first, *rest = np.flatnonzero(counts).tolist()
    share = np.cumsum(counts[rest]) / max(counts[rest].sum(), 1)
    ends = np.diff(np.ceil(share * (parts - 1)), append=np.inf) > 0
    return np.array([first, *itertools.compress(rest, ends)], np.int64)
