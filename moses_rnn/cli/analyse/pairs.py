"""Those subcommands of moses-rnn-analyse that look at all pairs of a scored phrase table."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from moses_rnn.analysis.grids import PICTURES
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
from moses_rnn.cli.command import CONTEXT, FiniteFloat, put, reports_errors, say
from moses_rnn.errors import InputError

SCATTER_EPILOG = """\b
Example: the correlations; the figure; the figure as numbers:
  moses-rnn-analyse scatter phrase-table.rnn.gz
  moses-rnn-analyse scatter phrase-table.rnn.gz -o scatter.svg
  moses-rnn-analyse scatter phrase-table.rnn.gz -o scatter.csv

Logarithms are natural. Pearson's correlation is that of all pairs, Spearman's that of a sample; pairs whose RNN score
is at the floor, and those with a score of 0, are counted and left out of both. Classes are those of the pair's count.
"""


@click.command(context_settings=CONTEXT, epilog=SCATTER_EPILOG)
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
def scatter(
    phrase_table: str,
    output: str | None,
    sample: int,
    floor: float | None,
    seed: int,
    column: int | None,
    layout: str,
    *,
    force: bool,
    quiet: bool,
) -> None:
    """Compare log p(target|source) and the RNN's log p over all pairs (the paper's Figure 3)."""
    from moses_rnn.analysis.grids import LAYOUTS
    from moses_rnn.analysis.plots import SCATTER_OTHERWISE, check_matplotlib, scatter_file
    from moses_rnn.analysis.scatter import groups_grid
    from moses_rnn.analysis.scatter import scatter as scattered
    from moses_rnn.files.outputs import NoOutput, OutputFile
    from moses_rnn.formats.signatures import read_signature, recorded_floor

    suffix = Path(output).suffix.removeprefix(".").lower() if output else ""
    if output and suffix not in (*PICTURES, "csv"):
        raise click.BadParameter(f"{output!r} does not end in .svg, .png or .csv.", param_hint="--output")
    if suffix in PICTURES:
        check_matplotlib(SCATTER_OTHERWISE)
    table = open_table(phrase_table, column)
    if floor is None:
        floor = recorded_floor(read_signature(table.path) or {}, table.column)
    with OutputFile(output, force=force, inputs=(table.path,)) if output else NoOutput() as file:
        with progress(quiet=quiet) as advanced:
            found = scattered(table, table.lines(advanced), floor=floor, sample_size=sample, seed=seed)
        if output:
            file.commit(scatter_file(found, suffix))
    put(LAYOUTS[layout](groups_grid(found)))


PRUNE_EPILOG = f"""\b
Example: seven tenths of the table; what went is kept as well:
  moses-rnn-analyse prune phrase-table.rnn.gz -o pruned.gz --keep 0.7 --keep-best-words 1 --rejects dropped.gz

Then change path= in the tuned moses.ini; the weights stay. The threshold is one for the whole table; lines that stay
are not changed, and of equally good ones evenly spread ones stay. Most sources of a raw table have a single target:
where those alone are more than what shall stay, more stays, unless --keep-best-words 1 protects single words only,
which longer sources are made of. --by: direct is p(target|source), which is 1 for most sources that were seen once;
both is the mean of the two rank quantiles. {SORTED}
"""


@click.command(context_settings=CONTEXT, epilog=PRUNE_EPILOG)
@click.argument("phrase_table")
@click.option("-o", "--output", required=True, help="The smaller table; compressed by its suffix")
@click.option("--keep", type=FiniteFloat(0, 1, min_open=True), required=True, help="The share of lines that stay")
@click.option("--by", type=click.Choice(["rnn", "direct", "both"]), default="rnn", show_default=True)
@click.option("--rejects", help="Write the lines that go to this file")
@click.option(
    "--keep-best/--no-keep-best", default=True, show_default=True, help="Never drop the best target of a source"
)
@click.option(
    "--keep-best-words", type=click.IntRange(1), help="Of sources of at most so many words only [default: of all]"
)
@column_option
@layout_option
@force_option
@quiet_option
@reports_errors
def prune(
    phrase_table: str,
    output: str,
    keep: float,
    by: str,
    rejects: str | None,
    keep_best_words: int | None,
    column: int | None,
    layout: str,
    *,
    keep_best: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Write a smaller table without the pairs that the RNN, p(target|source) or both find least likely."""
    from moses_rnn.analysis.grids import LAYOUTS
    from moses_rnn.analysis.pruning import as_grid, warnings
    from moses_rnn.analysis.pruning import prune as pruned
    from moses_rnn.files.outputs import OutputFile, refuse_equal
    from moses_rnn.formats.signatures import pruned_signature

    if keep_best_words and not keep_best:
        raise click.UsageError("--keep-best-words and --no-keep-best exclude each other")
    protected = keep_best_words or (math.inf if keep_best else 0)
    table = open_table(phrase_table, column)
    signature = _sound_signature(table.path)
    names = [output, f"{output}.json"] + ([rejects] if rejects else [])
    refuse_equal(names)
    inputs = (table.path, f"{table.path}.json")
    with ExitStack() as stack:
        kept, beside, *others = (stack.enter_context(OutputFile(name, force=force, inputs=inputs)) for name in names)
        dropped = others[0] if others else None
        with progress(quiet=quiet) as advanced:
            found = pruned(table, kept, dropped, keep=keep, by=by, keep_best=protected, advanced=advanced)
        if dropped:
            dropped.commit()
        kept.commit()
        files = {"input": Path(table.path).name, "output": Path(output).name, "file": kept.digest()}
        how = {
            "by": by,
            "column": table.column,
            "keep": keep,
            "keep_best": keep_best,
            "keep_best_words": keep_best_words,
        }
        beside.commit(
            pruned_signature(
                signature, files, found.after.lines, table.scores, {**how, "lines_before": found.before.lines}
            )
        )
    for text in warnings(found):
        say(f"warning: {text}")
    put(LAYOUTS[layout](as_grid(found)))


def _sound_signature(table: str) -> dict[str, Any] | None:
    """What is recorded of a table, if it was recorded of this very file."""
    from moses_rnn.formats.signatures import read_signature
    from moses_rnn.formats.validation import check_signature

    signature = read_signature(table)
    if signature is None:
        if Path(f"{table}.json").exists():
            say(f"warning: {table}.json: is no signature of moses-rnn-score, and is not carried over")
        return None
    try:
        check_signature(table)
    except InputError as error:
        say(f"warning: {error}\n  Its signature is not carried over.")
        return None
    return signature


PAIR_COMMANDS = (scatter, prune)
