"""A whole scoring run: table, signature and ini come into being together, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from moses_rnn.errors import FormatError, InputError, MisfitError, MosesRnnError, Stopped
from moses_rnn.files.journal import BlockOutput, Opening
from moses_rnn.files.outputs import NoOutput, OutputFile, StandardOutput, refuse_equal
from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.models.checkpoint import ENCDEC
from moses_rnn.scoring.fit import FitWatch, fit_warnings
from moses_rnn.scoring.inputs import Job
from moses_rnn.scoring.phrase_tables import ScoringReport
from moses_rnn.scoring.rejects import NoRejects, Rejects
from moses_rnn.scoring.request import ScoringRequest, ScoringResult, rejects_of

Advanced = Callable[[int, float | None], None]


def score(request: ScoringRequest, advanced: Advanced, should_stop: Callable[[], bool]) -> ScoringResult:
    """Score a phrase table.

    Args:
        request: all choices.
        advanced: told after every block how many lines are done and what share of the table was read (None: unknown).
        should_stop: asked after every block, and several times a second while a pipe has nothing to give.

    Raises:
        InputError: the table, the model or the ini was rejected; nothing appears under the output's name.
        OutputError: an output cannot be written; what was finished can be resumed.
        Stopped: as asked; what was finished can be resumed, unless it came or went through a pipe.
    """
    refuse_equal(_outputs(request))
    with (
        _table_output(request) as table,
        _rejects_output(request) as rejects,
        _signature_output(request, goes_on=table.has_leftover) as beside,
        _ini_output(request, goes_on=table.has_leftover) as new_ini,
    ):
        report = ScoringReport()
        with _kept_if_resumable(request, table, rejects, report):
            job = Job(request, rejects.take, lambda: _stop(request, report) if should_stop() else None)
            manifest = job.manifest()
            report.take_over(table.begin(manifest))
            rejects.begin(manifest, None if table.published else table.blocks)
            watch = FitWatch(request.table, report, job.column_names)
            for block in job.blocks(report, table.pack):
                rejects.write(report.read)
                table.append(block, report.as_note())
                advanced(report.lines, job.share(report))
                if should_stop():
                    _stop(request, report)
                if not request.allow_misfit:
                    watch.look()
            rejects.write()
            if not request.allow_misfit:
                watch.judge()
            job.check_unchanged()
        # The table first: with it, --resume can make the others anew.
        table.commit()
        beside.commit(job.signature(report, table.digest(), rejects.lines))
        new_ini.commit(job.ini.content)
        rejects.commit()
    warnings = (*job.warnings(), *_of_rejects(request, rejects), *_of_report(report, job.column_names))
    return ScoringResult(report, *job.ini.lines, job.column_names, rejects.lines, warnings)


def _stop(request: ScoringRequest, report: ScoringReport) -> None:
    what_next = (
        "the same command with --resume goes on"
        if _is_resumable(request)
        else "what goes through a pipe cannot be gone on with: the same command begins anew"
    )
    raise Stopped(f"stopped after {report.lines:,} lines; {what_next}")


def _is_resumable(request: ScoringRequest) -> bool:
    return request.output != STANDARD_STREAM and Path(request.table).is_file()


@contextlib.contextmanager
def _kept_if_resumable(
    request: ScoringRequest, table: BlockOutput | StandardOutput, rejects: Rejects | NoRejects, report: ScoringReport
) -> Iterator[None]:
    """Leave what was finished only where the same input can be gone on with.

    That is so after a bad line too: --on-bad-line and the like are no part of what decides the bytes before it.
    """
    try:
        yield
    except MosesRnnError as error:
        if table.blocks:
            error.hint = _keep_or_discard(request, error, table, rejects, report)
        elif not table.has_leftover:
            rejects.discard()  # perhaps a block was written for them and none for the table
        raise


def _keep_or_discard(
    request: ScoringRequest,
    error: MosesRnnError,
    table: BlockOutput | StandardOutput,
    rejects: Rejects | NoRejects,
    report: ScoringReport,
) -> str:
    of_a_line = isinstance(error, FormatError) and error.line is not None
    misfit = isinstance(error, MisfitError)
    if not _is_resumable(request) or (isinstance(error, InputError) and not of_a_line and not misfit):
        table.discard()
        rejects.discard()
        return ""
    kept = f"{report.lines:,} lines are scored and kept"
    if misfit:
        return f"{kept}: --resume --allow-misfit goes on, --force with another --model starts over."
    if of_a_line:
        return (
            f"{kept}: while the file stays as it is, --resume goes on with other options for its lines "
            "(--on-bad-line skip, no --strict, a larger --max-line-bytes)."
        )
    return "" if isinstance(error, Stopped) else f"{kept}: mend the cause and go on with --resume."


def _table_output(request: ScoringRequest) -> BlockOutput | StandardOutput:
    if request.output == STANDARD_STREAM:
        return StandardOutput()
    return _block_output(request, request.output)


def _rejects_output(request: ScoringRequest) -> Rejects | NoRejects:
    if request.rejects:
        return Rejects(_block_output(request, request.rejects))
    return NoRejects(None if request.output == STANDARD_STREAM else rejects_of(request.output))


def _block_output(request: ScoringRequest, path: str) -> BlockOutput:
    opening = Opening(force=request.force, resume=request.resume)
    return BlockOutput(path, level=request.level, opening=opening, inputs=_inputs(request))


def _signature_output(request: ScoringRequest, *, goes_on: bool) -> OutputFile | NoOutput:
    if request.output == STANDARD_STREAM:
        return NoOutput()
    return _small_output(request, request.output + ".json", goes_on=goes_on)


def _ini_output(request: ScoringRequest, *, goes_on: bool) -> OutputFile | NoOutput:
    return _small_output(request, request.ini.output, goes_on=goes_on) if request.ini else NoOutput()


def _small_output(request: ScoringRequest, path: str, *, goes_on: bool) -> OutputFile:
    """What may be there is of the run that is gone on with, or that run was allowed to replace it."""
    return OutputFile(path, force=request.force or (request.resume and goes_on), inputs=_inputs(request))


def _outputs(request: ScoringRequest) -> Iterator[str]:
    if request.output != STANDARD_STREAM:
        yield from (request.output, request.output + ".json")
    yield from filter(None, (request.rejects, request.ini.output if request.ini else None))


def _inputs(request: ScoringRequest) -> tuple[str, ...]:
    """All files that no output may replace."""
    folders = [folder for folder in (request.model, request.inverse_model) if folder]
    models = [str(folder / name) for folder in folders for name in ENCDEC.files()]
    return (request.table, *([request.ini.ini] if request.ini else []), *models)


def _of_rejects(request: ScoringRequest, rejects: Rejects | NoRejects) -> Iterator[str]:
    if rejects.lines:
        more = ", and others like" if rejects.lines > len(rejects.messages) else ""
        yield f"{rejects.lines:,} lines were left out, to {request.rejects}{more}: " + "; ".join(rejects.messages)


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
