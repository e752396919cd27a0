"""Score a phrase table: the main path of the package, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from moses_rnn.errors import AlreadyComplete, FormatError, MisfitError, MosesRnnError, OutputError, Stopped, number_of
from moses_rnn.files.outputs import LEVEL, pack, refuse_equal
from moses_rnn.files.resumable import ResumableOutputs
from moses_rnn.files.streams import STANDARD_STREAM, Advanced, check_unchanged, find_input
from moses_rnn.models.model import Model
from moses_rnn.models.open import check_learned, model_files, open_model
from moses_rnn.moses.ini_editing import NewIni, ini_of
from moses_rnn.native import native_core
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.config import SOURCE_TO_TARGET, TARGET_TO_SOURCE
from moses_rnn.score.checks import check_complete, check_fit, check_rejected, check_table, fit_warnings, unit_warnings
from moses_rnn.score.reading import InputTable
from moses_rnn.score.scoring_options import ScoringOptions, rejects_of
from moses_rnn.score.workers import Column, make_columns, map_in_order, open_workers
from moses_rnn.table.line_warnings import LineWarnings
from moses_rnn.table.signatures import (
    EARLIER,
    LOGARITHM,
    PROBABILITY,
    PROGRAM,
    TableCounts,
    as_file,
    check_probabilities,
    free_name,
    logarithm_columns,
    read_signature,
    recorded_columns,
    recorded_names,
    records_of,
    without_counts,
)
from moses_rnn.table.table_blocks import CHUNK_BYTES, CHUNK_LINES

FIRST_CHECK = 100_000  # lines before the first check of the table's fit; the next ones come at each doubling


@dataclass(frozen=True)
class ScoringResult:
    """The result of a run, or of merging shards."""

    counts: TableCounts
    column_names: tuple[str, ...]
    ini: NewIni
    warnings: tuple[str, ...]
    computed_by: str  # the native core or torch, and in which precision


def score(options: ScoringOptions, progress: Advanced, should_stop: Callable[[], bool]) -> ScoringResult:
    """Score a phrase table; after an error or a stop, the run can be resumed.

    `should_stop` is called after every chunk, and several times a second while a pipe has no data. Nothing is kept if
    the table, a model or the ini is rejected as a whole, or if a pipe is read or written.
    """
    counts = TableCounts()

    def stop_if_requested() -> None:
        if should_stop():
            what_next = (
                "the same command with --resume continues"
                if options.output != STANDARD_STREAM and Path(options.table).is_file()
                else "a run through a pipe cannot be resumed: the same command starts over"
            )
            raise Stopped(f"stopped after {number_of(counts.lines, 'line')}; {what_next}")

    def save(read: int, block: bytes = b"") -> None:
        """Record all lines up to number `read`, and append the last block of the new table."""
        files.append(options.output, block)
        rejected = table.rejects.until(read)
        if rejected and options.rejects:
            files.append(options.rejects, b"".join(rejected))
        counts.read, counts.rejected = read, counts.rejected + len(rejected)
        files.save(asdict(counts))

    models, columns, compute = open_models(options)
    with open_files(options, models, columns, compute) as files:
        table = InputTable(options, models[0].form, stop_if_requested)
        names = name_columns(table, columns)
        check_table(options, table, models, [column.name for column in columns])
        # fails now, not after hours
        ini = _ini_of(options, table, len(columns))
        with open_workers(options, models, columns, compute) as workers:
            manifest = manifest_of(options, table, models, columns, compute)
            counts = TableCounts(**(files.begin(manifest) or {}))
            odd_lines = LineWarnings(options.table, counts=counts.odd_lines)
            table.rejects.until(counts.read)  # skip those that an interrupted run has written
            next_check = max(FIRST_CHECK, 2 * counts.lines)
            # Merging checks the fit of shards: one may have other words than the whole table
            accepts_misfit = options.allow_misfit or options.shard is not None
            for chunk, (block, more) in map_in_order(table.chunks(after=counts.read), workers):
                counts.add(more)
                odd_lines.look(chunk.odd_lines)
                save(int(chunk.numbers[-1]), block)
                progress(counts.lines, table.share(counts.read))
                stop_if_requested()
                if counts.lines >= next_check:
                    check_fit(options.table, counts, names, allowed=accepts_misfit)
                    next_check = 2 * counts.lines
        save(max(counts.read, table.rejects.last), _rest_of(files, options.output))
        check_rejected(options.table, counts, table.rejects.messages, allowed=options.shard is not None)
        check_fit(options.table, counts, names, allowed=accepts_misfit)
        misfits = [*fit_warnings(counts, names)]
        units = unit_warnings(models, on_sentences=False)
        of_lines = [*odd_lines.messages(), *ini.warnings, *_warnings(options, counts, table.rejects.messages)]
        result = ScoringResult(counts, names, ini, (*units, *of_lines, *misfits), computed_by(compute))
        check_unchanged(table.path, table.identity)
        origin = _origin(options, table, manifest, columns)
        signature = origin | {
            "output": Path(options.output).name,
            "file": files.digest(options.output),
            "rejected_lines": counts.rejected,
            "lines": counts.lines,
            "added_columns": [{**column, **counts.of_column(i)} for i, column in enumerate(origin["added_columns"])],
        }
        contents = {options.signature: as_file(signature), options.new_ini: ini.content}
        files.commit({path: content for path, content in contents.items() if path})
    if options.force and options.signature and not options.rejects:
        Path(rejects_of(options.output)).unlink(missing_ok=True)
    return result


def _rest_of(files: ResumableOutputs, output: str) -> bytes:
    """Return what makes an output without lines a whole file: gunzip refuses one without bytes."""
    return b"" if files.digest(output).get("bytes", 1) else pack(b"", output)


def open_models(options: ScoringOptions) -> tuple[list[Model], list[Column], Compute]:
    """Open the models; return them, their columns, and how to compute: as the least capable model allows."""
    models = [open_model(folder, direction=SOURCE_TO_TARGET) for folder in options.models]
    models += [open_model(folder, direction=TARGET_TO_SOURCE) for folder in options.inverse_models]
    for model in () if options.allow_misfit else models:
        check_learned(model)
    least = min(models, key=lambda model: model.architecture.native is not None)
    floors_long = options.long_phrases == "floor"
    compute = least.choose_compute(options.devices[0], options.precision, floors_long=floors_long)
    return models, make_columns(options, models), compute


def name_columns(table: InputTable, columns: Sequence[Column]) -> tuple[str, ...]:
    """Name the added columns, each unlike the others and those that the table's signature records."""
    before, names = recorded_names(table.signature).values(), list[str]()
    for column in columns:
        names.append(free_name(column.name, [*before, *names]))
    return tuple(names)


def open_files(
    options: ScoringOptions, models: Sequence[Model], columns: Sequence[Column], compute: Compute
) -> ResumableOutputs:
    """Open the outputs of a run: table, signature, ini and rejected lines."""
    old_ini = [find_input(options.moses_ini)] if options.moses_ini else []
    of_models = (file for model in models for file in model_files(model.folder))
    inputs = (options.table, f"{options.table}.json", *old_ini, *of_models)
    if options.force and options.signature and not options.rejects:
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
        manifest = manifest_of(options, table, models, columns, compute)
        ini = _ini_of(options, table, len(columns))
        counts = check_complete(options, _origin(options, table, manifest, columns), ini.content)
        core = read_signature(options.output).get("native") or "torch"
        names = tuple(manifest["columns"])
        warnings = *unit_warnings(models, on_sentences=False), *ini.warnings, *_warnings(options, counts)
        warnings = *warnings, *fit_warnings(counts, names)
        error.result = ScoringResult(counts, names, ini, warnings, f"{core}, {compute.precision}")
        raise


def _ini_of(options: ScoringOptions, table: InputTable, added: int) -> NewIni:
    """Return the ini for the new table, or its lines; none if Moses cannot load the table."""
    if options.moses_ini:
        check_probabilities(options.table, table.signature)
    elif options.logarithms or logarithm_columns(table.signature):
        return NewIni()
    return ini_of(options.output, options.table, table.shape, added, options.moses_ini)


def manifest_of(
    options: ScoringOptions, table: InputTable, models: Sequence[Model], columns: Sequence[Column], compute: Compute
) -> dict[str, Any]:
    """Return everything that determines the bytes of the scored table, as JSON; call it after `open_workers`."""
    return {
        "program": PROGRAM,
        "torch": torch.__version__,
        "input": table.identity,
        "resumable": "pipe" not in table.identity,
        "models": [{"direction": model.direction, "sha256": dict(model.hashes)} for model in models],
        "columns": [*name_columns(table, columns)],
        "floor": options.floor,
        "logarithms": options.logarithms,
        "chunk": [CHUNK_LINES, CHUNK_BYTES],
        "level": LEVEL,
        "device": sorted({torch.device(device).type for device in options.devices}),
        "threads": 1 if compute.native else torch.get_num_threads(),
        "precision": compute.precision,
        "native": _core_of(compute),
        "shard": f"{options.shard} of {table.lines:,} lines" if options.shard else None,
        "phrases": str(table.form),
    }


def computed_by(compute: Compute) -> str:
    """Name the native core or torch, and its precision."""
    return f"{_core_of(compute) or 'torch'}, {compute.precision}"


def _core_of(compute: Compute) -> str | None:
    core = native_core() if compute.native else None
    return core.name if core else None


def _origin(
    options: ScoringOptions, table: InputTable, manifest: Mapping[str, Any], columns: Sequence[Column]
) -> dict[str, Any]:
    """Return what the signature says about the origin of a table's scores."""
    before, old_columns = table.signature, table.shape.columns
    earlier = [without_counts(one) for column, one in recorded_columns(before).items() if column < old_columns]
    shard = options.shard and {
        "number": options.shard.number,
        "count": options.shard.count,
        "lines": table.lines,
        "lines_sha256": table.digest,
        "factors": list(table.shape.factors),
    }
    added = [
        {
            "index": old_columns + i,  # from 0, as Moses counts
            "name": name,
            "meaning": column.meaning,
            **({"unbounded": True} if column.unbounded else {}),  # a column of probabilities has no such key
            "written_as": LOGARITHM if options.logarithms else PROBABILITY,
            "floor": None if options.logarithms else options.floor,
        }
        for i, (name, column) in enumerate(zip(manifest["columns"], columns, strict=True))
    ]
    return {
        "program": PROGRAM,
        "torch": manifest["torch"],
        "input": Path(options.table).name,
        # without its time, which differs between copies; empty for a pipe
        "input_content": {
            key: table.identity[key] for key in ("bytes", "first_mb", "last_mb") if key in table.identity
        },
        **({"shard": shard} if shard else {}),
        "precision": manifest["precision"],
        "native": manifest["native"],
        "phrases": manifest["phrases"],
        "columns": old_columns + len(added),
        **({EARLIER: earlier} if earlier else {}),
        "added_columns": added,
        "models": [*records_of(before, "models"), *manifest["models"]],
    }


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


def _warnings(options: ScoringOptions, counts: TableCounts, examples: Sequence[str] = ()) -> Iterator[str]:
    if counts.rejected:
        lines = number_of(counts.rejected, "line was", "lines were")
        more = ", for example" if examples and counts.rejected > len(examples) else ""
        named = f"{more}: {'; '.join(examples)}" if examples else ""
        yield f"{lines} left out and written to {options.rejects}{named}"
    if counts.oom_splits:
        yield (
            f"the device ran out of memory {number_of(counts.oom_splits, 'time')}; splitting the work can "
            "change the last digits "
            "of a score (by less than 1e-4 in log p)"
        )
