"""Sections on how the network was trained, what it costs, and what tuning made of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from moses_rnn.analysis.report import page
from moses_rnn.analysis.report.costs import BIN, BINS, CostClass
from moses_rnn.analysis.report.findings import Findings
from moses_rnn.analysis.report.page import Markup, Section
from moses_rnn.analysis.report.tuning import Tuning
from moses_rnn.formats.grids import Grid
from moses_rnn.formats.signatures import records_of

COSTS_HEADER = ("pairs", "number", "nats a pair", "nats a word", f"from 0 to {BIN * BINS:g} nats and more")
POSITIONS_HEADER = ("word of the target", "pairs", "nats")
SETS_HEADER = ("test set", "baseline", "with the score", "gain", "p of each tuning")


def training(findings: Findings) -> Section:
    """The held-out cost in the course of training."""
    how = (
        "The cost of phrase pairs that training did not see, in nats a target token, after each evaluation. A curve "
        "that still falls at its end asks for more time; one that rises asks for less, or for dropout. The dashed line "
        "is what a model costs that knows how frequent words are and nothing else. Heights are logarithms."
    )
    points = [
        (step["seconds"] / 60, step["nats_per_token"])
        for step in records_of(findings.model.provenance, "history")
        if _is_above_0(step.get("seconds")) and _is_above_0(step.get("nats_per_token"))
    ]
    unigram = findings.model.unigram_nats
    if len(points) > 1:
        beside = unigram if _is_above_0(unigram) else None
        body = [page.curve(points, beside, "Held-out nats a token by minutes of training")]
    else:
        body = [page.paragraph("The model's folder has no curve: fewer than two evaluations are recorded.")]
    return Section("training", "Training", how, body)


def _is_above_0(value: object) -> bool:
    """A model's folder may hold anything."""
    return isinstance(value, int | float) and 0 < value < math.inf


def costs(findings: Findings) -> Section:
    """By length, count and position."""
    how = (
        "Minus the logarithm of the network's score: the less, the likelier the pair. Long targets cost more in all; "
        "of a network that knows them a word costs about as much. Pairs that were seen once are those that the table's "
        "own scores know least about. By position: over a sample of pairs; the last word of each is </s>."
    )
    rows = [_cost_row(name, one) for name, one in findings.costs.items()]
    positions = [(one.place, one.words, one.nats) for one in findings.positions]
    body = [page.table(Grid("", COSTS_HEADER, rows))]
    if positions:
        body.append(page.table(Grid("", POSITIONS_HEADER, positions)))
    return Section("costs", "What pairs cost", how, body)


def _cost_row(name: str, one: CostClass) -> tuple[str, int, float, float, Markup]:
    title = f"{name}: how many pairs cost how much"
    return name, one.pairs, one.nats / one.pairs, one.nats / one.words, page.profile(one.bins.tolist(), title)


def tuned(findings: Findings, tuning: Tuning) -> Section:
    """BLEU and weights."""
    how = (
        "Mean BLEU over all tunings; p of a paired bootstrap against the baseline of the same tuning. A weight near 0 "
        "says that tuning found no use for the score."
    )
    rows = [
        (one.name, *map(page.Figure, (f"{one.before:.2f}", f"{one.after:.2f}", f"{one.gain:+.2f}", one.shown_p)))
        for one in tuning.sets
    ]
    body = [page.table(Grid("", SETS_HEADER, rows))]
    if weights := list(_weights(findings, tuning)):
        body.append(page.paragraph(f"Weight of the score in each tuning: {', '.join(weights)}."))
    return Section("tuning", "BLEU and weights", how, body)


def _weights(findings: Findings, tuning: Tuning) -> Iterator[str]:
    """Of the score, where a tuning's weights have a feature with as many scores as the table."""
    for weights in tuning.weights:
        yield from (f"{values[findings.table.column]:.3f}" for values in _of_tables(weights, findings.table.scores))


def _of_tables(weights: Mapping[str, Any], scores: int) -> Iterator[list[float]]:
    for values in weights.values():
        if isinstance(values, list) and len(values) == scores and all(isinstance(v, int | float) for v in values):
            yield values
            return
