"""Those subcommands of moses-rnn-analyse that look at all pairs of a scored phrase table."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.analysis.choices import CRITERIA
from moses_rnn.cli.analyse.options import (
    SORTED,
    column_option,
    force_option,
    layout_option,
    open_table,
    progress,
    quiet_option,
    seed_option,
)
from moses_rnn.cli.command import CONTEXT, FiniteFloat, Program, put, reports_errors, say, takes
from moses_rnn.cli.files import check_inputs
from moses_rnn.cli.signatures import sound_signature
from moses_rnn.formats.grids import PICTURES

if TYPE_CHECKING:
    from moses_rnn.analysis.pruning import Pruned
    from moses_rnn.analysis.scored_table import ScoredTable

SCATTER_EPILOG = """\b
Example: the correlations; the figure; the figure as numbers:
  moses-rnn-analyse scatter phrase-table.rnn.gz
  moses-rnn-analyse scatter phrase-table.rnn.gz -o scatter.svg
  moses-rnn-analyse scatter phrase-table.rnn.gz -o scatter.csv

Logarithms are natural. Pearson's correlation is that of all pairs, Spearman's that of a sample; pairs whose RNN score
is at the floor, and those with a score of 0, are counted and left out of both. Classes are those of the pair's count.
"""


@dataclass(frozen=True, kw_only=True)
class ScatterRequest:
    """What the command line asks for."""

    phrase_table: str
    output: str | None
    sample: int
    floor: float | None
    seed: int
    column: int | None
    layout: str
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=SCATTER_EPILOG)
@click.argument("phrase_table")
@click.option("-o", "--output", help="Draw a .svg or .png (needs matplotlib), or write a .csv of the cells")
@click.option(
    "--sample", type=click.IntRange(2), default=100_000, show_default=True, help="Pairs to draw, of each class"
)
@click.option(
    "--floor",
    type=FiniteFloat(max=0),
    help="Of the RNN's log p, as it was scored with [default: as the signature says, else -87]",
)
@seed_option
@column_option
@layout_option
@force_option
@quiet_option
@reports_errors
@takes(ScatterRequest)
def scatter(request: ScatterRequest) -> None:
    """Compare log p(target|source) and the RNN's log p over all pairs (the paper's Figure 3)."""
    check_inputs(request.phrase_table)
    from moses_rnn.analysis.plots import scatter_file
    from moses_rnn.analysis.scatter import compute_scatter, groups_grid
    from moses_rnn.files.outputs import NoOutput, OutputFile
    from moses_rnn.formats.grids import LAYOUTS
    from moses_rnn.formats.signatures import recorded_floor

    output = request.output
    kind = _figure_kind(output) if output else ""
    table = open_table(request.phrase_table, request.column)
    floor = request.floor
    if floor is None:
        floor = recorded_floor(table.signature, table.column)
    with OutputFile(output, force=request.force, inputs=(table.path,)) if output else NoOutput() as file:
        with progress(quiet=request.quiet) as advanced:
            lines = table.lines(advanced)
            pairs = compute_scatter(table, lines, floor=floor, sample_size=request.sample, seed=request.seed)
        if output:
            file.commit(scatter_file(pairs, kind))
    put(LAYOUTS[request.layout](groups_grid(pairs)))


def _figure_kind(output: str) -> str:
    """The kind of file that an output's suffix asks for; refused before the long work if it cannot be made."""
    from moses_rnn.analysis.plots import SCATTER_OTHERWISE, check_matplotlib

    kind = Path(output).suffix.removeprefix(".").lower()
    if kind not in (*PICTURES, "csv"):
        raise click.BadParameter(f"{output!r} does not end in .svg, .png or .csv.", param_hint="--output")
    if kind in PICTURES:
        check_matplotlib(SCATTER_OTHERWISE)
    return kind


PRUNE_EPILOG = f"""\b
Example: keep seven tenths of the table, and the lines that go in a file of their own:
  moses-rnn-analyse prune phrase-table.rnn.gz -o pruned.gz --keep 0.7 --keep-best-words 1 --rejects dropped.gz

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
    output: str
    keep: float
    by: str
    rejects: str | None
    keep_best: bool
    keep_best_words: int | None
    column: int | None
    layout: str
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=PRUNE_EPILOG)
@click.argument("phrase_table")
@click.option("-o", "--output", required=True, help="The smaller table; compressed by its suffix")
@click.option("--keep", type=FiniteFloat(0, 1, min_open=True), required=True, help="The share of lines that stay")
@click.option("--by", type=click.Choice(CRITERIA), default="rnn", show_default=True)
@click.option("--rejects", help="Write the dropped lines to this file")
@click.option(
    "--keep-best/--no-keep-best", default=True, show_default=True, help="Never drop the best target of a source"
)
@click.option("--keep-best-words", type=click.IntRange(1), help="Only of sources of at most N words [default: of all]")
@column_option
@layout_option
@force_option
@quiet_option
@reports_errors
@takes(PruneRequest)
def prune(request: PruneRequest) -> None:
    """Write a smaller table without the pairs that the RNN, p(target|source) or both find least likely."""
    from moses_rnn.analysis.pruning import as_grid, warnings
    from moses_rnn.formats.grids import LAYOUTS

    if request.keep_best_words and not request.keep_best:
        raise click.UsageError("--keep-best-words and --no-keep-best exclude each other")
    table = open_table(request.phrase_table, request.column, by_table=request.by != "rnn")
    pruned = _write_pruned(table, request)
    for text in warnings(pruned):
        say(f"warning: {text}")
    put(LAYOUTS[request.layout](as_grid(pruned)))


def _write_pruned(table: ScoredTable, request: PruneRequest) -> Pruned:
    """Write the smaller table, its signature, and the lines that go: all of them or none."""
    from moses_rnn.analysis.pruning import prune_table
    from moses_rnn.files.outputs import OutputFile, commit_all, refuse_equal

    signature = sound_signature(table.path)
    names = [request.output, f"{request.output}.json"] + ([request.rejects] if request.rejects else [])
    refuse_equal(names)
    inputs = (table.path, f"{table.path}.json")
    protected = request.keep_best_words or (math.inf if request.keep_best else 0)
    with ExitStack() as stack:
        kept, beside, *others = (
            stack.enter_context(OutputFile(name, force=request.force, inputs=inputs)) for name in names
        )
        dropped = others[0] if others else None
        with progress(quiet=request.quiet) as advanced:
            pruned = prune_table(
                table, kept, dropped, keep=request.keep, by=request.by, keep_best=protected, advanced=advanced
            )
        beside.append(_signature(signature, table, pruned, kept.digest(), request))
        commit_all([*others, kept, beside])
    return pruned


def _signature(
    signature: dict[str, Any] | None, table: ScoredTable, pruned: Pruned, digest: dict[str, Any], request: PruneRequest
) -> bytes:
    """What is recorded of the smaller table, whose own bytes have the `digest`."""
    from moses_rnn.formats.signatures import pruned_signature

    files = {"input": Path(table.path).name, "output": Path(request.output).name, "file": digest}
    how = {
        "by": request.by,
        "column": table.column,
        "keep": request.keep,
        "keep_best": request.keep_best,
        "keep_best_words": request.keep_best_words,
        "lines_before": pruned.before.lines,
    }
    return pruned_signature(signature, files, pruned.after.lines, table.scores, how)


PAIR_COMMANDS = (scatter, prune)
