"""Learning-rate schedules, some of which also end a run.

Each is a pure function of the examples and held-out costs so far, so that a resumed run has the same rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

HALVING_FROM = 5.0  # epochs
DECAY_OF_EXAMPLE = 1e-8
SUFFICIENT_GAIN = 0.003  # relative to the previous epoch's cost


class Evaluation(NamedTuple):
    """An evaluation during training."""

    epochs: float  # done before it
    nats: float  # held-out, per token


class Course(NamedTuple):
    """The progress of a run."""

    examples: int  # done
    epochs: float  # the same, in passes
    judged: Sequence[Evaluation]
    decay: float = 1.0  # factor of `plateau` for each evaluation without gain
    warm_ups: float = 0.0  # steps done, in warm-ups


def plateau(course: Course) -> float:
    """Multiply by `decay` for each evaluation that is no better than the best before it."""
    factor, best = 1.0, math.inf
    for _, nats in course.judged:
        if nats < best:
            best = nats
        else:
            factor *= course.decay
    return factor


def half_epochs(course: Course) -> float:
    """Halve after five epochs, then every half epoch: 2^(-⌊2(epochs - 5)⌋ - 1) (Sutskever et al. 2014, 3.4)."""
    late = course.epochs - HALVING_FROM
    return 0.5 ** (math.floor(2 * late) + 1) if late >= 0 else 1.0


def inverse_time(course: Course) -> float:
    """Return 1 / (1 + 1e-8 · examples) (Bengio et al. 2003, section 3.2)."""
    return 1 / (1 + DECAY_OF_EXAMPLE * course.examples)


def inverse_root(course: Course) -> float:
    """Return √(warm-up / steps) after the warm-up (Vaswani et al. 2017, section 5.3)."""
    return 1 / math.sqrt(max(course.warm_ups, 1.0))


def newbob(course: Course) -> float:
    """Halve after every epoch, starting with the first that gains too little (Mikolov's rnnlm toolkit)."""
    nats = _by_epochs(course.judged)
    poor = _poor(nats)
    return 0.5 ** (len(nats) - poor[0]) if poor else 1.0


def newbob_end(course: Course) -> str:
    """End after the second epoch that gains too little."""
    poor = len(_poor(_by_epochs(course.judged)))
    return f"two epochs gained less than {SUFFICIENT_GAIN:.1%} of the held-out cost" if poor > 1 else ""


def _by_epochs(judged: Sequence[Evaluation]) -> list[float]:
    """Return the first cost after the end of each epoch; skip evaluations in between."""
    epochs, costs = 0, []
    for evaluation in judged:
        if math.floor(evaluation.epochs) > epochs:
            epochs = math.floor(evaluation.epochs)
            costs.append(evaluation.nats)
    return costs


def _poor(nats: Sequence[float]) -> list[int]:
    """Return the indices of costs that do not improve enough on the previous one."""
    return [i for i in range(1, len(nats)) if nats[i] > (1 - SUFFICIENT_GAIN) * nats[i - 1]]


# factor on the learning rate
SCHEDULES: dict[str, Callable[[Course], float]] = {
    "plateau": plateau,
    "half-epochs": half_epochs,
    "inverse-time": inverse_time,
    "inverse-root": inverse_root,
    "newbob": newbob,
}
ENDS = {"newbob": newbob_end}  # reason to end training now; empty: continue
