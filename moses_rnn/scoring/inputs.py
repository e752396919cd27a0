"""The inputs of a scoring run, opened and checked: table, models, ini."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from moses_rnn import __version__
from moses_rnn.errors import CheckpointError, FormatError, InputError
from moses_rnn.files.streams import Meter, identity_of, read_blocks, stamp_of
from moses_rnn.formats.census import Census
from moses_rnn.formats.dictionaries import Shape
from moses_rnn.formats.phrase_forms import PhraseForm
from moses_rnn.formats.signatures import added_already
from moses_rnn.formats.table_blocks import TableBlock, parse_blocks
from moses_rnn.inference.kernel import Elementwise
from moses_rnn.models.checkpoint import Checkpoint, load_checkpoint
from moses_rnn.models.hardware import choose_compiled, choose_precision
from moses_rnn.producers.base import ScoreProducer
from moses_rnn.producers.phrases import EncDecProducer, WordPenaltyProducer
from moses_rnn.scoring.fit import check_learned
from moses_rnn.scoring.new_ini import NewIni
from moses_rnn.scoring.phrase_tables import CHUNK_BYTES, CHUNK_LINES, ScoringReport, scored_table
from moses_rnn.scoring.request import ScoringRequest
from moses_rnn.scoring.signature import signature

Rejected = Callable[[bytes, FormatError], None]
LARGE_TABLE = 1 << 22  # bytes, compressed: some minutes of work for a large network


class Job:
    """What a run works on.

    Args:
        request: all choices.
        rejected: told of lines that are none; None: the first one is an error.
        waiting: called again and again while a pipe has nothing to give; it may raise.

    Raises:
        InputError: table, model or ini are rejected.
    """

    def __init__(self, request: ScoringRequest, rejected: Rejected | None, waiting: Callable[[], None]) -> None:
        self._request = request
        self._identity = identity_of(request.table)
        self._stamp = stamp_of(request.table)
        self._meter = Meter(waiting=waiting)
        self._census = Census(request.table, strict=request.strict)
        self._models = _models(request)
        _check_new(request, self._models)
        blocks = read_blocks(request.table, max_line_bytes=request.max_line_bytes, meter=self._meter)
        parsed = parse_blocks(blocks, request.table, rejected, _factors(request, self._models))
        first, self._lines = _with_first(parsed, request.table)
        shape = Shape.of(first.irregular[0])
        self._old_columns = shape.columns
        self._form = first.form
        _check_form(request, self._models, self._form)
        choices = request.devices[0], self._models[0].model.config.hidden_size
        self._precision = choose_precision(request.precision, *choices)
        self._compiled = choose_compiled(request.compiled, *choices, long=_is_large(request.table))
        self.workers = self._workers()
        self.ini = NewIni(request, shape, len(self.workers[0]))  # refused now rather than after hours

    def _workers(self) -> list[Sequence[ScoreProducer]]:
        """The producers of the new columns, for each thread that scores."""
        elementwise = Elementwise.compiled() if self._compiled else None
        workers: list[Sequence[ScoreProducer]] = []
        for device in self._request.devices:
            producers: list[ScoreProducer] = [
                EncDecProducer(model, device, self._precision, elementwise) for model in self._models
            ]
            if self._request.word_penalty:
                producers.append(WordPenaltyProducer(self._models[0].target_vocabulary))
            workers += [producers] * self._request.workers
        return workers

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the added columns."""
        return tuple(producer.name for producer in self.workers[0])

    def share(self, report: ScoringReport) -> float | None:
        """How much of the table is done: what was read of it, less the lines that are waiting."""
        return self._meter.share and self._meter.share * report.read / self._meter.lines_read

    def manifest(self) -> dict[str, Any]:
        """Everything that decides the bytes of the scored table."""
        request = self._request
        return {
            "program": f"moses_rnn {__version__}",
            "torch": torch.__version__,
            "input": self._identity,
            "resumable": "pipe" not in self._identity,
            "models": [dict(model.hashes) for model in self._models],
            "columns": list(self.column_names),
            "floor": request.columns.floor,
            "logarithms": request.columns.logarithms,
            "chunk": [CHUNK_LINES, CHUNK_BYTES],
            "level": request.level,
            "device": sorted({torch.device(device).type for device in request.devices}),
            "threads": torch.get_num_threads(),
            "precision": self._precision,
            "compiled": self._compiled,
            "phrases": str(self._form),
        }

    def blocks(self, report: ScoringReport, pack: Callable[[bytes], bytes]) -> Iterator[bytes]:
        """The scored table from the line on that the report has come to, in packed blocks."""
        self._census.take_over(report.oddities)
        read = report.read
        lines = filter(None, (block.after(read) for block in self._lines))
        for block in scored_table(lines, self.workers, self._request.columns, report, self._census, pack):
            report.oddities = self._census.as_note()
            yield block

    def check_unchanged(self) -> None:
        """Raise InputError if the table was written to meanwhile."""
        if stamp_of(self._request.table) != self._stamp:
            raise InputError(f"{self._request.table}: was changed while it was read; nothing was written")

    def signature(self, report: ScoringReport, digest: dict[str, Any], rejected: int) -> bytes:
        """The signature file's content."""
        files = {
            "input": Path(self._request.table).name,
            "output": Path(self._request.output).name,
            "file": digest,
            "rejected_lines": rejected,
            "precision": self._precision,
            "compiled": self._compiled,
            "phrases": str(self._form),
        }
        return signature(files, self._old_columns, self.workers[0], self._models, self._request.columns, report)

    def warnings(self) -> Iterator[str]:
        """What the user should know of the inputs."""
        yield from self._census.warnings()
        yield from self.ini.warnings


def _check_new(request: ScoringRequest, models: Sequence[Checkpoint]) -> None:
    """Refuse to add a column that the table has, by its signature."""
    names = [EncDecProducer.name_of(model) for model in models] + [WordPenaltyProducer.name] * request.word_penalty
    there = sorted(set(names) & set(added_already(request.table)))
    if there and not request.again:
        raise InputError(
            f"{request.table}: expected a table without {' and '.join(there)}, found {'them' if there[1:] else 'it'} "
            "added already, by the signature beside it\n  Score the table that it was made from. --again adds another "
            "such column, by a further model, say."
        )


def _with_first(blocks: Iterator[TableBlock], name: str) -> tuple[TableBlock, Iterator[TableBlock]]:
    """The first block, and all of them."""
    first = next(blocks, None)
    if first is None:
        raise FormatError(name, None, "at least one line", "none")
    return first, itertools.chain([first], blocks)


def _forms(request: ScoringRequest, models: Sequence[Checkpoint]) -> Iterator[tuple[Path, PhraseForm]]:
    """Each model's folder and the form of the phrases that it learned from."""
    folders = filter(None, (request.model, request.inverse_model))
    for folder, model in zip(folders, models, strict=True):
        yield folder, PhraseForm.from_record(model.provenance.get("phrases"))


def _factors(request: ScoringRequest, models: Sequence[Checkpoint]) -> PhraseForm:
    """The factors to read: those that were asked for, else those that the model learned from."""
    (_, learned), *_ = _forms(request, models)
    source, target = request.source_factor, request.target_factor
    return PhraseForm(
        learned.source_factor if source is None else source, learned.target_factor if target is None else target
    )


def _check_form(request: ScoringRequest, models: Sequence[Checkpoint], form: PhraseForm) -> None:
    """Refuse models of other phrases than the table has; one that learned from plain words may read a factor."""
    for folder, learned in _forms(request, models):
        fits = learned.hierarchical == form.hierarchical
        for of_model, of_table in (
            (learned.source_factor, form.source_factor),
            (learned.target_factor, form.target_factor),
        ):
            fits &= of_model in (None, of_table)
        if not fits:
            raise CheckpointError(
                f"{folder}: expected a model that was trained on phrases like those of {request.table} ({form}), found "
                f"one for {learned}\n  Train one with: moses-rnn-train {request.table}"
            )


def _is_large(table: str) -> bool:
    return Path(table).is_file() and Path(table).stat().st_size >= LARGE_TABLE


def _models(request: ScoringRequest) -> list[Checkpoint]:
    models = [_load(request.model, "source-to-target", request)]
    if request.inverse_model:
        models.append(_load(request.inverse_model, "target-to-source", request))
    return models


def _load(folder: Path, direction: str, request: ScoringRequest) -> Checkpoint:
    checkpoint = load_checkpoint(folder)
    if not request.allow_misfit:
        check_learned(folder, checkpoint)
    if checkpoint.direction != direction:
        raise CheckpointError(
            f"{folder}: expected a model of direction {direction}, found {checkpoint.direction}\n"
            "  --model takes what moses-rnn-train makes, --inverse-model what moses-rnn-train --inverse makes."
        )
    return checkpoint
