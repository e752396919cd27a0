"""Judge the held-out costs of a training: whether it has converged or overfits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from moses_rnn.networks.measures import NATS, Measure

FEWEST = 4  # evaluations that can be judged
LATE = 2 / 3  # of the time: costs after it are compared with costs before it
FALLING = 0.03  # relative gain in the late part above which more time should help
RISING = 0.02  # relative rise of the last cost over the best that counts as overfitting
LAST_BUT = 2  # final evaluations in which a rise after the best one may be chance


class Verdict(NamedTuple):
    """A verdict and the figures behind it."""

    name: str
    text: str

    def __str__(self) -> str:
        """Format the verdict with its figures."""
        return f"{self.name}: {self.text}"


def verdict(history: Sequence[Mapping[str, Any]], rival: float | None = None, measure: Measure = NATS) -> Verdict:
    """Judge a training by its evaluations, in order, and by the cost of the measure's rival, if known."""
    steps = [(h.get("seconds"), h.get(measure.key)) for h in history]
    curve = [(s, cost) for s, cost in steps if isinstance(s, int | float) and isinstance(cost, int | float)]
    best = min((cost for _, cost in curve), default=float("nan"))
    if rival is not None and best >= rival:
        return Verdict("learned nothing", f"{best:.2f} {measure.unit}; {measure.rival} costs {rival:.2f}")
    if len(curve) < FEWEST:
        return Verdict("too short to tell", f"{len(curve)} of the {FEWEST} evaluations that a verdict needs")
    end, last = curve[-1]
    early = min((cost for seconds, cost in curve if seconds <= LATE * end), default=curve[0][1])
    falls = early - best > max(FALLING * early, measure.least)
    rises = last - best > max(RISING * best, measure.least)
    place = next(i for i, (_, cost) in enumerate(curve) if cost == best)
    if rises and (not falls or len(curve) - place > LAST_BUT):
        return Verdict(
            "overfitting",
            f"the held-out cost rose from {best:.3f} after {curve[place][0] / 60:.0f} minutes to {last:.3f}; the best "
            "weights are kept",
        )
    if falls:
        return Verdict(
            "still falling",
            f"the held-out cost fell from {early:.3f} to {best:.3f} in the last third of the time; more training "
            "should lower it, but need not raise BLEU",
        )
    return Verdict("converged", f"the held-out cost went from {early:.3f} to {best:.3f} in the last third of the time")
