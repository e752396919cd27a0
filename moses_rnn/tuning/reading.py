"""N-best lists and references as numbers for a tuning."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from moses_rnn.errors import FormatError, InputError, shown
from moses_rnn.formats.nbest import NBestLine, check_plain
from moses_rnn.formats.phrase_forms import words
from moses_rnn.tuning.bleu import STATISTICS, Floats, Integers, References
from moses_rnn.tuning.tunable import TunableList

SPARSE = "Sparse"  # the one feature that stands for all sparse ones, each times its given weight


@dataclass
class _Sentence:
    """What was read of one sentence, hypothesis after hypothesis."""

    features: array[float] = field(default_factory=lambda: array("d"))
    totals: array[float] = field(default_factory=lambda: array("d"))
    statistics: list[tuple[int, ...]] = field(default_factory=list)
    of_hypothesis: dict[bytes, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Features:
    """How the feature field of a list's lines is read; `labels` are those of its first line, with their values' count.

    Sparse features have an underscore in their label. Their sum, weighted by `sparse_weights`, is one feature more, the
    last one, as in Moses's ``mert --sparse-weights``; one without a weight weighs 0. None: they are refused.
    """

    name: str
    labels: Mapping[str, int]
    sparse_weights: Mapping[str, float] | None

    @classmethod
    def of_first_line(cls, line: NBestLine, name: str, sparse_weights: Mapping[str, float] | None) -> Features:
        """What all lines must have, from the first one."""
        labels = [label for label, _ in _parse_labels(line) if "_" not in label]
        twice = [label for label, count in Counter(labels).items() if count > 1]
        if twice:
            raise FormatError(name, 1, "each feature once", f"{twice[0]} twice")
        counts = {label: len(values) for label, values in _parse_labels(line) if "_" not in label}
        if not counts:
            advice = "Does the ini set tuneable=false for all features? Lists show only tuneable features."
            raise FormatError(name, line.number, "dense features in field 3", shown(line.features), advice)
        return cls(name, counts, sparse_weights)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each weight, as Moses's extractor gives them: ``LM0_0``."""
        dense = [f"{label}_{k}" for label, count in self.labels.items() for k in range(count)]
        return (*dense, f"{SPARSE}_0") if self.sparse_weights else tuple(dense)

    def values(self, line: NBestLine) -> list[float]:
        """A line's features in the order of `names`.

        Raises:
            FormatError: they are not those of the first line, sparse without a weight, or not finite.
        """
        dense: list[float] = []
        sparse = 0.0
        counts: dict[str, int] = {}
        for label, values in _parse_labels(line):
            if "_" in label:
                sparse += self._sparse(label, values, line.number)
            else:
                counts[label] = counts.get(label, 0) + len(values)
                dense += values
        if counts != self.labels or list(counts) != list(self.labels):
            expected = f"the features of line 1, {_describe(self.labels)}"
            raise FormatError(self.name, line.number, expected, _describe(counts) or "none")
        if self.sparse_weights:
            dense.append(sparse)
        if not all(map(math.isfinite, dense)):
            raise FormatError(self.name, line.number, "finite feature values", f"{max(dense, key=abs)}")
        return dense

    def _sparse(self, label: str, values: Sequence[float], number: int) -> float:
        if self.sparse_weights is None:
            advice = "Give the weights of sparse features with --weights. Their weighted sum is tuned as one feature."
            raise FormatError(self.name, number, "dense features", f"the sparse {label}", advice)
        weight = self.sparse_weights.get(label, 0.0)
        if len(values) != 1 or math.isnan(weight):
            expected = f"one value and one weight, a number, of the sparse feature {label}"
            raise FormatError(self.name, number, expected, f"{len(values)} and {weight}")
        return weight * values[0]


def read_tunable(
    lines: Iterable[NBestLine],
    references: Sequence[Sequence[bytes | str]],
    *,
    name: str = "n-best list",
    sparse_weights: Mapping[str, float] | None = None,
) -> TunableList:
    """Compare all hypotheses of n-best lists with the references.

    A sentence of the references without a line counts as an empty translation (`TunableList.missing` has them; Moses's
    own tools leave such a sentence out of the corpus). Statistics of equal hypotheses are computed once.

    Args:
        lines: parsed; those of one sentence need not follow each other.
        references: the lines of one or several reference translations.
        name: of the list, for messages.
        sparse_weights: by label; see `Features`. None: sparse features are refused.

    Raises:
        FormatError: a line has other features than the first, or none, a sentence number beyond the references, an
            infinite total, or words with factors or marks where the references have plain ones.
        InputError: there are no lines, or references of different lengths.
        MosesRnnError: sacreBLEU is not installed.
    """
    texts = References(references)
    sentences = [_Sentence() for _ in range(len(texts))]
    features: Features | None = None
    for line in lines:
        features = features or Features.of_first_line(line, name, sparse_weights)
        if line.sentence >= len(texts):
            expected = f"a sentence number below {len(texts)}, the number of lines of the references"
            raise FormatError(name, line.number, expected, str(line.sentence))
        if not math.isfinite(float(line.total)):
            raise FormatError(name, line.number, "a finite total score in field 4", shown(line.total))
        _add(sentences[line.sentence], line, features.values(line), texts, name)
    if features is None:
        raise InputError(f"{name}: expected hypotheses, found an empty list")
    return _pad(features.names, sentences, texts)


def _add(sentence: _Sentence, line: NBestLine, values: list[float], texts: References, name: str) -> None:
    if not texts.has_bars:
        check_plain(line, name)
    if line.hypothesis not in sentence.of_hypothesis:
        sentence.of_hypothesis[line.hypothesis] = texts.statistics(line.sentence, line.hypothesis)
    sentence.statistics.append(sentence.of_hypothesis[line.hypothesis])
    sentence.features.extend(values)
    sentence.totals.append(float(line.total))


def _pad(names: tuple[str, ...], sentences: list[_Sentence], texts: References) -> TunableList:
    counts = np.array([len(sentence.totals) for sentence in sentences])
    shape = len(sentences), int(counts.max())
    features: Floats = np.zeros((*shape, len(names)))
    statistics: Integers = np.zeros((*shape, STATISTICS), np.int64)
    totals: Floats = np.zeros(shape)
    for i, (sentence, count) in enumerate(zip(sentences, counts.tolist(), strict=True)):
        features[i, :count] = np.reshape(sentence.features, (count, len(names)))
        totals[i, :count] = sentence.totals
        statistics[i, : max(count, 1)] = sentence.statistics or [texts.statistics(i, b"")]
    return TunableList(names, features, statistics, np.arange(shape[1]) < counts[:, None], totals)


def _parse_labels(line: NBestLine) -> Iterable[tuple[str, list[float]]]:
    """Each label of a line with its values."""
    label, values = "", list[float]()
    for word in words(line.features):
        if word.endswith(b"="):
            if label:
                yield label, values
            label, values = word[:-1].decode("utf-8", "surrogateescape"), []
        else:
            values.append(float(word))
    if label:
        yield label, values


def _describe(labels: Mapping[str, int]) -> str:
    return " ".join(f"{label}({count})" for label, count in labels.items())
