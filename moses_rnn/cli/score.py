"""moses-rnn-score: a phrase table in, the same table with the network's score out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    FiniteFloat,
    Program,
    StopRequest,
    check_inputs,
    choose_device,
    model_option,
    print_err,
    print_json,
    print_out,
    reports_errors,
    resume_option,
    section,
    shows_version,
    takes,
    threads_option,
)
from moses_rnn.cli.options import json_option, long_option, model_beside, pairs_option, pool_options
from moses_rnn.cli.score_pairs import refuse_options_of_tables, score_pairs
from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.score.options import ScoringOptions
from moses_rnn.table.phrase_table import DEFAULT_FLOOR

if TYPE_CHECKING:
    from moses_rnn.score.score import ScoringResult


EPILOG = f"""\b
Example: score a table with the model beside it, and make the ini that mert-moses.pl tunes:
  moses-rnn-score phrase-table.gz --moses-ini moses.ini
  mert-moses.pl $PWD/dev.src $PWD/dev.ref $MOSES_ROOT/bin/moses $PWD/moses.rnn.ini --mertdir $MOSES_ROOT/bin \\
      --rootdir $MOSES_ROOT/scripts --working-dir $PWD/mert-rnn
Three networks that differ in their --seed, as one column:
  moses-rnn-score phrase-table.gz --model seed-1 --model seed-2 --model seed-3

The column holds p(target | source) of the network, because Moses takes the logarithm itself: inside the decoder the
feature's value is the natural log p, with the end symbols of both sides included. Everything else in the table stays
byte for byte as it was. After an interruption, kill -9 included, --resume continues. Exit codes: 0 done, 1 failure,
2 wrong command line, 3 table, model or ini rejected, {STOPPED} stopped and resumable.
"""


@dataclass(frozen=True, kw_only=True)
class Scoring(ScoringOptions):
    """What the command line asks for beside that."""

    out: str | None
    layout: str
    estimate: bool
    as_json: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.argument("new_table", required=False)
@model_option(
    "models",
    multiple=True,
    text="Model folder; repeat it for several together, see --combine [default: the one beside the table]",
)
@click.option("-o", "--output", "out", help="The same as NEW_TABLE; - is stdout [default: PHRASE_TABLE's + .rnn.gz]")
@click.option("--moses-ini", help="Also write a moses.ini that loads the new table, made from this one")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, or several: cuda:0,cuda:1")
@threads_option
@resume_option
@click.option("--force", is_flag=True, help="Replace existing outputs")
@click.option("--estimate", is_flag=True, help="Print how long scoring will take here; write nothing")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr")
@shows_version
@section(
    "Columns",
    click.option(
        "--inverse-model",
        "inverse_models",
        type=click.Path(path_type=Path),
        multiple=True,
        help="Add p(source | target) by a model of moses-rnn-train --inverse; repeat it for several",
    ),
    click.option(
        "--combine",
        type=click.Choice(["mean-log", "columns"]),
        help="What several models of one direction add: one column, the mean of their log p, or a column each "
        "[default: mean-log]",
    ),
    click.option("--word-penalty", is_flag=True, help="Add exp(-n) for n target words outside the shortlist"),
    click.option(
        "--log",
        "logarithms",
        is_flag=True,
        help="Write natural logs, for other programs than Moses; excludes --moses-ini",
    ),
    click.option(
        "--floor",
        type=FiniteFloat(max=0),
        default=DEFAULT_FLOOR,
        show_default=True,
        help="Lowest log p that is written; float32, and so Moses, loses precision below",
    ),
    click.option(
        "--output-ini", help="Where the ini of --moses-ini goes [default: moses.rnn.ini beside the new table]"
    ),
)
@section(
    "Unusual tables and models",
    pairs_option,
    click.option(
        "--on-bad-line",
        type=click.Choice(["error", "skip"]),
        default="error",
        show_default=True,
        help="A line that is not a phrase pair ends the run, or goes to OUTPUT.rejects",
    ),
    long_option,
    click.option(
        "--allow-misfit",
        is_flag=True,
        help="Score with a model that has learned nothing, or knows hardly a word of the table, which is refused "
        "otherwise",
    ),
    click.option("--again", is_flag=True, help="Score a table that has such a column already"),
)
@section(
    "Run",
    click.option(
        "--precision",
        type=click.Choice(["auto", "fp32", "bf16"]),
        help="Precision of matrix products; bf16 is faster where the processor has it; auto: bf16 there for large "
        "networks [default: fp32]",
    ),
    pool_options,
    json_option,
)
@reports_errors
@takes(Scoring)
def main(given: Scoring) -> None:
    """Add log p(target | source) of an RNN Encoder-Decoder to a Moses PHRASE_TABLE (- is stdin).

    Both tables may be named without .gz, as Moses's experiment.perl names them.
    """
    if given.new_table and given.out:
        raise click.UsageError("NEW_TABLE and --output are the same: give one")
    given = replace(given, new_table=given.new_table or given.out)
    if given.layout == "tsv":
        refuse_options_of_tables(click.get_current_context())
    _check_options(given)
    given = replace(given, models=given.models or (model_beside(given.table),))
    check_inputs(given.table, *given.models, *given.inverse_models, given.moses_ini)
    if given.layout == "tsv":
        score_pairs(given)
        return
    from moses_rnn.cli.progress import progress
    from moses_rnn.score.score import score

    given = replace(given, device=",".join(map(choose_device, given.device.split(","))))
    if given.estimate:
        from moses_rnn.score.estimate import estimate

        print_out(str(estimate(given)))
        return
    with progress("lines", quiet=given.quiet) as show:
        result = score(given, show, StopRequest())
    lines = [] if given.quiet or given.as_json else _summary(given, result)
    for line in [*lines, *(f"warning: {text}" for text in result.warnings)]:
        print_err(line)
    if given.as_json:
        print_json(_record(given, result))
    elif not given.logarithms and not given.shard:
        ini_lines = f"[feature]\n{result.feature_line}\n\n[weight]\n{result.weight_line}"
        (print_err if given.output == STANDARD_STREAM else print_out)(ini_lines)


def _check_options(given: Scoring) -> None:
    """Refuse options that contradict each other or would do nothing."""
    to_stdout = given.output == STANDARD_STREAM
    if given.as_json and (to_stdout or given.estimate):
        raise click.UsageError("--json is a summary on stdout: it cannot go with a table there, nor with --estimate")
    if given.shard and given.moses_ini:
        raise click.UsageError("--moses-ini is for whole tables: merge the shards, then run moses-rnn ini")
    if to_stdout and (given.shard or given.on_bad_line == "skip"):
        what, beside = ("--shard", "its signature goes") if given.shard else ("--on-bad-line skip", "the bad lines go")
        raise click.UsageError(f"{what} needs an --output that is a file, beside which {beside}")
    if given.output_ini and not given.moses_ini:
        raise click.UsageError("--output-ini needs --moses-ini, the ini to extend")
    if given.moses_ini and (given.logarithms or to_stdout):
        what = "--log" if given.logarithms else "a table on stdout"
        raise click.UsageError(f"--moses-ini cannot go with {what}: Moses would not load such a table")
    if given.combine and max(len(given.models), len(given.inverse_models)) < 2:
        raise click.UsageError("--combine needs several models: repeat --model or --inverse-model")
    if STANDARD_STREAM in (given.moses_ini, given.output_ini):
        raise click.UsageError("an ini is read from and written to a file, not a standard stream")


def _summary(given: Scoring, result: ScoringResult) -> Iterator[str]:
    """What was written where, by what, and how far the scores go."""
    from moses_rnn.score.checks import shares

    counts = result.counts
    left_out = f", {counts.rejected:,} left out" if counts.rejected else " in and out"
    yield f"{counts.lines:,} lines{left_out}: {given.output}"
    if given.output != STANDARD_STREAM:
        yield f"signature: {given.output}.json"
    if given.new_ini:
        yield f"ini: {given.new_ini}"
    yield f"computed by: {result.computed_by}"
    for i, name in enumerate(result.column_names):
        yield f"{name}: log values from {counts.lowest[i]:.4g} to {counts.highest[i]:.4g}"
    for name, unknown, floored in shares(counts, result.column_names):
        yield f"{name}: {unknown:.1%} of the pairs have <unk>, {floored:.1%} of the scores were raised to the floor"


def _record(given: Scoring, result: ScoringResult) -> Mapping[str, Any]:
    """The same as JSON, see docs/scoring.md."""
    from moses_rnn.score.checks import shares

    counts = result.counts
    columns = [
        {
            "name": name,
            "lowest": float(counts.lowest[i]),
            "highest": float(counts.highest[i]),
            "unknown_share": float(unknown),
            "floored_share": float(floored),
        }
        for i, (name, unknown, floored) in enumerate(shares(counts, result.column_names) if counts.lines else ())
    ]
    return {
        "table": given.table,
        "output": given.output,
        "signature": None if given.output == STANDARD_STREAM else f"{given.output}.json",
        "ini": given.new_ini,
        "lines": counts.lines,
        "rejected": counts.rejected,
        "computed_by": result.computed_by,
        "columns": columns,
        "feature": result.feature_line,
        "weight": result.weight_line,
        "warnings": list(result.warnings),
    }
