"""N-best lists as numbers: what a tuning of weights looks at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from moses_rnn.tuning.bleu import Floats, Integers, corpus_bleu

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TunableList:
    """N-best lists of a corpus, padded to the longest.

    A sentence's hypotheses come first, in the order of its list. A sentence without hypotheses has the statistics
    of an empty translation in place 0 and counts as translated by it.
    """

    names: tuple[str, ...]  # one a weight: "LM0_0", "TranslationModel0_2" for the third value, as in features.dat
    features: Floats  # sentences × hypotheses × weights; natural logarithms mostly
    statistics: Integers  # sentences × hypotheses × 10; see bleu.py
    present: Booleans  # sentences × hypotheses; the rest is padding
    totals: Floats | None = None  # sentences × hypotheses; field 4 of the list

    @property
    def missing(self) -> tuple[int, ...]:
        """The sentences, from 0, of which there is no hypothesis."""
        return tuple(np.flatnonzero(~self.present.any(1)).tolist())

    @cached_property
    def columns(self) -> Floats:
        """Features, weights × sentences × hypotheses; padding repeats the first hypothesis and so never beats it."""
        filled = np.where(self.present[:, :, None], self.features, self.features[:, :1])
        return np.ascontiguousarray(np.moveaxis(filled, 2, 0))

    @cached_property
    def is_constant(self) -> Booleans:
        """For each weight, whether its feature is the same for all hypotheses of each sentence: it can choose none."""
        return np.asarray((self.columns == self.columns[:, :, :1]).all((1, 2)))

    @property
    def constant(self) -> tuple[str, ...]:
        """The names of the constant features."""
        return tuple(name for name, is_so in zip(self.names, self.is_constant, strict=True) if is_so)


def model_scores(points: TunableList, weights: npt.ArrayLike) -> Floats:
    """Σ weight · feature of every hypothesis, sentences × hypotheses; padding scores as the first hypothesis.

    Feature after feature, not by a matrix product: equal hypotheses then have equal scores to the last bit, wherever
    they stand in the list and whatever the processor, and ties stay ties.
    """
    scores = np.zeros(points.present.shape)
    for column, weight in zip(points.columns, np.asarray(weights, np.float64).tolist(), strict=True):
        if weight:
            scores += weight * column
    return scores


def choose(points: TunableList, weights: npt.ArrayLike) -> Integers:
    """The best hypothesis of each sentence; of equally good ones the first in the list."""
    return np.asarray(model_scores(points, weights).argmax(1))


def statistics_of(points: TunableList, chosen: Integers) -> Integers:
    """Sum of the statistics of one hypothesis of each sentence, 10."""
    return np.asarray(points.statistics[np.arange(len(chosen)), chosen].sum(0))


def bleu_of(points: TunableList, weights: npt.ArrayLike) -> float:
    """BLEU, 0 to 1, of the hypotheses that the weights choose."""
    return float(corpus_bleu(statistics_of(points, choose(points, weights))))
