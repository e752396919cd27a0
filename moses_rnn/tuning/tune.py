"""Tuning the weights of n-best lists: where they start, and who tunes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError
from moses_rnn.moses.decoder import Moses
from moses_rnn.tuning import RESTARTS
from moses_rnn.tuning.bleu import Floats
from moses_rnn.tuning.kbmira import run_kbmira
from moses_rnn.tuning.lists import TunableList
from moses_rnn.tuning.mert import TunedWeights, measure_weights, search_weights
from moses_rnn.tuning.weights import Weights, count_values, select_weights


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
    """Find weights with a good BLEU on the lists, beginning with those of `start`.

    `restarts` are of mert; `moses` is whose kbmira is run, to its end: only mert asks `should_stop`, between lines.

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


def recover_weights(points: TunableList) -> Floats:
    """Recover the weights that a list was made with, by least squares from total = Σ weight · feature.

    Totals and features are compared with those of the sentence's first hypothesis, so that what the list does not show
    and all hypotheses of a sentence share falls out: the penalty of unknown words, above all. For the same reason
    nothing can be learned of a constant feature; its weight is 0. Features that cannot be told apart share theirs.
    """
    shown = points.present & points.present[:, :1]
    features = (points.features - points.features[:, :1])[shown]  # hypotheses × weights
    differences = (points.totals - points.totals[:, :1])[shown]
    tuned = ~points.is_constant
    weights = np.zeros(len(points.names))
    weights[tuned] = np.linalg.lstsq(features[:, tuned], differences, rcond=None)[0]
    return weights


def choose_start(points: TunableList, weights: Weights | None) -> Floats:
    """The weights that a search begins with: given ones, or those that the list was made with; 0 for added features."""
    if weights is None:
        return recover_weights(points)
    added = {label: [0.0] * count for label, count in count_values(points.names).items()}
    return select_weights(points.names, replace(weights, dense={**added, **weights.dense}))
