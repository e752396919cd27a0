"""Measures of what a network costs on held-out examples."""

from __future__ import annotations

from dataclasses import dataclass


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
