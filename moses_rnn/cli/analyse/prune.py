"""moses-rnn analyse prune: a smaller table."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from moses_rnn.analysis.choices import CRITERIA, Column
from moses_rnn.cli.analyse.options import (
    SORTED,
    open_table,
    progress,
)
from moses_rnn.cli.command import command, print_err, print_out
from moses_rnn.cli.options import sound_signature
from moses_rnn.options import Force, Option

if TYPE_CHECKING:
    from moses_rnn.analysis.pruning import Pruned
    from moses_rnn.analysis.scored_table import ScoredTable

PRUNE_EPILOG = f"""\b
Example: keep seven tenths of the table:
  moses-rnn analyse prune phrase-table.rnn.gz -o pruned.gz --keep 0.7 --keep-best-words 1

Then change path= in the tuned moses.ini; the weights stay. The threshold is one for the whole table; lines that stay
are not changed, and of equally good ones evenly spread ones stay. Most sources of a raw table have a single target:
where those alone are more than --keep allows, more stays, unless --keep-best-words 1 protects single words only,
which longer sources are made of. --by: direct is p(target|source), which is 1 for most sources that were seen once;
both is the mean of the two rank quantiles. {SORTED}
"""


@dataclass(frozen=True, kw_only=True)
class PruneRequest:
    """What the command line asks for."""

    phrase_table: str
    output: Annotated[str, Option("The smaller table; compressed by its suffix", "-o --output")]
    keep: Annotated[float, Option("The share of lines that stay", min=0, max=1, min_open=True)]
    by: Annotated[str, Option(choices=CRITERIA)] = "rnn"
    keep_best_words: Annotated[
        int | None,
        Option(
            "Never drop the best target of a source of at most N words; 0: any may go [default: keep it of all]", min=0
        ),
    ] = None
    column: Column = None
    force: Force = False


@command(PRUNE_EPILOG)
def prune(request: PruneRequest) -> None:
    """Write a smaller table without the pairs that the RNN, p(target|source) or both find least likely."""
    from moses_rnn.analysis.grids import as_text
    from moses_rnn.analysis.pruning import as_grid, warnings

    table = open_table(request.phrase_table, request.column, by_table=request.by != "rnn")
    pruned = _write_pruned(table, request)
    for text in warnings(pruned):
        print_err(f"warning: {text}")
    print_out(as_text(as_grid(pruned)))


def _write_pruned(table: ScoredTable, request: PruneRequest) -> Pruned:
    """Write the smaller table and its signature: both or none."""
    from moses_rnn.analysis.pruning import prune_table
    from moses_rnn.files.outputs import OutputFile, commit_all

    signature = sound_signature(table.path)
    names = [request.output, f"{request.output}.json"]
    inputs = (table.path, f"{table.path}.json")
    protected = math.inf if request.keep_best_words is None else request.keep_best_words
    with ExitStack() as stack:
        kept, beside = (stack.enter_context(OutputFile(name, force=request.force, inputs=inputs)) for name in names)
        with progress() as advanced:
            pruned = prune_table(
                table, kept.append, keep=request.keep, by=request.by, keep_best=protected, advanced=advanced
            )
        beside.append(_signature(signature, table, pruned, kept.digest(), request))
        commit_all([kept, beside])
    return pruned


def _signature(
    signature: dict[str, Any] | None, table: ScoredTable, pruned: Pruned, digest: dict[str, Any], request: PruneRequest
) -> bytes:
    """What is recorded of the smaller table, whose own bytes have the `digest`."""
    from moses_rnn.table.signatures import changed_signature

    files = {"input": Path(table.path).name, "output": Path(request.output).name, "file": digest}
    shape = {"lines": pruned.lines[1], "columns": table.scores}
    how = {
        "by": request.by,
        "column": table.column,
        "keep": request.keep,
        "keep_best": request.keep_best_words != 0,
        "keep_best_words": request.keep_best_words or None,
        "lines_before": pruned.lines[0],
    }
    return changed_signature(signature, {**files, **shape}, "pruned", how)
