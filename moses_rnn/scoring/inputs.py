"""What a scoring run reads, opened once and checked: table and models."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from moses_rnn.errors import CheckpointError, FormatError, InputError
from moses_rnn.files.metered import Meter
from moses_rnn.files.outputs import DEFAULT_LEVEL
from moses_rnn.files.shards import count_lines, read_part
from moses_rnn.files.streams import identity_of, read_blocks, stamp_of
from moses_rnn.formats.line_warnings import LineWarnings
from moses_rnn.formats.phrase_forms import PLAIN, PhraseForm
from moses_rnn.formats.phrase_table import LineParser, Rejected, Shape, TableLine, read_first_line
from moses_rnn.formats.signatures import PROGRAM, added_names, fitting_signature
from moses_rnn.formats.table_blocks import TableLines, parse_with
from moses_rnn.native import native_core
from moses_rnn.producers.base import Compute, Description, Wanted
from moses_rnn.producers.ensembles import Writer
from moses_rnn.producers.open import Model, needs_alignments, open_model
from moses_rnn.producers.phrases import WordPenaltyProducer
from moses_rnn.scoring.fit import check_learned
from moses_rnn.scoring.phrase_tables import CHUNK_BYTES, CHUNK_LINES, ScoringReport
from moses_rnn.scoring.request import ScoringRequest
from moses_rnn.scoring.workers import describe_columns, make_writers


@dataclass(frozen=True)
class Inputs:
    """A table and the models that score it; each of the `writers`, one or several of them, gives a column.

    `shape` is the table's, without the columns that are added; `signature` is what is recorded beside it; `lines` are
    all of its lines, in blocks; `stamp` tells whether it was written to.
    """

    request: ScoringRequest
    identity: dict[str, object]
    stamp: object
    signature: Mapping[str, Any]
    meter: Meter
    odd: LineWarnings
    models: Sequence[Model]
    writers: Sequence[Writer]
    shape: Shape
    form: PhraseForm
    lines: Iterator[TableLines]
    table_lines: int  # 0 unless a shard is scored
    part: range | None  # its lines, from 0
    compute: Compute  # how all networks compute, chosen for the first device

    @property
    def columns(self) -> list[Description]:
        """The columns that are added."""
        return describe_columns(self.writers, word_penalty=self.request.word_penalty)

    @property
    def computed_by(self) -> str:
        """The native core or torch, and in which precision."""
        return f"{native_core() if self.compute.native else 'torch'}, {self.compute.precision}"

    def manifest(self) -> dict[str, Any]:
        """Everything that decides the bytes of the scored table, as JSON; only now that workers share the threads."""
        request = self.request
        return {
            "program": PROGRAM,
            "torch": torch.__version__,
            "input": self.identity,
            "resumable": "pipe" not in self.identity,
            "models": [{"direction": model.direction, "sha256": dict(model.hashes)} for model in self.models],
            "columns": [column.name for column in self.columns],
            "floor": request.columns.floor,
            "logarithms": request.columns.logarithms,
            "chunk": [CHUNK_LINES, CHUNK_BYTES],
            "level": DEFAULT_LEVEL,
            "device": sorted({torch.device(device).type for device in request.devices}),
            "threads": 1 if self.compute.native else torch.get_num_threads(),
            "precision": self.compute.precision,
            "native": str(native_core()) if self.compute.native else None,
            "shard": f"{request.shard} of {self.table_lines:,} lines" if request.shard else None,
            "phrases": str(self.form),
        }

    def lines_after(self, number: int) -> Iterator[TableLines]:
        """The lines that come after one of that number."""
        return filter(None, (block.after(number) for block in self.lines))

    def share(self, report: ScoringReport) -> float | None:
        """How much of the table is done: what was read of it, less the lines that are waiting."""
        if self.part is not None:
            return (report.read - self.part.start) / len(self.part)
        return self.meter.share and self.meter.share * report.read / self.meter.lines_read

    def shard_record(self) -> dict[str, object]:
        """What a signature says of a shard; empty for a whole table."""
        shard = self.request.shard
        if shard is None:
            return {}
        return {
            "shard": {
                "number": shard.number,
                "count": shard.count,
                "lines": self.table_lines,
                "table": str(Path(self.request.table).absolute()),
                "identity": dict(self.identity),
                "factors": list(self.shape.factors),
            }
        }

    def check_unchanged(self) -> None:
        """Raise InputError if the table was written to meanwhile."""
        if stamp_of(self.request.table) != self.stamp:
            raise InputError(f"{self.request.table}: was changed while it was read; nothing was written")


def open_inputs(request: ScoringRequest, take: Rejected | None, waiting: Callable[[], None]) -> Inputs:
    """Open and check what a run reads.

    Args:
        request: all choices.
        take: is given invalid lines; None: the first one is an error.
        waiting: called again and again while a pipe has nothing to give; it may raise.

    Raises:
        InputError: table or models are rejected.
    """
    identity, stamp = identity_of(request.table), stamp_of(request.table)
    _look_for_alignments(request)
    models = _open_models(request)
    writers = make_writers(models, averaged=request.columns.averaged)
    signature = fitting_signature(request.table)
    _check_new(request, writers, signature)
    meter = Meter(waiting=waiting)
    table_lines = count_lines(request.table) if request.shard else 0
    part = request.shard.lines_of(table_lines) if request.shard else None
    read = read_blocks if part is None else partial(read_part, lines=part)
    before = 0 if part is None else part.start
    parser = LineParser(request.table, take, _factors(models))
    blocks = parse_with(parser, read(request.table, meter=meter), before)
    first_block = next(blocks, None)
    if first_block is None or parser.first is None:
        of_shard = f" in shard {request.shard}" if request.shard else ""
        raise FormatError(request.table, None, f"at least one line{of_shard}", "none")
    _check_form(request, models, parser.form)
    _check_alignments(request, parser.first)
    wanted = Wanted(request.devices[0], request.precision, request.floors_long)
    return Inputs(
        request=request,
        identity=identity,
        stamp=stamp,
        signature=signature,
        meter=meter,
        odd=LineWarnings(request.table),
        models=models,
        writers=writers,
        shape=Shape.of(parser.first),
        form=parser.form,
        lines=itertools.chain([first_block], blocks),
        table_lines=table_lines,
        part=part,
        compute=_choose_compute(models, wanted),
    )


def _open_models(request: ScoringRequest) -> list[Model]:
    models = [open_model(folder, direction="source-to-target") for folder in request.models]
    models += [open_model(folder, direction="target-to-source") for folder in request.inverse_models]
    if not request.allow_misfit:
        for model in models:
            check_learned(model)
    return models


def _choose_compute(models: Sequence[Model], wanted: Wanted) -> Compute:
    """How all of them compute: as suits the first of those that can do the least."""
    return min(models, key=lambda model: model.architecture.native is not None).choose_compute(wanted)


def _check_new(request: ScoringRequest, writers: Sequence[Writer], signature: Mapping[str, Any]) -> None:
    """Refuse to add a column that the table has, by its signature."""
    names = [writer.name for writer in writers] + [WordPenaltyProducer.name] * request.word_penalty
    there = sorted(set(names) & set(added_names(signature)))
    if there and not request.again:
        raise InputError(
            f"{request.table}: expected a table without {' and '.join(there)}, found "
            f"{'them' if there[1:] else 'it'} added already, by the signature beside it",
            advice=(
                "Score the table that it was made from. --again adds another such column, by a further model, say."
            ),
        )


def _factors(models: Sequence[Model]) -> PhraseForm:
    """The factors to read: those that the model learned from."""
    learned = models[0].form
    return PhraseForm(learned.source_factor, learned.target_factor)


def _check_form(request: ScoringRequest, models: Sequence[Model], form: PhraseForm) -> None:
    """Refuse models of other phrases than the table has; one that learned from plain words may read a factor."""
    for model in models:
        if model.rare is not None and not form.is_plain:
            raise CheckpointError(
                f"{model.folder}: expected a table of plain words, to annotate rare words in, found one of {form}"
            )
        learned = model.form
        fits = learned.hierarchical == form.hierarchical
        for of_model, of_table in (
            (learned.source_factor, form.source_factor),
            (learned.target_factor, form.target_factor),
        ):
            fits &= of_model in (None, of_table)
        if not fits:
            raise CheckpointError(
                f"{model.folder}: expected a model that was trained on phrases like those of {request.table} ({form}), "
                f"found one for {learned}",
                advice=f"Train one with: moses-rnn-train {request.table}",
            )


def _look_for_alignments(request: ScoringRequest) -> None:
    """Refuse a file without alignments that a model's rare words need, before any model is loaded."""
    if any(needs_alignments(Path(folder)) for folder in request.folders) and Path(request.table).is_file():
        try:
            first, _ = read_first_line(request.table, PLAIN)
        except FormatError:  # of which more is said when the whole table is read
            return
        _check_alignments(request, first)


def _check_alignments(request: ScoringRequest, first: TableLine) -> None:
    """Refuse a table without alignments that a model's rare words need."""
    for folder in request.folders:
        if needs_alignments(folder) and not first.alignment:
            raise FormatError(
                request.table,
                first.number,
                f"a word alignment in field 4, by which the rare words of {folder} are annotated",
                "none",
                "train-model.perl writes it, unless the table was made with --NoWordAlignment.",
            )
