"""moses-rnn merge: the shards of a scored table in, the table out."""

from __future__ import annotations

from moses_rnn.cli.command import StopRequest, check_inputs, command, print_err, print_out, warn
from moses_rnn.errors import number_of
from moses_rnn.options import AllowMisfit, Force

EPILOG = """\b
Example: four runs on four machines, then one table and the ini that mert-moses.pl tunes:
  moses-rnn-score phrase-table.gz --shard 1/4   # and 2/4 … elsewhere
  moses-rnn merge phrase-table.rnn.gz phrase-table.rnn.?-of-4.gz
  moses-rnn ini moses.ini --table phrase-table.rnn.gz --absolute-paths

Each shard's signature records what scored it and the hash of its file. If a shard is missing, duplicated, damaged or
from another model, the merge stops and names it. It also stops if the model does not fit the whole table. It joins the
shards without compressing them again. A merge that is interrupted, even by kill -9, leaves nothing under the output's
name. Exit codes are those of moses-rnn-score; after 75, the same command starts over.
"""


@command(EPILOG)
def main(new_table: str, shards: tuple[str, ...], *, force: Force = False, allow_misfit: AllowMisfit = False) -> None:
    """Make NEW_TABLE from the SHARDS that moses-rnn-score --shard wrote, in any order."""
    check_inputs(*shards)
    stop = StopRequest()
    from moses_rnn.cli.progress import progress
    from moses_rnn.score.merging import merge

    with progress("bytes") as advanced:
        result = merge(
            shards,
            new_table,
            force=force,
            allow_misfit=allow_misfit,
            advanced=advanced,
            should_stop=stop,
        )
    counts = result.counts
    left_out = f", {counts.rejected:,} left out" if counts.rejected else ""
    print_err(f"{number_of(counts.lines, 'line')} of {number_of(len(shards), 'shard')}{left_out}: {new_table}")
    print_err(f"signature: {new_table}.json")
    warn(*result.warnings)
    print_out("[feature]\n{}\n\n[weight]\n{}".format(*result.ini.lines))
