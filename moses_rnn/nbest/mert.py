"""Minimum error rate training (Och, 2003): weights that give the best BLEU on n-best lists, line by line.

Along ``weights + step · direction`` the score of a hypothesis is a straight line over the step. Which hypothesis is a
sentence's best changes only where the upper envelope of its lines has a corner, and the corpus's BLEU changes nowhere
else. So BLEU is known everywhere once all corners of all sentences are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_rnn.nbest.bleu import Floats, Integers, corpus_bleu
from moses_rnn.nbest.lists import TunableList, bleu_of, model_scores, statistics_of

RESTARTS = 20  # as in mert-moses.pl
DIRECTIONS = 10  # random directions per round, besides the axes
LEAST_GAIN = 1e-4  # of BLEU (0 to 1) in a round, below which it was the last; Moses's kEPS
# Of the step that changes the weights as much as they are large (L1): what lies between two nearer corners is noise, as
# weights are written with nine digits and Moses reads them as float32.
LEAST_WIDTH = 1e-6
MARGIN = 0.1  # the same, beyond the last corner at either end, where nothing changes any more


def search_weights(
    points: TunableList, start: Floats, *, seed: int, restarts: int, should_stop: Callable[[], bool]
) -> Floats:
    """Return the best weights of searches from the start and from random points.

    Each restart has random numbers of its own, so that more restarts never give less. `should_stop` is asked after
    every line.
    """
    best, best_bleu = start, bleu_of(points, start)
    for begin, rng in _draw_starts(points, start, seed, restarts):
        for weights, bleu in _descend(points, begin, rng):
            if bleu > best_bleu:
                best, best_bleu = weights, bleu
            if should_stop():
                return best
    return best


def _descend(points: TunableList, weights: Floats, rng: np.random.Generator) -> Iterator[tuple[Floats, float]]:
    """Move to the best point of line after line until a round gains too little; yield each point and its BLEU.

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
    """Yield a round's directions: all axes, then random ones; skip constant features."""
    tuned = ~points.is_constant
    axes = np.eye(len(tuned))[tuned]
    yield from axes[rng.permutation(len(axes))]
    yield from rng.standard_normal((DIRECTIONS, len(tuned))) * tuned


def _draw_starts(
    points: TunableList, start: Floats, seed: int, restarts: int
) -> Iterator[tuple[Floats, np.random.Generator]]:
    """Yield the start, then random weights, each with its generator.

    They are from 0 to 1 as mert-moses.pl has it, from -1 to 0 where the start is negative.
    """
    lowest = np.where(start < 0, -1.0, 0.0)
    for number in range(restarts + 1 if not points.is_constant.all() else 0):
        rng = np.random.default_rng([seed, number])
        yield (start if not number else np.where(points.is_constant, start, rng.uniform(lowest, lowest + 1))), rng


class Corners(NamedTuple):
    """Where the best hypotheses change: for each corner the step, the sentence, its best before and behind.

    Those of one sentence are in order, the rest is not. `first` are the best hypotheses of all sentences before any.
    """

    first: Integers
    steps: Floats
    sentences: Integers
    before: Integers
    behind: Integers


def search_line(points: TunableList, weights: npt.ArrayLike, direction: npt.ArrayLike) -> tuple[float, float]:
    """Find the middle of the interval of steps with the best BLEU, and that BLEU, 0 to 1.

    Of equally good intervals the widest; a step of 0 where none is better than here. The open intervals at the ends
    count as if they ended a little behind the last corner.
    """
    origin, slopes = model_scores(points, weights), model_scores(points, direction)
    here = float(corpus_bleu(statistics_of(points, origin.argmax(1))))
    corners = trace_envelopes(origin, slopes)
    if not len(corners.steps):
        return 0.0, here
    order = corners.steps.argsort(kind="stable")  # equal steps of one sentence stay in order
    steps = corners.steps[order]
    bleus = corpus_bleu(_sum_statistics(points, corners, order))  # corners + 1
    scale = (np.abs(weights).sum() or 1.0) / np.abs(direction).sum()
    bounds = np.concatenate([[steps[0] - 2 * MARGIN * scale], steps, [steps[-1] + 2 * MARGIN * scale]])
    widths = np.diff(bounds)
    bleus[widths < LEAST_WIDTH * scale] = -1.0
    best = np.where(bleus == bleus.max(), widths, -1.0).argmax()
    if bleus[best] <= here:
        return 0.0, here
    return float(bounds[best : best + 2].mean()), float(bleus[best])


def trace_envelopes(origin: Floats, slopes: Floats) -> Corners:
    """Find the corners of the upper envelopes of every sentence's lines, all sentences at once.

    Each round finds the next corner of all sentences that have one: where the present best line is crossed first by a
    steeper one. `origin` are heights at step 0 and `slopes` those of the lines; sentences × hypotheses.
    """
    flattest = slopes == slopes.min(1, keepdims=True)
    first = np.asarray(np.where(flattest, origin, -np.inf).argmax(1))  # of these the highest; of several the first
    none = np.zeros(0, np.int64)
    rounds = [(np.zeros(0), none, none, none), *_trace_rounds(origin, slopes, first)]
    steps, *indices = (np.concatenate(of_rounds) for of_rounds in zip(*rounds, strict=True))
    return Corners(first, steps, *indices)


def _trace_rounds(
    origin: Floats, slopes: Floats, first: Integers
) -> Iterator[tuple[Floats, Integers, Integers, Integers]]:
    """Steps, sentences, best hypotheses before and behind, of each round."""
    sentences, best = np.arange(len(first)), first
    reached = np.full(len(first), -np.inf)
    while len(sentences):
        steps, behind = _find_next_corners(origin, slopes, best)
        unfinished = np.isfinite(steps)
        sentences, before, best = sentences[unfinished], best[unfinished], behind[unfinished]
        origin, slopes = origin[unfinished], slopes[unfinished]
        reached = np.maximum(steps[unfinished], reached[unfinished])  # rounding must not lead back
        yield reached, sentences, before, best


def _find_next_corners(origin: Floats, slopes: Floats, best: Integers) -> tuple[Floats, Integers]:
    """Return the first crossing of the best by a steeper line (infinite if none), and the steepest such line."""
    rows = np.arange(len(best))
    rise = slopes - slopes[rows, best][:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        crossings = np.where(rise > 0, (origin[rows, best][:, None] - origin) / rise, np.inf)
    nearest = crossings.min(1)
    return nearest, np.where(crossings == nearest[:, None], slopes, -np.inf).argmax(1)


def _sum_statistics(points: TunableList, corners: Corners, order: Integers) -> Integers:
    """Return the corpus's statistics before the first corner and after each; corners + 1 × 10."""
    sentences, before, behind = (indices[order] for indices in corners[2:])
    changes = points.statistics[sentences, behind] - points.statistics[sentences, before]
    return np.asarray(np.concatenate([[statistics_of(points, corners.first)], changes]).cumsum(0))
