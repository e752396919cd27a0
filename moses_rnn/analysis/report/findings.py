"""All that a report tells, gathered from a scored table and its model in three passes over the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from moses_rnn.analysis import plots
from moses_rnn.analysis.explain import Explainer, Explanation
from moses_rnn.analysis.gates import GateConfig, GateReport, gate_report
from moses_rnn.analysis.maps import Map, MapConfig, drawn_map, phrase_points, word_points
from moses_rnn.analysis.plots import missing_libraries
from moses_rnn.analysis.preferences import Summary, summarise
from moses_rnn.analysis.report.survey import Coverage, Disagreement, Literalness, Survey, SurveyConfig
from moses_rnn.analysis.scatter import Scatter, scatter
from moses_rnn.analysis.scored_table import Advanced, ScoredTable
from moses_rnn.analysis.selection import Selection, select
from moses_rnn.analysis.tables import long_sources
from moses_rnn.errors import InputError
from moses_rnn.formats.phrase_table import TableLine
from moses_rnn.formats.signatures import recorded_floor, recorded_names
from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.translation.proposals import LogProbs, Proposals, Proposer, Reading, known_targets
from moses_rnn.translation.sampling import Sampler, SamplingConfig

Step = Callable[[str, str], Advanced]  # told of a long step and the unit in which it will be told how far that is


@dataclass(frozen=True)
class ReportConfig:
    """How much a report shows and looks at."""

    seed: int = 1
    sources: int = 3  # of each kind in Table 2
    min_words: int = 4  # of those
    max_count: float = 3  # of a rare one
    top: int = 3  # targets of each by either
    samples: int = 50  # of each source in Table 3
    top_samples: int = 5
    pairs: int = 100_000  # from which rank correlations are estimated
    phrases: int = 2000  # through whose gates is looked
    points: int = 1000  # of either map


@dataclass(frozen=True)
class Scorer:
    """The model's own score producer: as it is called in a table, and what it does."""

    name: str
    log_probs: LogProbs


@dataclass(frozen=True)
class Findings:
    """All that a report tells.

    `signature` is what is recorded beside the table. `maps` and `pictures` (SVG) are by name: words, phrases, and of
    the pictures scatter; without matplotlib there are no pictures. `explained` says of each pair whose choice it is.
    """

    table: ScoredTable
    checkpoint: Checkpoint
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
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    missing: Sequence[str] = ()  # libraries

    @property
    def name(self) -> str:
        """Of the table's file."""
        return Path(self.table.path).name


def gather(
    table: ScoredTable,
    checkpoint: Checkpoint,
    scorer: Scorer,
    signature: Mapping[str, Any],
    config: ReportConfig,
    step: Step,
) -> Findings:
    """Look at everything.

    Args:
        table: scored by the model.
        checkpoint: the model.
        scorer: its score producer.
        signature: what is recorded beside the table; empty if there is nothing.
        config: how much.
        step: told what is being done.

    Raises:
        InputError: the model is of the inverse direction or learned from phrases of another form; the table is damaged
            or not sorted.
    """
    reading = Reading(checkpoint)
    _check(table, checkpoint, reading)
    survey = Survey(table, reading, SurveyConfig(config.phrases, config.points, config.seed))
    wanted = long_sources(config.sources, min_words=config.min_words, min_targets=config.top, min_count=None,
                          max_count=config.max_count, seed=config.seed)  # fmt: skip
    advanced = step("counting and choosing", "lines")
    selections = select(survey.watch(table.sources(advanced)), list(wanted.values()))
    advanced = step("comparing preferences", "lines")
    summary = summarise(table, table.sources(advanced), sample_size=config.pairs, seed=config.seed)
    kept: dict[bytes, list[TableLine]] = {found.source: [] for one in selections for found in one.sources}
    lines = _keeping(table.lines(step("comparing scores", "lines")), kept)
    floor = recorded_floor(signature, table.column)
    scattered = scatter(table, lines, floor=floor, sample_size=config.pairs, seed=config.seed)
    missing = missing_libraries()
    maps = _maps(checkpoint, survey, config, "pca" if "scikit-learn" in missing else "tsne", step)
    return Findings(
        table=table,
        checkpoint=checkpoint,
        config=config,
        signature=signature,
        coverage=survey.coverage,
        literalness=survey.literalness,
        selections=selections,
        summary=summary,
        scatter=scattered,
        proposals=_proposals(checkpoint, reading, scorer, kept, config, step),
        gates=_gates(checkpoint, survey, step),
        maps=maps,
        explained=list(_explained(checkpoint, scorer, signature, survey, step)),
        pictures={} if "matplotlib" in missing else _pictures(scattered, maps, step),
        missing=missing,
    )


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
    checkpoint: Checkpoint,
    reading: Reading,
    scorer: Scorer,
    kept: Mapping[bytes, list[TableLine]],
    config: ReportConfig,
    step: Step,
) -> list[Proposals]:
    """What the network writes for the sources of Table 2."""
    step("sampling targets", "sources")
    sources = list(dict.fromkeys(reading.pair(lines[0])[0] for lines in kept.values() if lines))
    known = known_targets((line for lines in kept.values() for line in lines), sources, reading)
    network = EncDecStepper(checkpoint.model, "cpu", torch.float64)
    write = Sampler(network, SamplingConfig(samples=config.samples, seed=config.seed))
    return list(Proposer(reading, write, scorer.log_probs, known)(sources))


def _gates(checkpoint: Checkpoint, survey: Survey, step: Step) -> GateReport | None:
    pairs = survey.phrases()
    if not pairs:
        return None
    advanced, total = step("looking at gates", "phrases"), 2 * len(pairs)
    return gate_report(checkpoint, pairs, GateConfig(), lambda done: advanced(done, done / total))


def _maps(checkpoint: Checkpoint, survey: Survey, config: ReportConfig, method: str, step: Step) -> dict[str, Map]:
    points = {
        "words": word_points(checkpoint, "source", config.points),
        "phrases": phrase_points(checkpoint, survey.long_phrases()),
    }
    laid_out = MapConfig(method=method, seed=config.seed)
    found = {}
    for name, (labels, vectors) in points.items():
        if labels:
            step(f"mapping {name}", "points")
            found[name] = drawn_map(f"source {name}, {method}", labels, vectors, laid_out)
    return found


def _explained(
    checkpoint: Checkpoint, scorer: Scorer, signature: Mapping[str, Any], survey: Survey, step: Step
) -> Iterator[tuple[Disagreement, Explanation]]:
    """The pairs on which table and RNN disagree most."""
    step("explaining pairs", "pairs")
    explainer = Explainer(checkpoint, scorer.log_probs, scorer.name, recorded_names(signature))
    others = [pair.read for pair in survey.phrases()]
    for found in survey.disagreements:
        if found.lines:
            yield found, explainer(found.lookup(survey.table, others))


def _pictures(scattered: Scatter, maps: Mapping[str, Map], step: Step) -> dict[str, bytes]:
    step("drawing", "pictures")
    drawn = {name: plots.map_image(found, "svg") for name, found in maps.items()}
    return {"scatter": plots.scatter_image(scattered, "svg"), **drawn}
