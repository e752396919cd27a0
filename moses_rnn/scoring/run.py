"""A whole scoring run: table, signature and ini come into being together, or not at all."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from moses_rnn import __version__
from moses_rnn.errors import CheckpointError, FormatError, InputError, Stopped
from moses_rnn.formats.journal import BlockOutput, Opening, StandardOutput
from moses_rnn.formats.moses_ini import Extension, MosesIni, default_lines
from moses_rnn.formats.phrase_table import TableLine, parse_table, score_words
from moses_rnn.formats.streams import (
    DEFAULT_LEVEL,
    STANDARD_STREAM,
    Meter,
    NoOutput,
    OutputFile,
    identity_of,
    read_lines,
    stamp_of,
)
from moses_rnn.models.checkpoint import Checkpoint, load_checkpoint
from moses_rnn.scoring.phrase_tables import CHUNK_LINES, ColumnOptions, ScoringReport, scored_table
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
    resume: bool = False


@dataclass(frozen=True)
class ScoringResult:
    """What a run made: its report, and the lines that a moses.ini needs."""

    report: ScoringReport
    feature_line: str
    weight_line: str
    column_names: tuple[str, ...]
    relative_paths: tuple[str, ...] = ()  # in the new ini


def score(
    request: ScoringRequest, advanced: Callable[[int, float | None], None], should_stop: Callable[[], bool]
) -> ScoringResult:
    """Score a phrase table.

    Args:
        request: all choices.
        advanced: told after every block how many lines are done and what share of the table was read (None: unknown).
        should_stop: asked after every block.

    Raises:
        InputError: the table, the model or the ini was rejected; nothing stays of the output.
        OutputError: an output cannot be written; what was finished can be resumed.
        Stopped: as asked; what was finished can be resumed.
    """
    with _table_output(request) as table, _signature_output(request) as beside, _ini_output(request) as new_ini:
        job = _Job(request)
        report = ScoringReport(**table.begin(job.manifest()) or {})
        try:
            for block in job.blocks(report):
                table.append(block, report.as_note())
                advanced(report.lines, job.share(report))
                if should_stop():
                    raise Stopped(f"stopped after {report.lines:,} lines; the same command with --resume goes on")
            job.check_unchanged()
        except InputError:
            table.discard()
            raise
        beside.commit(job.signature(report, table.digest()))
        new_ini.commit(job.ini.content)
        table.commit()
    names = tuple(producer.name for producer in job.workers[0])
    return ScoringResult(report, *job.ini.lines, names, job.ini.relative_paths)


class _Job:
    """A run's inputs, opened and checked: table, models, ini."""

    def __init__(self, request: ScoringRequest) -> None:
        self._request = request
        self._identity = identity_of(request.table)
        self._stamp = stamp_of(request.table)
        self._meter = Meter()
        self._lines_read = 0
        lines = parse_table(self._counted(read_lines(request.table, meter=self._meter)), request.table)
        self._lines, self._old_columns = _with_columns(lines, request.table)
        self._models, self.workers = _producers(request)
        self.ini = _Ini(request, self._old_columns, len(self.workers[0]))  # refused now rather than after hours

    def _counted(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            self._lines_read += 1
            yield line

    def share(self, report: ScoringReport) -> float | None:
        """How much of the table is done: what was read of it, less the lines that are waiting."""
        return self._meter.share and self._meter.share * report.lines / self._lines_read

    def manifest(self) -> dict[str, Any]:
        """Everything that decides the bytes of the scored table."""
        request = self._request
        return {
            "program": f"moses_rnn {__version__}",
            "torch": torch.__version__,
            "input": self._identity,
            "models": [dict(model.hashes) for model in self._models],
            "columns": [producer.name for producer in self.workers[0]],
            "floor": request.columns.floor,
            "logarithms": request.columns.logarithms,
            "chunk_lines": CHUNK_LINES,
            "level": request.level,
            "device": sorted({torch.device(device).type for device in request.devices}),
            "threads": torch.get_num_threads(),
        }

    def blocks(self, report: ScoringReport) -> Iterator[bytes]:
        """The scored table from the line on that the report has come to."""
        deque(itertools.islice(self._lines, report.lines), maxlen=0)
        return scored_table(self._lines, self.workers, self._request.columns, report, self._request.table)

    def check_unchanged(self) -> None:
        """Raise InputError if the table was written to meanwhile."""
        if stamp_of(self._request.table) != self._stamp:
            raise InputError(f"{self._request.table}: was changed while it was read; nothing was written")

    def signature(self, report: ScoringReport, digest: dict[str, Any]) -> bytes:
        """The signature file's content."""
        files = {"input": Path(self._request.table).name, "output": Path(self._request.output).name, "file": digest}
        return signature(files, self._old_columns, self.workers[0], self._models, self._request.columns, report)


def _table_output(request: ScoringRequest) -> BlockOutput | StandardOutput:
    if request.output == STANDARD_STREAM:
        return StandardOutput()
    opening = Opening(force=request.force, resume=request.resume)
    return BlockOutput(request.output, level=request.level, opening=opening, inputs=_inputs(request))


def _inputs(request: ScoringRequest) -> tuple[str, ...]:
    return (request.table, request.ini.ini) if request.ini else (request.table,)


def _signature_output(request: ScoringRequest) -> OutputFile | NoOutput:
    return NoOutput() if request.output == STANDARD_STREAM else _small_output(request, request.output + ".json")


def _ini_output(request: ScoringRequest) -> OutputFile | NoOutput:
    return _small_output(request, request.ini.output) if request.ini else NoOutput()


def _small_output(request: ScoringRequest, path: str) -> OutputFile:
    return OutputFile(path, force=request.force or request.resume, inputs=_inputs(request))


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
            self.relative_paths: tuple[str, ...] = ()
            self.lines = default_lines(path, old_columns + added)
            return
        ini = MosesIni(Path(request.ini.ini).read_bytes(), request.ini.ini)
        feature = ini.choose(name=request.ini.feature, table=request.table)
        path = ini.path_like(feature, Path(request.output))
        self.content = ini.extended(feature, Extension(path, old_columns, added, weights))
        new = MosesIni(self.content, request.ini.output)
        self.lines = new.lines_of(feature.name)
        self.relative_paths = new.relative_paths()
