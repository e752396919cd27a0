"""A whole scoring run: lines of a table in, the same lines with further scores out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from moses_rnn.files.metered import Advanced
from moses_rnn.formats.signatures import scored_signature
from moses_rnn.moses.ini_editing import extend_ini, lines_of
from moses_rnn.scoring.fit import FitWatch, fit_warnings, unit_warnings
from moses_rnn.scoring.inputs import open_inputs
from moses_rnn.scoring.outputs import Outputs, open_outputs
from moses_rnn.scoring.phrase_tables import ScoringReport, scored_table
from moses_rnn.scoring.pools import open_workers
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
    with open_outputs(request) as outputs:
        report = outputs.report

        def stop_if_requested() -> None:
            if should_stop():
                outputs.stop()

        with contextlib.ExitStack() as stack:
            stack.enter_context(outputs.kept_if_resumable())
            inputs = open_inputs(request, outputs.rejects.take, stop_if_requested)
            workers = stack.enter_context(open_workers(inputs, outputs.table.pack))
            manifest, added = inputs.manifest(), inputs.columns
            columns = inputs.shape.columns
            if request.ini:  # refused now rather than after hours
                ini = extend_ini(request.ini, request.table, columns, len(added))
            else:
                ini = lines_of(request.output, columns + len(added), inputs.shape.factors)
            outputs.begin(manifest)
            inputs.odd.counts = report.oddities  # which are kept with each block
            names = tuple(column.name for column in added)
            watch = FitWatch(request.table, report, names, allow_misfit=request.allow_misfit)
            lines = inputs.lines_after(report.read)
            for block in scored_table(lines, workers, report, inputs.odd):
                outputs.write(block)
                advanced(report.lines, inputs.share(report))
                stop_if_requested()
                watch.look()
            outputs.rejects.write()
            if request.shard is None:  # a small part may have other words than the whole
                watch.judge()
            inputs.check_unchanged()
        files = {
            "input": Path(request.table).name,
            "output": Path(request.output).name,
            "file": outputs.table.digest(),
            "rejected_lines": outputs.rejects.lines,
            **inputs.shard_record(),
        }
        signature = scored_signature(manifest, files, columns, added, report, inputs.signature)
        outputs.commit(signature, ini.content)
    units = (text for model in inputs.models for text in unit_warnings(model, on_sentences=False))
    warnings = (*units, *inputs.odd.messages(), *ini.warnings, *_of_rejects(outputs), *_of_report(report, names))
    return ScoringResult(report, *ini.lines, names, outputs.rejects.lines, warnings, inputs.computed_by)


def _of_rejects(outputs: Outputs) -> Iterator[str]:
    rejects = outputs.rejects
    if rejects.lines:
        more = ", and others like" if rejects.lines > len(rejects.messages) else ""
        where = outputs.request.rejects
        yield f"{rejects.lines:,} lines were left out, to {where}{more}: " + "; ".join(rejects.messages)


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
