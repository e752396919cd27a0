"""Score a phrase table: the main path of the package, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from moses_rnn.errors import (
    AlreadyComplete,
    FormatError,
    InputError,
    MisfitError,
    MosesRnnError,
    OutputError,
    Stopped,
    number_of,
)
from moses_rnn.files.outputs import LEVEL, Note, pack, refuse_equal
from moses_rnn.files.resumable import ResumableOutputs
from moses_rnn.files.streams import STANDARD_STREAM, Advanced, check_unchanged, find_input
from moses_rnn.models.model import Model
from moses_rnn.models.open import check_learned, model_files, open_model
from moses_rnn.moses.ini_editing import NewIni, ini_of
from moses_rnn.native import native_core
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.config import SOURCE_TO_TARGET, TARGET_TO_SOURCE
from moses_rnn.score.checks import check_fit, check_rejected, check_table, fit_warnings, unit_warnings
from moses_rnn.score.input_table import InputTable
from moses_rnn.score.scoring_options import ScoringOptions, rejects_of
from moses_rnn.score.workers import ScoredColumn, make_columns, map_in_order, open_workers
from moses_rnn.table.line_warnings import LineWarnings
from moses_rnn.table.signatures import (
    EARLIER,
    PROGRAM,
    AddedColumn,
    Signature,
    TableCounts,
    free_name,
    signature_of,
)
from moses_rnn.table.table_blocks import CHUNK_BYTES, CHUNK_LINES

FIRST_CHECK = 100_000  # lines before the first check of the table's fit; the next ones come at each doubling
# Keys of a signature that two runs with the same result may differ in
OF_RESULT = {"torch", "native", "output", "file", "rejected_lines", "lines"}


@dataclass(frozen=True)
class ScoringResult:
    """The result of a run, or of merging shards."""

    counts: TableCounts
    column_names: tuple[str, ...]
    ini: NewIni
    warnings: tuple[str, ...]
    computed_by: str  # the native core or torch, and in which precision


@dataclass(frozen=True)
class Run:
    """A run of scoring: its options and input table, its models and their columns, and how it computes."""

    options: ScoringOptions
    table: InputTable
    models: Sequence[Model]
    columns: Sequence[ScoredColumn]
    compute: Compute

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the added columns, each unlike the others and those that the table's signature records."""
        names: list[str] = []
        for column in self.columns:
            names.append(free_name(column.name, [*self.table.signature.names.values(), *names]))
        return tuple(names)

    @cached_property
    def ini(self) -> NewIni:
        """The ini for the new table, or its lines."""
        options, table = self.options, self.table
        return ini_of(options.output, options.table, table.shape, len(self.columns), options.moses_ini)

    @property
    def _used(self) -> list[Note]:
        """The records of the models."""
        return [{"direction": model.direction, "sha256": dict(model.hashes)} for model in self.models]

    def manifest(self) -> Note:
        """Return everything that determines the bytes of the scored table, as JSON; call it after `open_workers`."""
        options, compute = self.options, self.compute
        return {
            "program": PROGRAM,
            "torch": torch.__version__,
            "input": self.table.identity,
            "resumable": "pipe" not in self.table.identity,
            "models": self._used,
            "columns": [*self.names],
            "meanings": [column.meaning for column in self.columns],
            "floor": options.floor,
            "chunk": [CHUNK_LINES, CHUNK_BYTES],
            "level": LEVEL,
            "device": sorted({torch.device(device).type for device in options.devices}),
            "threads": 1 if compute.native else torch.get_num_threads(),
            "precision": compute.precision,
            "native": _core_of(self.compute),
            "shard": f"{options.shard} of {self.table.lines:,} lines" if options.shard else None,
            "phrases": str(self.table.form),
        }

    def signature(self, counts: TableCounts, digest: Note) -> Signature:
        """Return the signature of the scored table, given its size and hash."""
        options, table = self.options, self.table
        before, old_columns, identity = table.signature, table.shape.columns, table.identity
        earlier = [column.as_record() for column in before.columns.values() if column.index < old_columns]
        shard = options.shard and {
            "number": options.shard.number,
            "count": options.shard.count,
            "lines": table.lines,
            "lines_sha256": table.digest,
            "factors": list(table.shape.factors),
        }
        added = [
            AddedColumn(old_columns + i, name, column.meaning, column.unbounded, floor=options.floor)
            for i, (name, column) in enumerate(zip(self.names, self.columns, strict=True))
        ]
        return Signature(
            {
                "program": PROGRAM,
                "torch": torch.__version__,
                "input": Path(options.table).name,
                # without its time, which differs between copies; empty for a pipe
                "input_content": {key: identity[key] for key in ("bytes", "first_mb", "last_mb") if key in identity},
                **({"shard": shard} if shard else {}),
                "precision": self.compute.precision,
                "native": _core_of(self.compute),
                "phrases": str(table.form),
                "columns": old_columns + len(added),
                **({EARLIER: earlier} if earlier else {}),
                "added_columns": [column.as_record() | counts.of_column(i) for i, column in enumerate(added)],
                "models": [*before.models, *self._used],
                "output": Path(options.output).name,
                "file": digest,
                "rejected_lines": counts.rejected,
                "lines": counts.lines,
            }
        )

    def result(self, counts: TableCounts, computed_by: str, examples: Sequence[str] = ()) -> ScoringResult:
        """Return the result of the run, with warnings; `examples` say what is wrong with rejected lines."""
        odd_lines = LineWarnings(self.options.table, counts=counts.odd_lines)
        warnings = (
            *unit_warnings(self.models, on_sentences=False),
            *odd_lines.messages(),
            *self.ini.warnings,
            *self._warnings(counts, examples),
            *fit_warnings(counts, self.names),
        )
        return ScoringResult(counts, self.names, self.ini, warnings, computed_by)

    def _warnings(self, counts: TableCounts, examples: Sequence[str]) -> Iterator[str]:
        if counts.rejected:
            lines = number_of(counts.rejected, "line was", "lines were")
            more = ", for example" if examples and counts.rejected > len(examples) else ""
            named = f"{more}: {'; '.join(examples)}" if examples else ""
            yield f"{lines} left out and written to {self.options.rejects}{named}"
        if counts.oom_splits:
            yield (
                f"the device ran out of memory {number_of(counts.oom_splits, 'time')}; splitting the work can change "
                "the last digits of a score (by less than 1e-4 in log p)"
            )


def score(options: ScoringOptions, progress: Advanced, should_stop: Callable[[], bool]) -> ScoringResult:
    """Score a phrase table; after an error or a stop, the run can be resumed.

    `should_stop` is called after every chunk, and several times a second while a pipe has no data. Nothing is kept if
    the table, a model or the ini is rejected as a whole, or if a pipe is read or written.
    """
    counts = TableCounts()
    stop_if_requested = partial(_stop_if_requested, options, counts, should_stop)
    models, columns, compute = open_models(options)
    with _open_files(options, models, columns, compute) as files:
        table = InputTable(options, models[0].form, stop_if_requested)
        run = Run(options, table, models, columns, compute)
        check_table(options, table, models, [column.name for column in columns])
        ini = run.ini  # fails now, not after hours
        with open_workers(options, models, columns, compute) as workers:
            counts.add(TableCounts(**(files.begin(run.manifest()) or {})))
            odd_lines = LineWarnings(options.table, counts=counts.odd_lines)
            table.rejects.until(counts.read)  # skip those that an interrupted run has written
            next_check = max(FIRST_CHECK, 2 * counts.lines)
            # Merging checks the fit of shards: one may have other words than the whole table
            accepts_misfit = options.allow_misfit or options.shard is not None
            for chunk, (block, more) in map_in_order(table.chunks(after=counts.read), workers):
                counts.add(more)
                odd_lines.look(chunk.odd_lines)
                _save(run, files, counts, int(chunk.numbers[-1]), block)
                progress(counts.lines, table.share(counts.read))
                stop_if_requested()
                if counts.lines >= next_check:
                    check_fit(options.table, counts, run.names, allowed=accepts_misfit)
                    next_check = 2 * counts.lines
        _save(run, files, counts, max(counts.read, table.rejects.last), _rest_of(files, options.output))
        check_rejected(options.table, counts, table.rejects.messages, allowed=options.shard is not None)
        check_fit(options.table, counts, run.names, allowed=accepts_misfit)
        result = run.result(counts, computed_by(compute), table.rejects.messages)
        check_unchanged(table.path, table.identity)
        signature = run.signature(counts, files.digest(options.output))
        contents = {options.signature: signature.as_file(), options.new_ini: ini.content}
        replaces = files.forced
        files.commit({path: content for path, content in contents.items() if path})
    if replaces and options.signature and not options.rejects:
        Path(rejects_of(options.output)).unlink(missing_ok=True)
    return result


def _stop_if_requested(options: ScoringOptions, counts: TableCounts, should_stop: Callable[[], bool]) -> None:
    if should_stop():
        what_next = (
            "the same command with --resume continues"
            if options.output != STANDARD_STREAM and Path(options.table).is_file()
            else "a run through a pipe cannot be resumed: the same command starts over"
        )
        raise Stopped(f"stopped after {number_of(counts.lines, 'line')}; {what_next}")


def _save(run: Run, files: ResumableOutputs, counts: TableCounts, read: int, block: bytes) -> None:
    """Record all lines up to number `read`, and append the last block of the new table."""
    files.append(run.options.output, block)
    rejected = run.table.rejects.until(read)
    if rejected and run.options.rejects:
        files.append(run.options.rejects, b"".join(rejected))
    counts.read, counts.rejected = read, counts.rejected + len(rejected)
    files.save(asdict(counts))


def _rest_of(files: ResumableOutputs, output: str) -> bytes:
    """Return what makes an output without lines a whole file: gunzip refuses one without bytes."""
    return b"" if files.digest(output).get("bytes", 1) else pack(b"", output)


def open_models(options: ScoringOptions) -> tuple[list[Model], list[ScoredColumn], Compute]:
    """Open the models; return them, their columns, and how to compute: as the least capable model allows."""
    models = [open_model(folder, direction=SOURCE_TO_TARGET, pretrained=options) for folder in options.models]
    models += [open_model(folder, direction=TARGET_TO_SOURCE) for folder in options.inverse_models]
    for model in () if options.allow_misfit else models:
        check_learned(model)
    least = min(models, key=lambda model: model.architecture.native is not None)
    floors_long = options.long_phrases == "floor"
    compute = least.choose_compute(options.devices[0], options.precision, floors_long=floors_long)
    return models, make_columns(options, models), compute


def _open_files(
    options: ScoringOptions, models: Sequence[Model], columns: Sequence[ScoredColumn], compute: Compute
) -> ResumableOutputs:
    """Open the outputs of a run: table, signature, ini and rejected lines."""
    old_ini = [find_input(options.moses_ini)] if options.moses_ini else []
    of_models = (file for model in models for file in model_files(model.folder))
    inputs = (options.table, f"{options.table}.json", *old_ini, *of_models)
    if (options.force or options.resume) and options.signature and not options.rejects:
        refuse_equal([rejects_of(options.output)], inputs)  # an older table's, which will be removed
    try:
        return ResumableOutputs(
            [options.output],
            [path for path in (options.signature, options.new_ini) if path],
            optional=[options.rejects] if options.rejects else [],
            resume=options.resume,
            force=options.force,
            inputs=inputs,
            advise=partial(_advice, options),
        )
    except AlreadyComplete as error:
        if not Path(options.table).is_file():
            raise OutputError(f"{options.output}: already exists; use --force to replace it") from None
        table = InputTable(options, models[0].form, lambda: None)
        error.result = _result_of_complete(Run(options, table, models, columns, compute))
        raise


def _result_of_complete(run: Run) -> ScoringResult:
    """Return the result of the run that made the existing files; raise OutputError if this run makes others."""
    options, ini = run.options, run.ini
    try:
        signature = signature_of(options.output)
    except InputError:
        signature = Signature()
    found, expected = dict(signature.record), run.signature(TableCounts(), {}).record
    if "added_columns" in found:
        found["added_columns"] = [column.as_record() for column in signature.added]
    keys = sorted((expected.keys() | found.keys()) - OF_RESULT)
    differing = [key.replace("_", " ") for key in keys if found.get(key) != expected.get(key)]
    if found.get("rejected_lines") and not options.rejects:
        differing.append("rejected lines")
    try:
        counts = TableCounts.of_signature(signature)
    except (KeyError, TypeError, ValueError):
        differing.append("counts")
    if differing:
        reason = f"its signature differs in {', '.join(differing)}" if found else "no signature fits it"
        raise OutputError(f"{options.output}: already exists, and {reason}; use --force to replace it")
    if options.new_ini and Path(options.new_ini).read_bytes() != ini.content:
        raise OutputError(
            f"{options.new_ini}: already exists with other content than this run writes; use --force to replace it"
        )
    return run.result(counts, f"{found.get('native') or 'torch'}, {run.compute.precision}")


def computed_by(compute: Compute) -> str:
    """Name the native core or torch, and its precision."""
    return f"{_core_of(compute) or 'torch'}, {compute.precision}"


def _core_of(compute: Compute) -> str | None:
    core = native_core() if compute.native else None
    return core.name if core else None


def _advice(options: ScoringOptions, error: MosesRnnError, counts: Mapping[str, Any]) -> str:
    """Return advice after an error when some work is saved."""
    kept = f"{number_of(counts['lines'], 'line is', 'lines are')} already scored and saved."
    if isinstance(error, MisfitError):
        return f"{kept} Continue with --resume --allow-misfit, or start over with --force and another --model."
    if isinstance(error, FormatError) and options.rejects:
        return f"{kept} But --on-bad-line skip cannot skip this: correct the table and start over with --force."
    if isinstance(error, FormatError):
        return f"{kept} To keep the table as it is, continue with --resume --on-bad-line skip."
    return "" if isinstance(error, Stopped) else f"{kept} Correct the cause and continue with --resume."
