"""A whole scoring run: lines of a table in, the same lines with further scores out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from moses_rnn.errors import AlreadyComplete, FormatError, MisfitError, MosesRnnError, OutputError, Stopped
from moses_rnn.files.metered import Advanced
from moses_rnn.files.outputs import Note, Packing
from moses_rnn.files.resumable import ResumableOutputs
from moses_rnn.files.streams import STANDARD_STREAM, is_gzip
from moses_rnn.formats.phrase_table import Shape
from moses_rnn.formats.signatures import read_signature, records_of, scored_signature
from moses_rnn.moses.ini_editing import NewIni, extend_ini, lines_of
from moses_rnn.producers.ensembles import recorded_hashes
from moses_rnn.producers.open import model_files
from moses_rnn.scoring.fit import FitWatch, fit_warnings, unit_warnings
from moses_rnn.scoring.inputs import open_inputs
from moses_rnn.scoring.phrase_tables import ScoringReport, scored_table
from moses_rnn.scoring.pools import open_workers
from moses_rnn.scoring.rejects import Rejects
from moses_rnn.scoring.request import ScoringRequest, ScoringResult


def score(request: ScoringRequest, advanced: Advanced, should_stop: Callable[[], bool]) -> ScoringResult:
    """Score a phrase table.

    Args:
        request: all choices.
        advanced: called after every block with the lines that are done and, if known, the share of the table.
        should_stop: called after every block, and several times a second while a pipe has nothing to give.

    Raises:
        InputError: the table, the model or the ini was rejected; nothing appears under the output's name.
        OutputError: an output cannot be written; what was finished can be resumed.
        Stopped: as requested; what was finished can be resumed, unless it came or went through a pipe.
    """
    report, rejects = ScoringReport(), Rejects()
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(open_files(request))

        def stop_if_requested() -> None:
            if should_stop():
                raise Stopped(f"stopped after {report.lines:,} lines; {_after_stop(request)}")

        def reject(until: int | None) -> None:
            if block := rejects.rejected_until(until):
                files.append(str(request.rejects), block)

        inputs = open_inputs(request, rejects.take if request.rejects else None, stop_if_requested)
        workers = stack.enter_context(open_workers(inputs, Packing(is_gzip(request.output))))
        manifest, added, columns = inputs.manifest(), inputs.columns, inputs.shape.columns
        ini = _new_ini(request, inputs.shape, len(added))  # refused now rather than after hours
        saved = files.begin(manifest)
        report.take_over(saved)
        rejects.restore(saved or {})
        inputs.odd.counts = report.oddities  # which are saved with each block
        names = tuple(column.name for column in added)
        watch = FitWatch(request.table, report, names, allow_misfit=request.allow_misfit)
        lines = inputs.lines_after(report.read)
        for block in scored_table(lines, workers, report, inputs.odd):
            reject(report.read)
            files.append(request.output, block)
            files.save({**report.as_note(), **rejects.counts()})
            advanced(report.lines, inputs.share(report))
            stop_if_requested()
            watch.look()
        reject(None)
        files.save({**report.as_note(), **rejects.counts()})
        if request.shard is None:  # a small part may have other words than the whole
            watch.judge()
        inputs.check_unchanged()
        record = {
            "input": Path(request.table).name,
            "output": Path(request.output).name,
            "file": files.digest(request.output),
            "rejected_lines": rejects.lines,
            **inputs.shard_record(),
        }
        signature = scored_signature(manifest, record, columns, added, report, inputs.signature)
        small = zip(_small_files(request), (signature, ini.content), strict=True)
        files.commit({path: content for path, content in small if path})
    units = (text for model in inputs.models for text in unit_warnings(model, on_sentences=False))
    left_out = _of_rejects(rejects, str(request.rejects))
    warnings = (*units, *inputs.odd.messages(), *ini.warnings, *left_out, *_of_report(report, names))
    return ScoringResult(report, *ini.lines, names, rejects.lines, warnings, inputs.computed_by)


def open_files(request: ScoringRequest) -> ResumableOutputs:
    """The files of a run: table, signature and ini, and the lines that are left out.

    Raises:
        AlreadyComplete: all are there, made of the same table and models.
        OutputError: as for `ResumableOutputs`, or they are complete and of something else.
    """
    models = [file for folder in request.folders for file in model_files(folder)]
    try:
        return ResumableOutputs(
            [request.output],
            list(filter(None, _small_files(request))),
            optional=[request.rejects] if request.rejects else [],
            resume=request.resume,
            force=request.force,
            inputs=(request.table, *([request.ini.ini] if request.ini else []), *models),
            advise=_advice,
        )
    except AlreadyComplete:
        _check_signature(request)
        raise


def _small_files(request: ScoringRequest) -> list[str | None]:
    """Signature and ini, if they are wanted."""
    signature = None if request.output == STANDARD_STREAM else request.output + ".json"
    return [signature, request.ini.output if request.ini else None]


def _new_ini(request: ScoringRequest, shape: Shape, added: int) -> NewIni:
    if request.ini:
        return extend_ini(request.ini, request.table, shape.columns, added)
    return lines_of(request.output, shape.columns + added, shape.factors)


def _check_signature(request: ScoringRequest) -> None:
    """Refuse to take a table for complete whose signature is of another run, or is missing."""
    signature = read_signature(request.output) or {}
    # The models of an earlier run come first
    models = [record.get("sha256") for record in records_of(signature, "models")][-len(request.folders) :]
    floors = [record.get("floor") for record in records_of(signature, "added_columns")]
    floor = None if request.columns.logarithms else request.columns.floor
    if (signature.get("input"), models, floors) != (
        Path(request.table).name,
        list(map(recorded_hashes, request.folders)),
        [floor] * request.added_columns,
    ):
        raise OutputError(
            f"{request.output}: exists already, and its signature names another table, model, floor or number of "
            "columns; use --force to replace it"
        )


def _after_stop(request: ScoringRequest) -> str:
    if request.output != STANDARD_STREAM and Path(request.table).is_file():
        return "the same command with --resume continues"
    return "what goes through a pipe cannot be resumed: the same command starts over"


def _advice(error: MosesRnnError, counts: Note) -> str:
    """What to do after an error, where something is saved."""
    kept = f"{counts['lines']:,} lines are already scored and saved."
    if isinstance(error, MisfitError):
        return f"{kept} Continue with --resume --allow-misfit, or start over with --force and another --model."
    if isinstance(error, FormatError):
        return f"{kept} While the table stays as it is, continue with --resume --on-bad-line skip."
    return "" if isinstance(error, Stopped) else f"{kept} Correct the cause and continue with --resume."


def _of_rejects(rejects: Rejects, path: str) -> Iterator[str]:
    if rejects.lines:
        more = ", and others like" if rejects.lines > len(rejects.messages) else ""
        yield f"{rejects.lines:,} lines were left out, to {path}{more}: " + "; ".join(rejects.messages)


def _of_report(report: ScoringReport, names: tuple[str, ...]) -> Iterator[str]:
    if report.halvings:
        yield (
            f"the device's memory ran out {report.halvings:,} times; work was halved, which can change the last digits "
            "of a score (by less than 1e-4 in log p)"
        )
    yield from fit_warnings(report, names)
    for i in report.constant_columns():
        yield (
            f"{names[i]} is the same on every line: MERT cannot find a weight for it (leave the column out, or keep it "
            "from tuning with tuneable-components=)"
        )
