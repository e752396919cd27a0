"""moses-rnn analyse report: all that the paper shows, on one page."""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from moses_rnn.analysis.choices import ReportOptions
from moses_rnn.cli.analyse.options import SORTED, open_table, open_writer, progress
from moses_rnn.cli.command import check_inputs, command, print_err, print_out
from moses_rnn.cli.options import choose_model
from moses_rnn.errors import MosesRnnError, shown_value

if TYPE_CHECKING:
    from moses_rnn.analysis.report import Findings
    from moses_rnn.files.streams import Advanced

EPOCH = "SOURCE_DATE_EPOCH"
EPILOG = f"""\b
Example:
  moses-rnn analyse report phrase-table.rnn.gz -o report.html

The page needs no network and no other file. Pictures need pip install 'moses-rnn[report]'; without it the page is made
without them. Of other networks than the RNN Encoder-Decoder, gates and pairs in dispute are left out. Equal tables,
models and options give equal pages but for the date at the end, which {EPOCH} sets. A table of 839 112 lines
takes minutes.
{SORTED}
"""


@command(EPILOG)
def report(request: ReportOptions) -> None:
    """Write a page on a scored PHRASE_TABLE and the network that scored it: the paper's tables and figures of them."""
    folder = choose_model(request.model, request.phrase_table)
    check_inputs(request.phrase_table, folder, request.source_text, request.results)
    from moses_rnn.analysis.report import write_report
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.files.streams import find_input

    path, made = find_input(request.phrase_table), _made()
    inputs = (path, *filter(None, [request.source_text, request.results]))
    with OutputFile(request.output, force=request.force, inputs=inputs) as file:
        findings = _gather(path, folder, request)
        file.commit(write_report(findings, made))
    if findings.missing:
        missing = " and ".join(findings.missing)
        print_err(f"warning: {missing} not found: pip install 'moses-rnn[report]' for all pictures")
    print_out(f"The report is in {request.output}.")


def _gather(path: str, folder: Path, request: ReportOptions) -> Findings:
    from moses_rnn.analysis.report import gather
    from moses_rnn.files.streams import show_nothing
    from moses_rnn.networks.hardware import Compute

    model = open_writer(folder)
    scorer = model.make_scorer(Compute(precision="fp64"))
    with ExitStack() as stack:

        def announce(title: str, unit: str) -> Advanced:
            """Begin a step; one that counts in units has a bar on a terminal."""
            stack.close()
            if sys.stderr.isatty():
                print_err(f"{title} …")
            return stack.enter_context(progress(unit)) if unit else show_nothing

        return gather(open_table(path, request.column, model.architecture.name), model, scorer, request, announce)


def _made() -> str:
    """When, and by which command."""
    given = os.environ.get(EPOCH)
    try:
        when = datetime.fromtimestamp(float(given or time.time()), UTC)
    except (ValueError, OverflowError, OSError) as error:
        expected = "expected seconds since 1970, up to the year 9999"
        raise MosesRnnError(f"{EPOCH}: {expected}, found {shown_value(given)}") from error
    command = shlex.join(["moses-rnn", *sys.argv[1:]])
    return f" on {when:%Y-%m-%d at %H:%M} UTC by: {command}"
