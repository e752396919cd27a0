"""All that a report tells, gathered from a scored table and its model in two passes over the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from moses_rnn.analysis import plots
from moses_rnn.analysis.alignment_maps import (
    WORDS_PER_SOURCE_WORD,
    AlignmentMap,
    attentive_stepper,
    own_maps,
    read_first,
)
from moses_rnn.analysis.explain import Explainer, Explanation
from moses_rnn.analysis.gates import GateReport, measure_gates
from moses_rnn.analysis.maps import Map, draw_map, phrase_points, word_points
from moses_rnn.analysis.preferences import Summary, summarise
from moses_rnn.analysis.report.costs import CostClass, PositionCost, costs_by_class, costs_by_position
from moses_rnn.analysis.report.options import ReportOptions
from moses_rnn.analysis.report.survey import Coverage, Disagreement, Literalness, Survey
from moses_rnn.analysis.report.tuning import Tuning, read_tuning
from moses_rnn.analysis.scatter import Scatter, compute_scatter
from moses_rnn.analysis.scored_table import ScoredTable
from moses_rnn.analysis.targets import Selection, long_sources, select
from moses_rnn.errors import InputError
from moses_rnn.files.metered import Advanced
from moses_rnn.files.streams import existing_input
from moses_rnn.formats.signatures import recorded_floor, recorded_names
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.producers.base import Compute, ScoreProducer
from moses_rnn.producers.open import Model
from moses_rnn.translation.proposals import Proposals, Proposer, Reading, known_targets
from moses_rnn.translation.sampling import Sampler, SamplingConfig

EXACT = Compute(precision="fp64")
TEXT_LINES = 3  # that a network with attention translates
MIN_WORDS, TOP = 4, 3  # of the sources in Table 2, and targets of each by either
Announce = Callable[[str, str], Advanced]  # of a long step: what it does, and the unit in which it shows how far it is


@dataclass(frozen=True)
class Findings:
    """All that a report tells.

    `signature` is what is recorded beside the table. `maps` and `pictures` (SVG) are by name: words, phrases, and of
    the pictures scatter and `alignment_name`; without matplotlib there are no pictures. `explained` says of each pair
    whose choice it is. Of a network that is no RNN Encoder-Decoder, gates and pairs in dispute are not known.
    """

    table: ScoredTable
    model: Model
    options: ReportOptions
    signature: Mapping[str, Any]
    coverage: Coverage
    literalness: Literalness
    selections: Sequence[Selection]
    summary: Summary
    scatter: Scatter
    proposals: Sequence[Proposals]
    gates: GateReport | None
    maps: Mapping[str, Map]
    explained: Sequence[tuple[Disagreement, Explanation]]
    costs: Mapping[str, CostClass] = field(default_factory=dict)
    positions: Sequence[PositionCost] = ()
    tuning: Tuning | None = None
    alignments: Sequence[AlignmentMap] = ()
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    missing: Sequence[str] = ()  # libraries

    @property
    def name(self) -> str:
        """Of the table's file."""
        return Path(self.table.path).name

    @property
    def knows_gates(self) -> bool:
        """Whether the network is one that can be looked into."""
        return self.model.architecture is ENCDEC


def gather(
    table: ScoredTable, model: Model, producer: ScoreProducer, options: ReportOptions, announce: Announce
) -> Findings:
    """Look at a table and the network of pairs that scored it, by a producer of its scores.

    Raises:
        InputError: the model is of the inverse direction or learned from phrases of another form; the table is damaged
            or not sorted; the results are not such a file.
        CheckpointError: there is a source text, and the model has no attention.
    """
    reading = Reading(model)
    _check(table, model, reading)
    tuning = read_tuning(existing_input(options.results)) if options.results else None
    alignments = _alignments(model, options, announce)
    survey = Survey(table, reading, options)
    wanted = long_sources(options.sources, min_words=MIN_WORDS, min_targets=TOP, seed=options.seed)
    selections = select(survey.watch(table.sources(announce("counting and choosing", "lines"))), wanted)
    pairs = table.pairs(announce("comparing scores", "lines"))
    scatter = compute_scatter(pairs, floor=recorded_floor(table.signature, table.column), seed=options.seed)
    missing = plots.missing_libraries()
    maps = _maps(model, survey, options, "pca" if "scikit-learn" in missing else "tsne", announce)
    is_known = model.architecture is ENCDEC
    return Findings(
        table=table,
        model=model,
        options=options,
        signature=table.signature,
        coverage=survey.coverage,
        literalness=survey.literalness,
        selections=selections,
        summary=summarise(pairs, seed=options.seed),
        scatter=scatter,
        proposals=_proposals(model, reading, producer, selections, options, announce),
        gates=_gates(model, survey, announce) if is_known else None,
        maps=maps,
        explained=list(_explained(model, producer, table, survey, announce)) if is_known else (),
        costs=costs_by_class(pairs, np.array(survey.target_lengths)),
        positions=costs_by_position(model, survey.pairs()),
        tuning=tuning,
        alignments=alignments,
        pictures={} if "matplotlib" in missing else _pictures(scatter, maps, alignments, announce),
        missing=missing,
    )


def _check(table: ScoredTable, model: Model, reading: Reading) -> None:
    if reading.inverse:
        raise InputError(
            f"{table.path}: expected a model of p(target | source) to report on, found direction {model.direction}"
        )
    reading.check_form(table.path, table.form)


def _proposals(
    model: Model,
    reading: Reading,
    producer: ScoreProducer,
    selections: Sequence[Selection],
    options: ReportOptions,
    announce: Announce,
) -> list[Proposals]:
    """What the network writes for the sources of Table 2."""
    announce("sampling targets", "sources")
    lines = [line for selection in selections for one in selection.sources for line in one.lines]
    sources = list(dict.fromkeys(reading.pair(line)[0] for line in lines))
    known = known_targets(lines, sources, reading)
    network = model.make_stepper(EXACT)
    writer = Sampler(network, SamplingConfig(samples=options.samples, seed=options.seed))
    return list(Proposer(reading, writer, producer, known)(sources))


def _gates(model: Model, survey: Survey, announce: Announce) -> GateReport | None:
    pairs = survey.phrases()
    if not pairs:
        return None
    return measure_gates(model, pairs, "encoder", announce("looking at gates", "phrases"))


def _maps(model: Model, survey: Survey, options: ReportOptions, method: str, announce: Announce) -> dict[str, Map]:
    points = {
        "words": word_points(model, "source", options.points),
        "phrases": phrase_points(model, survey.long_phrases()),
    }
    maps = {}
    for name, (labels, vectors) in points.items():
        if labels:
            announce(f"mapping {name}", "points")
            maps[name] = draw_map(f"source {name}, {method}", labels, vectors, method, options.seed)
    return maps


def _explained(
    model: Model, producer: ScoreProducer, table: ScoredTable, survey: Survey, announce: Announce
) -> Iterator[tuple[Disagreement, Explanation]]:
    """The pairs on which table and RNN disagree most."""
    announce("explaining pairs", "pairs")
    explainer = Explainer(model, producer, recorded_names(table.signature))
    others = [pair.read for pair in survey.phrases()]
    for disagreement in survey.disagreements:
        if disagreement.lines:
            yield disagreement, explainer(disagreement.lookup(table, others))


def _alignments(model: Model, options: ReportOptions, announce: Announce) -> list[AlignmentMap]:
    """Of the first lines of the source text, if there is one, and the network's own translations."""
    if options.source_text is None:
        return []
    stepper = attentive_stepper(model)
    announce("translating", "lines")
    most_words = plots.MOST_CELLS // WORDS_PER_SOURCE_WORD - 2  # whose translation can always be drawn
    lines = read_first(existing_input(options.source_text), TEXT_LINES, most_words)
    return own_maps(model, stepper, lines)


def alignment_name(alignment: AlignmentMap) -> str:
    """Of its picture."""
    return f"line-{alignment.line}"


def _pictures(
    scatter: Scatter, maps: Mapping[str, Map], alignments: Sequence[AlignmentMap], announce: Announce
) -> dict[str, bytes]:
    announce("drawing", "pictures")
    drawn = {name: plots.map_image(map_, "svg") for name, map_ in maps.items()}
    heat_maps = {alignment_name(one): plots.alignment_image(one, "svg") for one in alignments}
    return {"scatter": plots.scatter_image(scatter, "svg"), **drawn, **heat_maps}
