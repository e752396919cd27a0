"""Minimum error rate training (Och, 2003): weights that give the best BLEU on n-best lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_rnn.tuning import RESTARTS
from moses_rnn.tuning.bleu import Floats
from moses_rnn.tuning.line_search import search_line
from moses_rnn.tuning.lists import TunableList, bleu_of

DIRECTIONS = 10  # random ones a round, besides the axes
LEAST_GAIN = 1e-4  # of BLEU (0 to 1) in a round, below which it was the last; Moses's kEPS


@dataclass(frozen=True, eq=False)
class TunedWeights:
    """Weights and the BLEU, 0 to 1, that they reach on the lists they were tuned on.

    The weights of features that are `constant` are those of the start; the absolute values of all others add up to 1.
    Where a feature is constant, no list says anything about its weight.
    """

    weights: Floats
    bleu: float
    start_bleu: float
    constant: tuple[str, ...] = ()


def search_weights(
    points: TunableList,
    start: npt.ArrayLike,
    *,
    seed: int,
    restarts: int = RESTARTS,
    should_stop: Callable[[], bool] | None = None,
) -> TunedWeights:
    """Tune the weights of all features that are not constant, from several starting points.

    Args:
        points: the lists.
        start: weights, as many as the list has names; the first search begins there.
        seed: not negative; the same seed gives the same weights. Each restart has random numbers of its own, so that
            more restarts never give less.
        restarts: searches that begin somewhere else, at random within `choose_ranges`.
        should_stop: called after every line; when true the best so far is returned.
    """
    first = np.asarray(start, np.float64)
    best, best_bleu = first, bleu_of(points, first)
    for begin, rng in _draw_starts(points, first, seed, restarts):
        for weights, bleu in _descend(points, begin, rng):
            if bleu > best_bleu:
                best, best_bleu = weights, bleu
            if should_stop is not None and should_stop():
                return measure_weights(points, first, best)
    return measure_weights(points, first, best)


def _descend(points: TunableList, weights: Floats, rng: np.random.Generator) -> Iterator[tuple[Floats, float]]:
    """Go to the best point of line after line until a round gains next to nothing; each point and its BLEU.

    Moses's mert tries all axes from one point and then takes the best of them; here each line begins where the last one
    led, which takes fewer lines.
    """
    best, before = bleu_of(points, weights), -math.inf
    while best - before >= LEAST_GAIN:
        before = best
        for direction in _draw_directions(points, rng):
            step, bleu = search_line(points, weights, direction)
            moved = weights + step * direction
            # Computed again: where lines are nearly parallel, rounding decides
            if bleu > best and (bleu := bleu_of(points, moved)) > best:
                weights, best = moved, bleu
            yield weights, best


def _draw_directions(points: TunableList, rng: np.random.Generator) -> Iterator[Floats]:
    """A round's directions: all axes, then random ones; constant features stay out."""
    tuned = ~points.is_constant
    axes = np.eye(len(tuned))[tuned]
    yield from axes[rng.permutation(len(axes))]
    yield from rng.standard_normal((DIRECTIONS, len(tuned))) * tuned


def _draw_starts(
    points: TunableList, start: Floats, seed: int, restarts: int
) -> Iterator[tuple[Floats, np.random.Generator]]:
    """The start, then random weights, each with its generator."""
    lows, highs = choose_ranges(start)
    for number in range(restarts + 1 if not points.is_constant.all() else 0):
        rng = np.random.default_rng([seed, number])
        yield (start if not number else np.where(points.is_constant, start, rng.uniform(lows, highs))), rng


def choose_ranges(start: Floats) -> tuple[Floats, Floats]:
    """Lowest and highest weights that restarts begin with.

    From 0 to 1 as mert-moses.pl has it, from -1 to 0 where the start is negative. Nothing else is bounded by them.
    """
    return np.where(start < 0, -1.0, 0.0), np.where(start < 0, 0.0, 1.0)


def measure_weights(points: TunableList, start: Floats, best: Floats) -> TunedWeights:
    """An optimiser's best weights, made to add up to 1, the start's where a feature is constant; and their BLEU."""
    norm = np.abs(best[~points.is_constant]).sum() or 1.0
    weights = np.where(points.is_constant, start, best / norm)
    return TunedWeights(weights, bleu_of(points, weights), bleu_of(points, start), points.constant)
