"""moses-rnn-merge: the shards of a scored table in, the table out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from moses_rnn.cli.command import (
    CONTEXT,
    FiniteFloat,
    Program,
    StopRequest,
    put,
    reports_errors,
    say,
    shows_version,
    takes,
)
from moses_rnn.cli.files import check_inputs
from moses_rnn.cli.table_options import relative_paths_option

EPILOG = """\b
Example: four runs, on as many machines, then one table and the ini that mert-moses.pl tunes:
  moses-rnn-score phrase-table.gz --shard 1/4   # and 2/4 … elsewhere
  moses-rnn-merge phrase-table.rnn.gz phrase-table.rnn.?-of-4.gz --moses-ini moses.ini

Each shard's signature says which bytes of the table it holds, what scored them, and the hash of its file: a shard that
is missing, doubled, torn or of another model is refused and named. Members are laid end to end, nothing is compressed
again. After an interruption, kill -9 included, --resume goes on. Exit codes as moses-rnn-score's.
"""


@dataclass(frozen=True, kw_only=True)
class Merging:
    """The command's arguments and options."""

    new_table: str
    shards: tuple[str, ...]
    moses_ini: str | None
    output_ini: str | None
    relative_paths: bool
    feature: str | None
    weight: float | None
    resume: bool
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("new_table")
@click.argument("shards", nargs=-1, required=True)
@click.option("--moses-ini", help="Also write a moses.ini with the new table, made from this one")
@click.option("--output-ini", help="Where to [default: moses.rnn.ini beside the new table]")
@relative_paths_option
@click.option("--feature", help="Which phrase dictionary of the ini is meant, if several could be")
@click.option("--weight", type=FiniteFloat(), help="Starting weight of each new column")
@click.option("--resume", is_flag=True, help="Go on with what an interrupted merge left")
@click.option("--force", is_flag=True, help="Replace existing outputs")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr")
@shows_version
@reports_errors
@takes(Merging)
def main(given: Merging) -> None:
    """Make NEW_TABLE of the SHARDS that moses-rnn-score --shard has written, given in any order."""
    of_ini = given.output_ini or given.relative_paths or given.feature or given.weight is not None
    if of_ini and not given.moses_ini:
        idle = "--output-ini, --relative-paths, --feature and --weight"
        raise click.UsageError(f"{idle} need --moses-ini, the ini to extend")
    check_inputs(*given.shards, given.moses_ini)
    from moses_rnn.cli.progress import Display
    from moses_rnn.files.streams import existing_input
    from moses_rnn.scoring.merging import MergeRequest, merge
    from moses_rnn.scoring.request import IniRequest

    ini = None
    if given.moses_ini:
        new = given.output_ini or str(Path(given.new_table).parent / (Path(given.moses_ini).stem + ".rnn.ini"))
        ini = IniRequest(existing_input(given.moses_ini), new, given.feature, given.weight, given.relative_paths)
    request = MergeRequest(given.shards, given.new_table, ini, force=given.force, resume=given.resume)
    display = Display("bytes", quiet=given.quiet)
    try:
        result = merge(request, display.show, StopRequest())
    finally:
        display.close()
    if not given.quiet:
        left_out = f", {result.rejected:,} left out" if result.rejected else ""
        say(f"{result.lines:,} lines of {len(given.shards):,} shards{left_out}: {given.new_table}")
        say(f"signature: {given.new_table}.json")
    for text in result.warnings:
        say(f"warning: {text}")
    put("[feature]\n{}\n\n[weight]\n{}".format(*result.ini.lines))
