"""Judge the held-out costs of a training: whether it has converged or overfits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

FEWEST = 4  # evaluations that can be judged
LATE = 2 / 3  # of the time: costs after it are compared with costs before it
FALLING = 0.03  # relative gain in the late part above which more time should help
RISING = 0.02  # relative rise of the last cost over the best that counts as overfitting
LAST_BUT = 2  # final evaluations in which a rise after the best one may be chance


@dataclass(frozen=True)
class Measure:
    """A measure of a network's cost on held-out examples: less is better."""

    key: str  # in the record of an evaluation
    unit: str
    counted: str  # what training counts as tokens
    of_step: str  # unit of the cost per minibatch
    columns: tuple[str, str]  # headings in a log: the cost and the figure beside it
    beside: str  # key of that figure; empty: the perplexity
    least: float  # smallest difference that counts
    rival: str  # a baseline: a network that has learned anything costs less
    baseline_cost: float | None = None  # None: it depends on the corpus


NATS = Measure(
    key="nats_per_token",
    unit="nats per target token",
    counted="tokens",
    of_step="nats/token",
    columns=("held-out nats", "perplexity"),
    beside="",
    least=0.02,
    rival="a unigram model",
)
RANKED_WRONG = Measure(
    key="ranked_wrong",
    unit="errors per corrupted pair",
    counted="pairs",
    of_step="loss/pair",
    columns=("ranked wrong", "loss"),
    beside="hinge_per_pair",
    least=0.002,
    rival="guessing",
    baseline_cost=0.5,
)


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
            f"should help",
        )
    return Verdict("converged", f"the held-out cost went from {early:.3f} to {best:.3f} in the last third of the time")
