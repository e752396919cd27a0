"""How far the table and the RNN agree: over all pairs (Figure 3 of the paper), and on the targets of each source.

moses-rnn-score writes no score below a floor (by default e^-87). Pairs at the floor are counted, but the histogram and
the correlations leave them out, because only the floor makes their scores equal.

The paper says that the RNN prefers literal and shorter targets (section 4.3, on Table 2), and that it does not know how
often a pair was seen (section 3.1). Preferences check this; they are means over all sources with several targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from moses_rnn.analysis.grids import Grid
from moses_rnn.analysis.scored_table import SEED, ComparedPairs, Floats, Ints, Mask, split_by_count
from moses_rnn.errors import number_of
from moses_rnn.table.phrase_table import DEFAULT_FLOOR, LOWEST

BIN = 0.25  # nats
BINS = int(-LOWEST / BIN)
ROUNDING = 1e-6  # nats; scores have nine digits
POINTS = 4000  # pairs in the scatter plot
OUTSIDE = 0.001  # share of pairs that each axis leaves out at its low end


def ranks(values: Floats | Ints) -> Floats:
    """Return ranks from 1; equal values share their mean rank."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    means: Floats = np.cumsum(sizes) - (sizes - 1) / 2
    return means[group]


def pearson(x: Floats, y: Floats) -> float | None:
    """Return the correlation of two columns, -1 to 1; None if one is constant or there are fewer than two values."""
    if not len(x) or (x == x[0]).all() or (y == y[0]).all():  # rounding can give a constant a tiny variance
        return None
    return float(np.corrcoef(x, y)[0, 1])


def spearman(x: Floats, y: Floats) -> float | None:
    """Return the rank correlation; None in the same cases as `pearson`."""
    return pearson(ranks(x), ranks(y))


class Group(NamedTuple):
    """Pairs with similar counts.

    Of `pairs`, `at_floor` have an RNN score at the floor, and `without_log` a score of 0. The others have the
    correlations, None if there is none.
    """

    name: str
    pairs: int
    at_floor: int
    without_log: int
    pearson: float | None
    spearman: float | None


@dataclass(frozen=True)
class Scatter:
    """A histogram of pairs by their two log-probabilities.

    `histogram[i, j]` counts the pairs with log p(target | source) in bin i and the RNN's log p in bin j; [BINS, BINS].
    Bin i reaches from -(i+1) to -i times BIN nats; 0 belongs to bin 0. `groups` are all pairs, then the classes by
    count.
    """

    floor: float
    histogram: Ints
    groups: list[Group]
    points: Floats  # both logarithms of a sample of the pairs
    is_single: Mask  # which pairs of the sample were extracted once

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Ranges of the table's and the RNN's logarithms that contain nearly all pairs."""
        shares = (np.cumsum(self.histogram.sum(axis=1 - axis)) / self.histogram.sum() for axis in (0, 1))
        return [(-BIN * float(np.searchsorted(share, 1 - OUTSIDE) + 2), BIN) for share in shares]


def compute_scatter(pairs: ComparedPairs, *, floor: float = DEFAULT_FLOOR) -> Scatter:
    """Compute the scatter of a table's pairs, given the floor of its RNN scores (a natural logarithm)."""
    usable = _has_logs(pairs.logs, floor)
    drawn = np.random.default_rng(SEED).permutation(np.flatnonzero(usable))[:POINTS]
    groups = [_group(name, pairs.logs[own], floor) for name, own in split_by_count(pairs.counts)]
    cells = np.clip(np.floor(-pairs.logs[usable] / BIN), 0, BINS - 1).astype(np.int64)
    histogram = np.bincount(cells[:, 0] * BINS + cells[:, 1], minlength=BINS * BINS).reshape(BINS, BINS)
    return Scatter(floor, histogram, groups, pairs.logs[drawn], pairs.counts[drawn] == 1)


def _has_logs(logs: Floats, floor: float) -> Mask:
    usable: Mask = (logs[:, 0] > LOWEST) & (logs[:, 1] > floor + ROUNDING)
    return usable


def _group(name: str, logs: Floats, floor: float) -> Group:
    usable, without_log = _has_logs(logs, floor), (logs == LOWEST).any(axis=1)
    at_floor, x, y = ~usable & ~without_log, *logs[usable].T
    return Group(name, len(logs), int(at_floor.sum()), int(without_log.sum()), pearson(x, y), spearman(x, y))


def groups_grid(pairs: Scatter) -> Grid:
    """Return the correlations, with a row for each class."""
    header = ("pairs", "number", "at the floor", "score 0", "Pearson", "Spearman")
    return Grid("Correlation of log p(target|source) and the RNN's log p", header, pairs.groups)


def histogram_grid(pairs: Scatter) -> Grid:
    """Return a row for each cell that is not empty: its middle, in nats, and its number of pairs."""
    rows = [
        (-(i + 0.5) * BIN, -(j + 0.5) * BIN, int(pairs.histogram[i, j]))
        for i, j in np.argwhere(pairs.histogram).tolist()
    ]
    return Grid("", ("log_p_table", "log_p_rnn", "pairs"), rows)


class Preferences(NamedTuple):
    """What the table and the RNN prefer among the targets of sources with similar counts. None: no such source.

    If several targets are equally best, lengths are their means, and to agree is to choose one of them.
    """

    name: str
    sources: int
    agreement: float | None  # share of sources with the same best target
    chance: float | None  # how often a blind choice would agree
    words_by_table: float | None  # words of the table's best target
    words_by_rnn: float | None
    words_of_all: float | None
    shorter: float | None  # share of sources where the RNN's best target has fewer words than the table's
    longer: float | None
    apart: int  # sources where the RNN's best target is not one of the table's
    shorter_apart: float | None  # share of these
    longer_apart: float | None
    ordered: int  # sources whose targets differ in both score and count
    rnn_with_count: float | None  # mean over these of Spearman's correlation of RNN score and pair count


PREFERENCE_TITLES = {
    "name": "sources",
    "sources": "number",
    "agreement": "agree",
    "chance": "by chance",
    "words_by_table": "words: table",
    "words_by_rnn": "RNN",
    "words_of_all": "all",
    "shorter": "RNN shorter",
    "longer": "longer",
    "apart": "apart",
    "shorter_apart": "shorter of these",
    "longer_apart": "longer of these",
    "ordered": "ordered",
    "rnn_with_count": "RNN ~ count",
}


@dataclass(frozen=True)
class Summary:
    """Preferences of all sources and of each class by count, and correlations over pairs.

    `table_over_pairs` and `rnn_over_pairs` are Spearman correlations of score and pair count. They are over the pairs
    of these sources that have a count; there are `counted` of them.
    """

    classes: list[Preferences]
    counted: int
    table_over_pairs: float | None
    rnn_over_pairs: float | None


def summarise(pairs: ComparedPairs) -> Summary:
    """Summarise all sources with several targets."""
    looked_at = pairs.sizes > 1
    figures, with_count = _figures(pairs), _correlations_with_count(pairs)
    counted = looked_at[pairs.source] & (pairs.counts > 0)
    by_table, by_rnn = (spearman(logs, pairs.counts[counted]) for logs in pairs.logs[counted].T)
    sources = np.flatnonzero(looked_at)
    classes = [
        _preferences(name, {of: values[sources[own]] for of, values in figures.items()}, with_count[sources[own]])
        for name, own in split_by_count(pairs.source_counts[sources])
    ]
    return Summary(classes, int(counted.sum()), by_table, by_rnn)


def _figures(pairs: ComparedPairs) -> dict[str, Floats]:
    """Return the figures of each source, by the fields of `Preferences`."""
    best, begins, sizes = pairs.best, pairs.begins, pairs.sizes
    lengths = np.column_stack([best * pairs.target_words[:, None], pairs.target_words])
    chosen = np.add.reduceat(best, begins, dtype=np.int64)
    by_table, by_rnn, of_all = (np.add.reduceat(lengths, begins) / np.column_stack([chosen, sizes])).T
    return {
        "agreement": np.add.reduceat(best.all(axis=1), begins, dtype=np.int64) / chosen[:, 1],
        "chance": chosen[:, 0] / sizes,
        "words_by_table": by_table,
        "words_by_rnn": by_rnn,
        "words_of_all": of_all,
        "shorter": (by_rnn < by_table).astype(np.float64),
        "longer": (by_rnn > by_table).astype(np.float64),
    }


def _correlations_with_count(pairs: ComparedPairs) -> Floats:
    """Return Spearman's correlation of RNN score and count among the targets of each source; NaN if there is none."""
    begins, sizes = pairs.begins, pairs.sizes
    x, y = (
        ranks(pairs.source * len(values) + np.unique(values, return_inverse=True)[1])
        - begins[pairs.source]
        - (sizes[pairs.source] + 1) / 2  # the mean of a source's ranks
        for values in (pairs.logs[:, 1], pairs.counts)
    )
    both, of_x, of_y = np.add.reduceat(np.column_stack([x * y, x * x, y * y]), begins).T
    exists = (of_x > 0) & (of_y > 0) & (np.minimum.reduceat(pairs.counts, begins) > 0)
    return np.where(exists, both / np.sqrt(np.where(exists, of_x * of_y, 1)), np.nan)


def _preferences(name: str, figures: dict[str, Floats], with_count: Floats) -> Preferences:
    apart, is_ordered = figures["agreement"] == 0, ~np.isnan(with_count)
    return Preferences(
        name=name,
        sources=len(apart),
        apart=int(apart.sum()),
        shorter_apart=_mean(figures["shorter"][apart]),
        longer_apart=_mean(figures["longer"][apart]),
        ordered=int(is_ordered.sum()),
        rnn_with_count=_mean(with_count[is_ordered]),
        **{of: _mean(values) for of, values in figures.items()},
    )


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


class Literalness(NamedTuple):
    """Whether the RNN's best targets are more literal than the table's, counted where the two differ."""

    sources: int = 0  # where the best targets differ
    rnn_more: int = 0  # of these, where the RNN's is more literal
    rnn_less: int = 0


def compare_literalness(pairs: ComparedPairs) -> Literalness:
    """Compare how literal the best targets are where they differ, by log lex(target | source) per word."""
    best, begins = pairs.best, pairs.begins
    lexical = pairs.lexical / np.maximum(pairs.target_words, 1)
    means = np.add.reduceat(best * lexical[:, None], begins) / np.add.reduceat(best, begins, dtype=np.int64)
    differ = ~np.logical_or.reduceat(best.all(axis=1), begins)
    by_table, by_rnn = means[differ].T
    return Literalness(int(differ.sum()), int((by_rnn > by_table).sum()), int((by_rnn < by_table).sum()))


def preferences_grid(summary: Summary) -> Grid:
    """Return the preferences, with a row for each class."""
    rows = [[getattr(one, field) for field in PREFERENCE_TITLES] for one in summary.classes]
    return Grid("Preferences among the targets of a source", [*PREFERENCE_TITLES.values()], rows)


def notes(summary: Summary) -> list[str]:
    """Return notes on the table of preferences: what its columns mean, and the correlations over pairs."""
    over_pairs = ", ".join(
        f"{name} {'–' if value is None else format(value, '.3f')}"
        for name, value in (("table", summary.table_over_pairs), ("RNN", summary.rnn_over_pairs))
    )
    over = f"{number_of(summary.counted, 'pair')} of all these sources"
    return [
        "agree: table and RNN have the same best target; words: length of the table's best target, of the RNN's, and "
        "of all (mean over equally good ones); apart: no best target of the RNN is one of the table's, and how many of "
        "those are shorter.",
        "~ count: mean Spearman correlation of score and pair count among a source's targets, over the ordered "
        "sources, where both differ.",
        f"Spearman correlation of score and pair count over {over}: {over_pairs}.",
    ]
