"""All that a report tells, gathered from a scored table and its model in three passes over the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from moses_rnn.analysis import plots, sentence_plots
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
from moses_rnn.analysis.plots import missing_libraries
from moses_rnn.analysis.preferences import Summary, summarise
from moses_rnn.analysis.report.costs import CostClass, PositionCost, costs_by_position
from moses_rnn.analysis.report.survey import Coverage, Disagreement, Literalness, Survey, SurveyConfig
from moses_rnn.analysis.report.tuning import Tuning, read_tuning
from moses_rnn.analysis.scatter import Scatter, compute_scatter
from moses_rnn.analysis.scored_table import ScoredTable
from moses_rnn.analysis.selection import Selection, select
from moses_rnn.analysis.tables import long_sources
from moses_rnn.errors import InputError
from moses_rnn.files.metered import Advanced
from moses_rnn.formats.phrase_table import TableLine
from moses_rnn.formats.signatures import recorded_floor, recorded_names
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.producers.base import Compute, ScoreProducer
from moses_rnn.producers.open import OpenModel
from moses_rnn.translation.proposals import Proposals, Proposer, Reading, known_targets
from moses_rnn.translation.sampling import Sampler, SamplingConfig

EXACT = Compute(precision="fp64")
TEXT_LINES = 3  # that a network with attention translates
Announce = Callable[[str, str], Advanced]  # of a long step: what it does, and the unit in which it shows how far it is


@dataclass(frozen=True)
class ReportConfig:
    """How much a report shows and looks at."""

    seed: int = 1
    sources: int = 3  # of each kind in Table 2
    min_words: int = 4  # of those
    top: int = 3  # targets of each by either
    samples: int = 50  # of each source in Table 3
    top_samples: int = 5
    pairs: int = 100_000  # from which rank correlations are estimated
    phrases: int = 2000  # through whose gates is looked
    points: int = 1000  # of either map
    source_text: str | None = None  # whose first lines a network with attention translates
    results: str | None = None  # results.json of systems without and with the score
    made: str = ""  # when, by which command; stands at the page's end


@dataclass(frozen=True)
class Findings:
    """All that a report tells.

    `signature` is what is recorded beside the table. `maps` and `pictures` (SVG) are by name: words, phrases, and of
    the pictures scatter and `alignment_name`; without matplotlib there are no pictures. `explained` says of each pair
    whose choice it is. Of a network that is no RNN Encoder-Decoder, gates and pairs in dispute are not known.
    """

    table: ScoredTable
    model: OpenModel
    config: ReportConfig
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
    def checkpoint(self) -> Checkpoint:
        """The model's."""
        return self.model.checkpoint

    @property
    def knows_gates(self) -> bool:
        """Whether the network is one that can be looked into."""
        return self.checkpoint.kind is ENCDEC


def gather(
    table: ScoredTable,
    model: OpenModel,
    producer: ScoreProducer,
    signature: Mapping[str, Any],
    config: ReportConfig,
    announce: Announce,
) -> Findings:
    """Look at everything.

    Args:
        table: scored by the model.
        model: a network of pairs.
        producer: of its scores.
        signature: what is recorded beside the table; empty if there is nothing.
        config: how much.
        announce: called with what is being done.

    Raises:
        InputError: the model is of the inverse direction or learned from phrases of another form; the table is damaged
            or not sorted; the results are not such a file.
        CheckpointError: there is a source text, and the model has no attention.
    """
    reading = Reading(model.checkpoint)
    _check(table, model.checkpoint, reading)
    tuning = read_tuning(config.results) if config.results else None
    alignments = _alignments(model, config, announce)
    read = _read(table, reading, signature, config, announce)
    missing = missing_libraries()
    maps = _maps(model, read.survey, config, "pca" if "scikit-learn" in missing else "tsne", announce)
    findings = Findings(
        table=table,
        model=model,
        config=config,
        signature=signature,
        coverage=read.survey.coverage,
        literalness=read.survey.literalness,
        selections=read.selections,
        summary=read.summary,
        scatter=read.scatter,
        proposals=_proposals(model, reading, producer, read.lines, config, announce),
        gates=None,
        maps=maps,
        explained=(),
        costs=read.survey.costs.classes(),
        positions=costs_by_position(model, read.survey.pairs()),
        tuning=tuning,
        alignments=alignments,
        pictures={} if "matplotlib" in missing else _pictures(read.scatter, maps, alignments, announce),
        missing=missing,
    )
    return _looked_into(findings, producer, read.survey, announce) if findings.knows_gates else findings


def _looked_into(findings: Findings, producer: ScoreProducer, survey: Survey, announce: Announce) -> Findings:
    """With what is known of an RNN Encoder-Decoder alone."""
    gates = _gates(findings.checkpoint, survey, announce)
    explained = list(_explained(findings.checkpoint, producer, findings.signature, survey, announce))
    return replace(findings, gates=gates, explained=explained)


class _Read(NamedTuple):
    """What three passes over the table give; `lines` are those of the chosen sources."""

    survey: Survey
    selections: list[Selection]
    summary: Summary
    scatter: Scatter
    lines: dict[bytes, list[TableLine]]


def _read(
    table: ScoredTable, reading: Reading, signature: Mapping[str, Any], config: ReportConfig, announce: Announce
) -> _Read:
    survey = Survey(table, reading, SurveyConfig(config.phrases, config.points, config.seed))
    wanted = long_sources(config.sources, min_words=config.min_words, min_targets=config.top, seed=config.seed)
    advanced = announce("counting and choosing", "lines")
    selections = select(survey.watch(table.sources(advanced)), wanted)
    advanced = announce("comparing preferences", "lines")
    summary = summarise(table, table.sources(advanced), sample_size=config.pairs, seed=config.seed)
    kept: dict[bytes, list[TableLine]] = {targets.source: [] for one in selections for targets in one.sources}
    lines = _keeping(table.lines(announce("comparing scores", "lines")), kept)
    floor = recorded_floor(signature, table.column)
    scatter = compute_scatter(table, lines, floor=floor, sample_size=config.pairs, seed=config.seed)
    return _Read(survey, selections, summary, scatter, kept)


def _check(table: ScoredTable, checkpoint: Checkpoint, reading: Reading) -> None:
    if reading.inverse:
        raise InputError(
            f"{table.path}: expected a model of p(target | source) to report on, found direction {checkpoint.direction}"
        )
    reading.check_form(table.path, table.form)


def _keeping(lines: Iterable[TableLine], kept: dict[bytes, list[TableLine]]) -> Iterator[TableLine]:
    """Hand lines on, and keep those of some sources."""
    for line in lines:
        if line.source in kept:
            kept[line.source].append(line)
        yield line


def _proposals(
    model: OpenModel,
    reading: Reading,
    producer: ScoreProducer,
    kept: Mapping[bytes, list[TableLine]],
    config: ReportConfig,
    announce: Announce,
) -> list[Proposals]:
    """What the network writes for the sources of Table 2."""
    announce("sampling targets", "sources")
    sources = list(dict.fromkeys(reading.pair(lines[0])[0] for lines in kept.values() if lines))
    known = known_targets((line for lines in kept.values() for line in lines), sources, reading)
    network = model.make_stepper(EXACT)
    writer = Sampler(network, SamplingConfig(samples=config.samples, seed=config.seed))
    return list(Proposer(reading, writer, producer, known)(sources))


def _gates(checkpoint: Checkpoint, survey: Survey, announce: Announce) -> GateReport | None:
    pairs = survey.phrases()
    if not pairs:
        return None
    advanced = announce("looking at gates", "phrases")
    return measure_gates(checkpoint, pairs, "encoder", lambda done: advanced(done, done / len(pairs)))


def _maps(model: OpenModel, survey: Survey, config: ReportConfig, method: str, announce: Announce) -> dict[str, Map]:
    points = {
        "words": word_points(model.checkpoint, "source", config.points),
        "phrases": phrase_points(model, survey.long_phrases()),
    }
    maps = {}
    for name, (labels, vectors) in points.items():
        if labels:
            announce(f"mapping {name}", "points")
            maps[name] = draw_map(f"source {name}, {method}", labels, vectors, method, config.seed)
    return maps


def _explained(
    checkpoint: Checkpoint, producer: ScoreProducer, signature: Mapping[str, Any], survey: Survey, announce: Announce
) -> Iterator[tuple[Disagreement, Explanation]]:
    """The pairs on which table and RNN disagree most."""
    announce("explaining pairs", "pairs")
    explainer = Explainer(checkpoint, producer, recorded_names(signature))
    others = [pair.read for pair in survey.phrases()]
    for disagreement in survey.disagreements:
        if disagreement.lines:
            yield disagreement, explainer(disagreement.lookup(survey.table, others))


def _alignments(model: OpenModel, config: ReportConfig, announce: Announce) -> list[AlignmentMap]:
    """Of the first lines of the source text, if there is one, and the network's own translations."""
    if config.source_text is None:
        return []
    stepper = attentive_stepper(model)
    announce("translating", "lines")
    most_words = (
        sentence_plots.MOST_CELLS // WORDS_PER_SOURCE_WORD - 2
    )  # whose translation can be drawn, however long it is
    return own_maps(model.checkpoint, stepper, read_first(config.source_text, TEXT_LINES, most_words))


def alignment_name(alignment: AlignmentMap) -> str:
    """Of its picture."""
    return f"line-{alignment.line}"


def _pictures(
    scatter: Scatter, maps: Mapping[str, Map], alignments: Sequence[AlignmentMap], announce: Announce
) -> dict[str, bytes]:
    announce("drawing", "pictures")
    drawn = {name: plots.map_image(map_, "svg") for name, map_ in maps.items()}
    heat_maps = {alignment_name(one): sentence_plots.alignment_image(one, "svg") for one in alignments}
    return {"scatter": plots.scatter_image(scatter, "svg"), **drawn, **heat_maps}
