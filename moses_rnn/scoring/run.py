"""A whole scoring run: table, signature and ini come into being together, or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from moses_rnn.errors import CheckpointError, FormatError
from moses_rnn.formats.moses_ini import Extension, MosesIni, default_lines
from moses_rnn.formats.phrase_table import TableLine, parse_table, score_words
from moses_rnn.formats.streams import DEFAULT_LEVEL, STANDARD_STREAM, Meter, OutputFile, read_lines
from moses_rnn.models.checkpoint import Checkpoint, load_checkpoint
from moses_rnn.scoring.phrase_tables import ColumnOptions, ScoringReport, scored_table
from moses_rnn.scoring.producers import EncDecProducer, ScoreProducer, WordPenaltyProducer
from moses_rnn.scoring.signature import signature


@dataclass(frozen=True)
class IniRequest:
    """The ini to extend and where the new one goes; `feature` names the phrase dictionary if several could be meant."""

    ini: str
    output: str
    feature: str | None = None
    weight: float | None = None  # starting weight of each new column


@dataclass(frozen=True)
class ScoringRequest:
    """All choices of a run."""

    table: str
    output: str
    model: Path
    inverse_model: Path | None = None
    word_penalty: bool = False
    columns: ColumnOptions = field(default_factory=ColumnOptions)
    ini: IniRequest | None = None
    devices: tuple[str, ...] = ("cpu",)  # one worker each
    level: int = DEFAULT_LEVEL
    force: bool = False


@dataclass(frozen=True)
class ScoringResult:
    """What a run made: its report, and the lines that a moses.ini needs."""

    report: ScoringReport
    feature_line: str
    weight_line: str
    column_names: tuple[str, ...]


def score(request: ScoringRequest, advanced: Callable[[int, float | None], None]) -> ScoringResult:
    """Score a phrase table.

    Args:
        request: all choices.
        advanced: told after every chunk how many lines are done and what share of the table was read (None: unknown).

    Raises:
        InputError: the table, the model or the ini was rejected; nothing was written.
        OutputError: an output cannot be written; nothing stays of it.
    """
    inputs = (request.table, request.ini.ini) if request.ini else (request.table,)
    with ExitStack() as outputs:

        def output(path: str, level: int = DEFAULT_LEVEL) -> OutputFile:
            return outputs.enter_context(OutputFile(path, level=level, force=request.force, inputs=inputs))

        table = output(request.output, request.level)
        to_stdout = request.output == STANDARD_STREAM
        beside = None if to_stdout else output(request.output + ".json")
        new_ini = output(request.ini.output) if request.ini else None
        meter = Meter()
        lines, old_columns = _with_columns(
            parse_table(read_lines(request.table, meter=meter), request.table), request.table
        )
        models, workers = _producers(request)
        ini = _Ini(request, old_columns, len(workers[0]))  # refused now rather than after hours
        report = ScoringReport()
        for block in scored_table(lines, workers, request.columns, report, request.table):
            table.write(block)
            advanced(report.lines, meter.share)
        if beside:
            files = {"input": Path(request.table).name, "output": Path(request.output).name}
            beside.write(signature(files, old_columns, workers[0], models, request.columns, report))
            beside.commit()
        if new_ini:
            new_ini.write(ini.content)
            new_ini.commit()
        table.commit()
    return ScoringResult(report, *ini.lines, tuple(producer.name for producer in workers[0]))


def _with_columns(lines: Iterator[TableLine], name: str) -> tuple[Iterator[TableLine], int]:
    """The lines, and how many scores the first one has."""
    first = next(lines, None)
    if first is None:
        raise FormatError(name, None, "at least one line", "none")
    return itertools.chain([first], lines), len(score_words(first.scores))


def _producers(request: ScoringRequest) -> tuple[list[Checkpoint], list[Sequence[ScoreProducer]]]:
    """The models, and for each device the producers of the new columns; each device holds the models itself."""
    models: list[Checkpoint] = []
    workers: list[Sequence[ScoreProducer]] = []
    for device in request.devices:
        models = [_load(request.model, "source-to-target")]
        if request.inverse_model:
            models.append(_load(request.inverse_model, "target-to-source"))
        producers: list[ScoreProducer] = [EncDecProducer(model, device) for model in models]
        if request.word_penalty:
            producers.append(WordPenaltyProducer(models[0].target_vocabulary))
        workers.append(producers)
    return models, workers


def _load(folder: Path, direction: str) -> Checkpoint:
    checkpoint = load_checkpoint(folder)
    if checkpoint.direction != direction:
        raise CheckpointError(
            f"{folder}: expected a model of direction {direction}, found {checkpoint.direction}\n"
            "  --model takes what moses-rnn-train makes, --inverse-model what moses-rnn-train --inverse makes."
        )
    return checkpoint


class _Ini:
    """The new ini, or without one the lines that it would need."""

    def __init__(self, request: ScoringRequest, old_columns: int, added: int) -> None:
        weight = request.ini.weight if request.ini else None
        weights = None if weight is None else (weight,) * added
        if request.ini is None:
            path = request.output if request.output == STANDARD_STREAM else str(Path(request.output).absolute())
            self.content = b""
            self.lines = default_lines(path, old_columns + added)
            return
        ini = MosesIni(Path(request.ini.ini).read_bytes(), request.ini.ini)
        feature = ini.choose(name=request.ini.feature, table=request.table)
        path = ini.path_like(feature, Path(request.output))
        self.content = ini.extended(feature, Extension(path, old_columns, added, weights))
        self.lines = MosesIni(self.content, request.ini.output).lines_of(feature.name)
