"""What the held-out costs of a training show: whether it has converged, or should have ended earlier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

FEWEST = 4  # evaluations that can be judged
LATE = 2 / 3  # of the time: what comes after is compared with what came before
FALLING = 0.03  # share of the cost that is gained late, from which on more time should help
RISING = 0.02  # share by which the last cost is above the best one
LEAST = 0.02  # nats that make a difference at all


class Verdict(NamedTuple):
    """A word, and the figures behind it."""

    name: str
    text: str

    def __str__(self) -> str:
        """The word and its figures."""
        return f"{self.name}: {self.text}"


def verdict(history: Sequence[Mapping[str, Any]], unigram: float | None = None) -> Verdict:
    """Judge a training by its evaluations.

    Args:
        history: of each evaluation "seconds" of training and held-out "nats_per_token", in order.
        unigram: what a unigram model costs.
    """
    steps = [(h.get("seconds"), h.get("nats_per_token")) for h in history]
    curve = [(s, cost) for s, cost in steps if isinstance(s, int | float) and isinstance(cost, int | float)]
    best = min((cost for _, cost in curve), default=float("nan"))
    if unigram is not None and best >= unigram:
        return Verdict("learned nothing", f"{best:.2f} nats per target token, a unigram model costs {unigram:.2f}")
    if len(curve) < FEWEST:
        return Verdict("too short to tell", f"{len(curve)} evaluations of the held-out examples")
    end, last = curve[-1]
    early = min((cost for seconds, cost in curve if seconds <= LATE * end), default=curve[0][1])
    if early - best > max(FALLING * early, LEAST):
        return Verdict(
            "still falling",
            f"the held-out cost fell from {early:.3f} to {best:.3f} in the last third of the time; more should help",
        )
    if last - best > max(RISING * best, LEAST):
        at = next(seconds for seconds, cost in curve if cost == best)
        return Verdict(
            "overfitting",
            f"the held-out cost rose from {best:.3f} after {at / 60:.0f} minutes to {last:.3f}; the best weights are "
            "kept",
        )
    return Verdict("converged", f"the held-out cost went from {early:.3f} to {best:.3f} in the last third of the time")
