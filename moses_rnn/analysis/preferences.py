"""Do the paper's observations hold? What the translation model and the RNN prefer, over many sources.

Section 4.3 says of Table 2 that the RNN prefers literal and shorter targets, and section 3.1 that it does not know how
often a pair was seen. The figures here are means over all sources with at least two targets: how long the best targets
are, how often both agree on one, and how well either's order of a source's targets follows their counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_rnn.analysis.correlation import SAMPLE_SIZE, Floats, draw, spearman
from moses_rnn.analysis.scored_table import Pairs, split_by_count
from moses_rnn.formats.grids import Cell, Grid

FIGURES = 8  # of a source


@dataclass(frozen=True)
class Preferences:
    """What is preferred among the targets of sources that were seen about as often.

    Where several targets have the best score, they share in being the best one: lengths are their means, and to agree
    is to choose one of them. `chance` is how often a blind choice would agree. `shorter` and `longer` are shares of
    sources where the RNN's best target has fewer or more words than the table's, `shorter_apart` and `longer_apart`
    the same of those `apart` where the RNN's is not one of the table's. `rnn_with_count` is the Spearman correlation
    of the RNN's score and the pair's count among the targets of one source, as a mean over the `ordered` sources where
    both differ; the table's p(target | source) is made of those counts. None: there is nothing to take a mean of.
    """

    name: str
    sources: int
    agreement: float | None
    chance: float | None
    words_by_table: float | None
    words_by_rnn: float | None
    words_of_all: float | None
    shorter: float | None
    longer: float | None
    apart: int
    shorter_apart: float | None
    longer_apart: float | None
    ordered: int
    rnn_with_count: float | None


@dataclass(frozen=True)
class Summary:
    """By classes of the source's count, all of them first; and over pairs of different sources.

    `table_over_pairs` and `rnn_over_pairs` are Spearman correlations of score and pair count over `sample` pairs that
    were drawn from the lines with a count of all sources that were looked at.
    """

    classes: list[Preferences]
    sample: int
    table_over_pairs: float | None
    rnn_over_pairs: float | None


def summarise(pairs: Pairs, *, min_words: int = 1, seed: int = 1) -> Summary:
    """Look at all sources that have several targets, and `min_words` words or more; pairs are drawn by the seed."""
    sizes = np.bincount(pairs.source, minlength=len(pairs.source_words))
    looked_at = (pairs.source_words >= min_words) & (sizes > 1)
    ends = np.cumsum(sizes)
    parts = [slice(ends[i] - sizes[i], ends[i]) for i in np.flatnonzero(looked_at)]
    rows = np.column_stack([pairs.logs, pairs.counts])
    figures = np.array([_figures(rows[part], pairs.target_words[part]) for part in parts]).reshape(-1, FIGURES)
    classes = split_by_count(pairs.source_counts[looked_at])
    counted = rows[looked_at[pairs.source] & (pairs.counts > 0)]
    keys = np.random.default_rng(seed).random(len(counted))
    table_scores, rnn_scores, counts = draw(counted, keys, SAMPLE_SIZE).T
    return Summary(
        [_preferences(name, figures[own]) for name, own in classes],
        len(counts),
        spearman(table_scores, counts),
        spearman(rnn_scores, counts),
    )


def _figures(rows: Floats, words: Floats) -> tuple[float, ...]:
    """Those of a source, in the order of the fields of `Preferences`; NaN: there is no correlation with counts."""
    best_table, best_rnn = (rows[:, i] == rows[:, i].max() for i in (0, 1))
    by_table, by_rnn = words[best_table].mean(), words[best_rnn].mean()
    agreement, chance = best_table[best_rnn].mean(), best_table.mean()
    shorter, longer = by_rnn < by_table, by_rnn > by_table
    with_count = spearman(rows[:, 1], rows[:, 2]) if (rows[:, 2] > 0).all() else None
    lengths = by_table, by_rnn, words.mean(), shorter, longer
    return agreement, chance, *lengths, np.nan if with_count is None else with_count


def _preferences(name: str, figures: Floats) -> Preferences:
    """Means over sources, each of which has FIGURES."""
    agreement, chance, by_table, by_rnn, of_all, shorter, longer, with_count = figures.T
    apart, ordered = agreement == 0, with_count[~np.isnan(with_count)]
    return Preferences(
        name,
        len(figures),
        *(
            _mean(agreement),
            _mean(chance),
            _mean(by_table),
            _mean(by_rnn),
            _mean(of_all),
            _mean(shorter),
            _mean(longer),
        ),
        *(int(apart.sum()), _mean(shorter[apart]), _mean(longer[apart])),
        *(len(ordered), _mean(ordered)),
    )


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


HEADER = (
    "sources",
    "number",
    "agree",
    "by chance",
    "words: table",
    "RNN",
    "all",
    "RNN shorter",
    "longer",
    "apart",
    "shorter of these",
    "longer of these",
    "ordered",
    "RNN ~ count",
)


def as_grid(summary: Summary) -> Grid:
    """The classes as a table of a row each, to be rendered by `grids`."""
    rows: list[list[Cell]] = [list(vars(one).values()) for one in summary.classes]
    return Grid("Preferences among the targets of a source", HEADER, rows)


def notes(summary: Summary) -> list[str]:
    """What the table does not say: what its columns are, and the correlations over pairs."""
    over_pairs = ", ".join(
        f"{name} {'–' if value is None else format(value, '.3f')}"
        for name, value in (("table", summary.table_over_pairs), ("RNN", summary.rnn_over_pairs))
    )
    drawn = f"{summary.sample:,} pairs of all these sources"
    return [
        "agree: the best target is the same; words: of the best target by p(target|source), by the RNN, and of all, of "
        "equally good ones the mean; apart: the RNN's is not one of the table's, and how many of those are shorter;",
        "~ count: mean Spearman correlation of score and pair count among a source's targets, over the ordered "
        "sources, where both differ.",
        f"Spearman correlation of score and pair count over {drawn}: {over_pairs}.",
    ]
