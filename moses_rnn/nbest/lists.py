"""N-best lists and references as arrays for tuning."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import FormatError, InputError, number_of, shown
from moses_rnn.moses.nbest import NBestLine, beyond_text, check_plain
from moses_rnn.nbest.bleu import STATISTICS, Floats, Integers, References, corpus_bleu
from moses_rnn.table.phrase_table import FLOAT32_LIMIT

SPARSE = "Sparse"  # the one feature that stands for all sparse ones, each times its given weight

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
    totals: Floats  # sentences × hypotheses; field 4 of the list

    @property
    def missing(self) -> tuple[int, ...]:
        """Sentences, from 0, without hypotheses."""
        return tuple(np.flatnonzero(~self.present.any(1)).tolist())

    @cached_property
    def columns(self) -> Floats:
        """Features, weights × sentences × hypotheses; padding repeats the first hypothesis and so never beats it."""
        filled = np.where(self.present[:, :, None], self.features, self.features[:, :1])
        return np.ascontiguousarray(np.moveaxis(filled, 2, 0))

    @cached_property
    def is_constant(self) -> Booleans:
        """For each weight, whether its feature is constant within each sentence and so cannot choose."""
        return np.asarray((self.columns == self.columns[:, :, :1]).all((1, 2)))

    @property
    def constant(self) -> tuple[str, ...]:
        """Names of the constant features."""
        return tuple(name for name, is_so in zip(self.names, self.is_constant, strict=True) if is_so)


def model_scores(points: TunableList, weights: npt.ArrayLike) -> Floats:
    """Return Σ weight · feature of every hypothesis, sentences × hypotheses; padding scores as the first hypothesis.

    Feature after feature, not by a matrix product: equal hypotheses then have equal scores to the last bit, wherever
    they stand in the list and whatever the processor, and ties stay ties.
    """
    scores = np.zeros(points.present.shape)
    for column, weight in zip(points.columns, np.asarray(weights, np.float64).tolist(), strict=True):
        if weight:
            scores += weight * column
    return scores


def choose(points: TunableList, weights: npt.ArrayLike) -> Integers:
    """Return the best hypothesis of each sentence; ties go to the first in the list."""
    return np.asarray(model_scores(points, weights).argmax(1))


def statistics_of(points: TunableList, chosen: Integers) -> Integers:
    """Sum the statistics of one chosen hypothesis per sentence; 10."""
    return np.asarray(points.statistics[np.arange(len(chosen)), chosen].sum(0))


def bleu_of(points: TunableList, weights: npt.ArrayLike) -> float:
    """Return BLEU, 0 to 1, of the hypotheses that the weights choose."""
    return float(corpus_bleu(statistics_of(points, choose(points, weights))))


class Features:
    """How the feature field of a list's lines is read; `labels` are those of its first line, with their values' count.

    Sparse features have an underscore in their label. Their sum, weighted by `sparse_weights`, is one feature more, the
    last one, as in Moses's ``mert --sparse-weights``; one without a weight weighs 0. None: they are refused.
    """

    def __init__(self, first: NBestLine, name: str, sparse_weights: Mapping[str, float] | None) -> None:
        self.name, self.sparse_weights = name, sparse_weights
        self.labels: dict[str, int] = {}
        for label, values in first.labels():
            if label in self.labels:
                raise FormatError(name, 1, "each feature once", f"{label} twice")
            if "_" not in label:
                self.labels[label] = len(values)
        if SPARSE in self.labels and sparse_weights:
            expected = "no dense feature called Sparse beside sparse ones, whose sum has this name"
            raise FormatError(name, first.number, expected, SPARSE)
        if not self.labels:
            advice = "Does the ini set tuneable=false for all features? Lists show only tuneable features."
            advice = "" if first.features else advice
            raise FormatError(name, first.number, "dense features in field 3", shown(first.features), advice)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the weights, as in Moses's extractor: ``LM0_0``."""
        dense = [f"{label}_{k}" for label, count in self.labels.items() for k in range(count)]
        return (*dense, f"{SPARSE}_0") if self.sparse_weights else tuple(dense)

    def values(self, line: NBestLine) -> list[float]:
        """Return a line's features in the order of `names`.

        Raise FormatError for other features than those of the first line, sparse features without a weight, and numbers
        beyond float32.
        """
        dense: list[float] = []
        sparse = 0.0
        counts: dict[str, int] = {}
        for label, values in line.labels():
            if "_" in label:
                sparse += self._sparse(label, values, line.number)
            elif label in counts:
                raise FormatError(self.name, line.number, "each feature once", f"{label} twice")
            else:
                counts[label] = len(values)
                dense += values
        if [*counts.items()] != [*self.labels.items()]:  # in their order
            expected = f"the features of line 1, {_describe(self.labels)}"
            raise FormatError(self.name, line.number, expected, _describe(counts) or "none")
        if self.sparse_weights:
            dense.append(sparse)
        if not all(abs(value) < FLOAT32_LIMIT for value in dense):
            raise FormatError(
                self.name, line.number, "feature values in the range of float32", f"{max(dense, key=abs)}"
            )
        return dense

    def _sparse(self, label: str, values: Sequence[float], number: int) -> float:
        if self.sparse_weights is None:
            advice = "Give the weights of sparse features with --weights. Their weighted sum is tuned as one feature."
            raise FormatError(self.name, number, "dense features", f"the sparse {label}", advice)
        weight = self.sparse_weights.get(label, 0.0)
        if len(values) != 1 or math.isnan(weight):
            expected = f"one value and a numeric weight for the sparse feature {label}"
            raise FormatError(self.name, number, expected, f"{number_of(len(values), 'value')} and the weight {weight}")
        return weight * values[0]


def read_tunable(
    lines: Iterable[NBestLine],
    references: Sequence[Sequence[bytes | str]],
    *,
    name: str = "n-best list",
    sparse_weights: Mapping[str, float] | None = None,
) -> TunableList:
    """Compare all hypotheses of n-best lists, in any order, with the lines of one or several reference translations.

    A sentence of the references without a line counts as an empty translation (`TunableList.missing` has them; Moses's
    own tools leave such a sentence out of the corpus). Statistics of equal hypotheses are computed once. Raise an
    error for an empty list, and for a line with other features than the first, a sentence beyond the references, an
    infinite total, or words with factors or marks where the references have plain ones. `sparse_weights` are as of
    `Features`.
    """
    texts = References(references)
    features: Features | None = None
    lists: list[list[tuple[Floats, tuple[int, ...], float]]] = [[] for _ in range(len(texts))]
    known: dict[tuple[int, bytes], tuple[int, ...]] = {}
    for line in lines:
        features = features or Features(line, name, sparse_weights)
        _check(line, texts, name)
        hypothesis = line.sentence, line.hypothesis
        if hypothesis not in known:
            known[hypothesis] = texts.statistics(*hypothesis)
        lists[line.sentence].append((np.array(features.values(line)), known[hypothesis], float(line.total)))
    if features is None:
        raise InputError(f"{name}: expected hypotheses, found an empty list")
    shape = len(texts), max(map(len, lists))
    points = TunableList(
        features.names,
        np.zeros((*shape, len(features.names))),
        np.zeros((*shape, STATISTICS), np.int64),
        np.arange(shape[1]) < np.array([[len(of_sentence)] for of_sentence in lists]),
        np.zeros(shape),
    )
    columns = points.features, points.statistics, points.totals
    for sentence, of_sentence in enumerate(lists):
        for column, values in zip(columns, zip(*of_sentence, strict=True), strict=False):
            column[sentence, : len(of_sentence)] = values
    for sentence in points.missing:
        points.statistics[sentence, 0] = texts.statistics(sentence, b"")
    return points


def _check(line: NBestLine, texts: References, name: str) -> None:
    if line.sentence >= len(texts):
        raise beyond_text(line, name, "the reference", len(texts))
    if not abs(float(line.total)) < FLOAT32_LIMIT:
        raise FormatError(name, line.number, "a total score in the range of float32 in field 4", shown(line.total))
    if not texts.has_bars:
        check_plain(line, name)


def _describe(labels: Mapping[str, int]) -> str:
    return " ".join(f"{label}({count})" for label, count in labels.items())
