"""The best point on a line through the space of weights, exactly (Och, 2003).

Along ``weights + step · direction`` the score of a hypothesis is a straight line over the step. Which hypothesis is a
sentence's best changes only where the upper envelope of its lines has a corner, and the corpus's BLEU changes nowhere
else. So BLEU is known everywhere once all corners of all sentences are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_rnn.tuning.bleu import Floats, Integers, corpus_bleu
from moses_rnn.tuning.lists import TunableList, model_scores, statistics_of

# Of the step that changes the weights as much as they are large (L1): what lies between two nearer corners is noise, as
# weights are written with nine digits and Moses reads them as float32.
LEAST_WIDTH = 1e-6
MARGIN = 0.1  # the same, beyond the last corner at either end, where nothing changes any more


class Step(NamedTuple):
    """How far to go, and the corpus's BLEU there, 0 to 1."""

    step: float
    bleu: float


class Corners(NamedTuple):
    """Where the best hypotheses change: for each corner the step, the sentence, its best before and behind.

    Those of one sentence are in order, the rest is not. `first` are the best hypotheses of all sentences before any.
    """

    first: Integers
    steps: Floats
    sentences: Integers
    before: Integers
    behind: Integers


def search_line(points: TunableList, weights: npt.ArrayLike, direction: npt.ArrayLike) -> Step:
    """Find the middle of the interval of steps with the best BLEU.

    Of equally good intervals the widest; a step of 0 where none is better than here. The open intervals at the ends
    count as if they ended a little behind the last corner.
    """
    origin, slopes = model_scores(points, weights), model_scores(points, direction)
    here = float(corpus_bleu(statistics_of(points, origin.argmax(1))))
    corners = trace_envelopes(origin, slopes)
    if not len(corners.steps):
        return Step(0.0, here)
    order = corners.steps.argsort(kind="stable")  # equal steps of one sentence stay in order
    steps = corners.steps[order]
    bleus = corpus_bleu(_sum_statistics(points, corners, order))  # corners + 1
    scale = (np.abs(weights).sum() or 1.0) / np.abs(direction).sum()
    ends = [steps[0] - 2 * MARGIN * scale], steps, [steps[-1] + 2 * MARGIN * scale]
    bounds = np.concatenate(ends)
    widths = np.diff(bounds)
    bleus[widths < LEAST_WIDTH * scale] = -1.0
    best = np.where(bleus == bleus.max(), widths, -1.0).argmax()
    if bleus[best] <= here:
        return Step(0.0, here)
    return Step(float(bounds[best : best + 2].mean()), float(bleus[best]))


def trace_envelopes(origin: Floats, slopes: Floats) -> Corners:
    """Find the corners of the upper envelopes of every sentence's lines, all sentences at once.

    Each round finds the next corner of all sentences that have one: where the present best line is crossed first by a
    steeper one. `origin` are heights at step 0 and `slopes` those of the lines; sentences × hypotheses.
    """
    first = _find_leftmost(origin, slopes)
    rounds = list(_trace_rounds(origin, slopes, first))
    if not rounds:
        none = np.zeros(0, np.int64)
        return Corners(first, np.zeros(0), none, none, none)
    steps, *indices = (np.concatenate(of_rounds) for of_rounds in zip(*rounds, strict=True))
    return Corners(first, steps, *indices)


def _find_leftmost(origin: Floats, slopes: Floats) -> Integers:
    """The line with the smallest slope; of several the highest; of several the first."""
    flattest = slopes == slopes.min(1, keepdims=True)
    return np.asarray(np.where(flattest, origin, -np.inf).argmax(1))


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
    """Where a steeper line crosses the best first, infinite where none does; and the steepest of those that do."""
    rows = np.arange(len(best))
    rise = slopes - slopes[rows, best][:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        crossings = np.where(rise > 0, (origin[rows, best][:, None] - origin) / rise, np.inf)
    nearest = crossings.min(1)
    return nearest, np.where(crossings == nearest[:, None], slopes, -np.inf).argmax(1)


def _sum_statistics(points: TunableList, corners: Corners, order: Integers) -> Integers:
    """The corpus's statistics before the first corner and behind each, corners + 1 × 10."""
    sentences, before, behind = (indices[order] for indices in corners[2:])
    changes = points.statistics[sentences, behind] - points.statistics[sentences, before]
    at_the_far_left = statistics_of(points, corners.first)
    return np.asarray(np.concatenate([[at_the_far_left], changes]).cumsum(0))
