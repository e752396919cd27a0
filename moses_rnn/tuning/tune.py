"""Tuning the weights of n-best lists: where they start, who tunes them, and how they are written for Moses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError
from moses_rnn.moses.programs import Moses
from moses_rnn.tuning.bleu import Floats
from moses_rnn.tuning.kbmira import run_kbmira
from moses_rnn.tuning.mert import TunedWeights, measure_weights, search_weights
from moses_rnn.tuning.optimisers import RESTARTS
from moses_rnn.tuning.reading import SPARSE
from moses_rnn.tuning.tunable import TunableList
from moses_rnn.tuning.weights import Weights


def tune(
    points: TunableList,
    start: npt.ArrayLike,
    optimiser: str = "mert",
    *,
    seed: int,
    restarts: int = RESTARTS,
    moses: Moses | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> TunedWeights:
    """Find weights with a good BLEU on the lists.

    Args:
        points: the lists.
        start: weights, as many as the list has names.
        optimiser: one of OPTIMISERS.
        seed: not negative.
        restarts: of mert; kbmira has none.
        moses: whose kbmira is run.
        should_stop: called by mert only, between lines; kbmira runs to its end.

    Raises:
        InputError: kbmira is not there.
        MosesRnnError: it failed.
    """
    begin = np.asarray(start, np.float64)
    if optimiser == "mert":
        return search_weights(points, begin, seed=seed, restarts=restarts, should_stop=should_stop)
    if moses is None:
        raise InputError(
            f"{optimiser}: expected a built Moses, found none", advice="Name it with MOSES_ROOT, or choose 'mert'."
        )
    if points.is_constant.all():
        return measure_weights(points, begin, begin)
    return measure_weights(points, begin, run_kbmira(points, begin, moses, seed=seed))


def recover_weights(points: TunableList, totals: Floats) -> Floats:
    """Recover the weights that a list was made with, by least squares from total = Σ weight · feature.

    Totals and features are compared with those of the sentence's first hypothesis, so that what the list does not show
    and all hypotheses of a sentence share falls out: the penalty of unknown words, above all. For the same reason
    nothing can be learned of a constant feature; its weight is 0. Features that cannot be told apart share theirs.

    Args:
        points: the list.
        totals: field 4 of its lines, sentences × hypotheses; `TunableList.totals`.
    """
    shown = points.present & points.present[:, :1]
    features = (points.features - points.features[:, :1])[shown]  # hypotheses × weights
    differences = (totals - totals[:, :1])[shown]
    tuned = ~points.is_constant
    weights = np.zeros(len(points.names))
    weights[tuned] = np.linalg.lstsq(features[:, tuned], differences, rcond=None)[0]
    return weights


def choose_start(points: TunableList, weights: Weights | None) -> Floats:
    """The weights that a search begins with: given ones, or those that the list was made with; 0 for added features.

    Raises:
        InputError: a given weight does not fit.
    """
    if weights is None:
        assert points.totals is not None, "a list that was read has totals"
        return recover_weights(points, points.totals)
    added = {label: [0.0] * count for label, count in _count_values(points.names).items()}
    return select_weights(points.names, replace(weights, dense={**added, **weights.dense}))


def select_weights(names: Sequence[str], weights: Weights) -> Floats:
    """The weights of a list's features; that of the weighted sum of sparse features is 1.

    Raises:
        InputError: some are missing, or more or other than numbers.
    """
    selected: list[float] = []
    for label, count in _count_values(names).items():
        selected += [1.0] if label == SPARSE and weights.sparse else weights.of(label, count)
    return np.array(selected)


def format_ini(
    names: Sequence[str], weights: Sequence[float] | Floats, sparse_weights: Mapping[str, float] | None = None
) -> bytes:
    """A ``[weight]`` section as Moses and its scripts/nbest-rescore/rescore.py read it; the latter knows no comments.

    Args:
        names: of the list.
        weights: as many.
        sparse_weights: those that were given when the list was read; each is written times the weight of their sum.
    """
    left = [float(weight) for weight in weights]
    lines = ["[weight]"]
    for label, count in _count_values(names).items():
        values, left = left[:count], left[count:]
        if label == SPARSE and sparse_weights is not None:
            lines += [f"{name}= {weight * values[0]:.9g}" for name, weight in sparse_weights.items()]
        else:
            lines.append(f"{label}= {' '.join(f'{value:.9g}' for value in values)}")
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def _count_values(names: Sequence[str]) -> dict[str, int]:
    """How many values each label has; in order."""
    return dict(Counter(name.rpartition("_")[0] for name in names))
