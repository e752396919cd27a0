"""Minimum error rate training (Och, 2003): weights that give the best BLEU on n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_rnn.tuning.bleu import Floats
from moses_rnn.tuning.line_search import line_search
from moses_rnn.tuning.tunable import Booleans, TunableList, bleu_of

RESTARTS = 20  # as mert-moses.pl asks of Moses's mert
DIRECTIONS = 10
LEAST_GAIN = 1e-4  # of BLEU (0 to 1) in a round, below which it was the last; Moses's kEPS


@dataclass(frozen=True, eq=False)
class Tuned:
    """Weights and the BLEU, 0 to 1, that they reach on the lists they were tuned on.

    The weights of features that are `constant` are those of the start; the absolute values of all others add up to 1.
    Where a feature is constant, no list says anything about its weight.
    """

    weights: Floats
    bleu: float
    start_bleu: float
    constant: tuple[str, ...] = ()
    stopped: bool = False  # before all restarts were done


@dataclass(frozen=True)
class Descent:
    """How to search from a starting point.

    `directions` are random ones a round, besides the axes; `should_stop` is asked after every line.
    """

    points: TunableList
    directions: int
    should_stop: Callable[[], bool]

    def run(self, weights: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
        """Go to the best point of line after line until a round gains next to nothing; returns the last and its BLEU.

        Moses's mert tries all axes from one point and then takes the best of them; here each line begins where the
        last one led, which takes fewer lines.
        """
        best = bleu_of(self.points, weights)
        while True:
            before = best
            for direction in self._lines(rng):
                weights, best = self._along(weights, best, direction)
                if self.should_stop():
                    return weights, best
            if best - before < LEAST_GAIN:
                return weights, best

    def _lines(self, rng: np.random.Generator) -> Iterator[Floats]:
        """A round's directions: all axes, then random ones; constant features stay out."""
        tuned = ~self.points.is_constant
        axes = np.eye(len(tuned))[tuned]
        yield from axes[rng.permutation(len(axes))]
        yield from rng.standard_normal((self.directions, len(tuned))) * tuned

    def _along(self, weights: Floats, best: float, direction: Floats) -> tuple[Floats, float]:
        step, bleu = line_search(self.points, weights, direction)
        if bleu > best:
            moved = weights + step * direction
            bleu = bleu_of(self.points, moved)  # asked again: where lines are nearly parallel, rounding decides
            if bleu > best:
                return moved, bleu
        return weights, best


def mert(
    points: TunableList,
    start: npt.ArrayLike,
    *,
    seed: int,
    restarts: int = RESTARTS,
    directions: int = DIRECTIONS,
    should_stop: Callable[[], bool] | None = None,
) -> Tuned:
    """Tune the weights of all features that are not constant.

    Args:
        points: the lists.
        start: weights, as many as the list has names; the first search begins there.
        seed: not negative; the same seed gives the same weights. Each restart has random numbers of its own, so that
            more restarts never give less.
        restarts: searches that begin somewhere else, at random within `ranges`.
        directions: random ones a round, besides the axes.
        should_stop: asked after every line; when true the best so far is returned.

    Raises:
        ValueError: `start` has another length.
    """
    begin = checked_start(points, start)
    asked = should_stop or (lambda: False)
    stopped = False

    def ask() -> bool:
        nonlocal stopped
        stopped = stopped or asked()
        return stopped

    best, bleu = begin, bleu_of(points, begin)
    for weights, rng in _beginnings(points, begin, seed, restarts):
        found, found_bleu = Descent(points, directions, ask).run(weights, rng)
        if found_bleu > bleu:
            best, bleu = found, found_bleu
        if stopped:
            break
    return as_tuned(points, begin, best, stopped=stopped)


def _beginnings(
    points: TunableList, start: Floats, seed: int, restarts: int
) -> Iterator[tuple[Floats, np.random.Generator]]:
    """The start, then random weights; with a generator for each."""
    lows, highs = ranges(start)
    for number in range(restarts + 1 if not points.is_constant.all() else 0):
        rng = np.random.default_rng([seed, number])
        yield (start if not number else np.where(points.is_constant, start, rng.uniform(lows, highs))), rng


def ranges(start: Floats) -> tuple[Floats, Floats]:
    """Where restarts begin: from 0 to 1 as mert-moses.pl has it, from -1 to 0 if the start is negative.

    They bound nothing but that.
    """
    return np.where(start < 0, -1.0, 0.0), np.where(start < 0, 0.0, 1.0)


def checked_start(points: TunableList, start: npt.ArrayLike) -> Floats:
    """The starting weights.

    Raises:
        ValueError: there are more or fewer than the list has features, or one is not finite.
    """
    weights = np.asarray(start, np.float64)
    if weights.shape != (len(points.names),) or not np.isfinite(weights).all():
        raise ValueError(f"expected {len(points.names)} finite starting weights, found {weights.tolist()}")
    return weights


def as_tuned(points: TunableList, start: Floats, found: Floats, *, stopped: bool = False) -> Tuned:
    """What an optimiser found, with weights that add up to 1 and the start's where a feature is constant."""
    weights = normalised(found, ~points.is_constant)
    weights[points.is_constant] = start[points.is_constant]
    return Tuned(weights, bleu_of(points, weights), bleu_of(points, start), points.constant, stopped)


def normalised(weights: Floats, tuned: Booleans) -> Floats:
    """The weights, divided by the sum of the absolute values of those that were tuned, if it is not 0."""
    norm = np.abs(weights[tuned]).sum()
    return weights / norm if norm else weights.copy()
