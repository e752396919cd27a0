"""moses-rnn merge: the shards of a scored table in, the table out."""

from __future__ import annotations

from dataclasses import dataclass

import click

from moses_rnn.cli.command import (
    CONTEXT,
    Program,
    StopRequest,
    check_inputs,
    print_err,
    print_out,
    reports_errors,
    takes,
)

EPILOG = """\b
Example: four runs, on as many machines, then one table and the ini that mert-moses.pl tunes:
  moses-rnn-score phrase-table.gz --shard 1/4   # and 2/4 … elsewhere
  moses-rnn merge phrase-table.rnn.gz phrase-table.rnn.?-of-4.gz
  moses-rnn ini moses.ini --table phrase-table.rnn.gz --absolute-paths

Each shard's signature says what scored it, and the hash of its file: a shard that is missing, doubled, torn or of
another model is refused and named. Members are laid end to end, nothing is compressed again. An interrupted merge, kill
-9 included, leaves nothing under the output's name. Exit codes are those of moses-rnn-score.
"""


@dataclass(frozen=True, kw_only=True)
class Merging:
    """The command's arguments and options."""

    new_table: str
    shards: tuple[str, ...]
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("new_table")
@click.argument("shards", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Replace existing outputs")
@reports_errors
@takes(Merging)
def main(given: Merging) -> None:
    """Make NEW_TABLE of the SHARDS that moses-rnn-score --shard has written, given in any order."""
    check_inputs(*given.shards)
    from moses_rnn.cli.progress import Display
    from moses_rnn.score.merging import merge

    display = Display("bytes")
    try:
        result = merge(
            given.shards, given.new_table, force=given.force, advanced=display.show, should_stop=StopRequest()
        )
    finally:
        display.close()
    left_out = f", {result.rejected:,} left out" if result.rejected else ""
    print_err(f"{result.lines:,} lines of {len(given.shards):,} shards{left_out}: {given.new_table}")
    print_err(f"signature: {given.new_table}.json")
    for text in result.warnings:
        print_err(f"warning: {text}")
    print_out("[feature]\n{}\n\n[weight]\n{}".format(*result.ini.lines))
