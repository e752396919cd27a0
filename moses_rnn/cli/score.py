"""moses-rnn-score: a phrase table in, the same table with the network's score out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    FiniteFloat,
    Program,
    StopRequest,
    choose_device,
    model_option,
    put,
    reports_errors,
    resume_option,
    say,
    section,
    shows_version,
    takes,
    threads_option,
)
from moses_rnn.cli.files import check_inputs
from moses_rnn.cli.pool_options import PoolOptions, pool_options, with_shard
from moses_rnn.cli.scoring_display import show_ini_lines, summary
from moses_rnn.cli.summaries import check_json, json_option, put_json, scoring_record
from moses_rnn.cli.table_options import (
    default_output,
    long_option,
    model_beside,
    pairs_option,
)
from moses_rnn.files.streams import STANDARD_STREAM, existing_input, is_gzip
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR

if TYPE_CHECKING:
    from moses_rnn.moses.ini_editing import IniEdit
    from moses_rnn.scoring.request import ScoringRequest


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
class Scoring(PoolOptions):
    """The command's arguments and options."""

    phrase_table: str
    new_table: str | None
    layout: str
    models: tuple[Path, ...]
    output: str | None
    moses_ini: str | None
    output_ini: str | None
    inverse_models: tuple[Path, ...]
    combine: str | None
    word_penalty: bool
    logarithms: bool
    floor: float
    device: str
    precision: str
    long_phrases: str
    threads: int | None
    resume: bool
    on_bad_line: str
    allow_misfit: bool
    again: bool
    force: bool
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
@click.option("-o", "--output", help="The same as NEW_TABLE; - is stdout [default: PHRASE_TABLE's name + .rnn.gz]")
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
    if given.layout == "tsv":
        _score_pairs(given)
        return
    request = _request(given)
    from moses_rnn.cli.progress import Display
    from moses_rnn.scoring.run import score

    if given.estimate:
        from moses_rnn.scoring.estimate import estimate

        put(str(estimate(request)))
        return
    display = Display("lines", quiet=given.quiet)
    try:
        result = score(request, display.show, StopRequest())
    finally:
        display.close()
    lines = [] if given.quiet or given.as_json else summary(request, result)
    for line in [*lines, *(f"warning: {text}" for text in result.warnings)]:
        say(line)
    if given.as_json:
        put_json(scoring_record(request, result))
    elif not request.columns.logarithms and not request.shard:
        show_ini_lines(result, on_stderr=request.output == "-")


def _score_pairs(given: Scoring) -> None:
    from moses_rnn.cli.score_pairs import refuse_options_of_tables, score_pairs

    refuse_options_of_tables(click.get_current_context())
    output = _output(given, table := existing_input(given.phrase_table))
    check_json(given.as_json, output)
    models = given.models or (model_beside(table),)
    check_inputs(table, *models)
    score_pairs(given, table, output, models)


def _request(given: Scoring) -> ScoringRequest:
    table = existing_input(given.phrase_table)
    output = _output(given, table)
    _check_options(given, output)
    models = given.models or (model_beside(table),)
    check_inputs(table, *models, *given.inverse_models, given.moses_ini)
    from moses_rnn.scoring.request import ScoringRequest, rejects_of
    from moses_rnn.scoring.workers import ColumnOptions

    devices = tuple(choose_device(device) for device in given.device.split(","))
    return ScoringRequest(
        table=table,
        output=output,
        models=models,
        inverse_models=given.inverse_models,
        word_penalty=given.word_penalty,
        columns=ColumnOptions(given.floor, given.logarithms, averaged=given.combine != "columns"),
        ini=_ini(given, output),
        shard=given.shard,
        devices=devices,
        ray=given.ray,
        threads=given.threads,
        precision=given.precision,
        floors_long=given.long_phrases == "floor",
        force=given.force,
        resume=given.resume,
        allow_misfit=given.allow_misfit,
        again=given.again,
        rejects=rejects_of(output) if given.on_bad_line == "skip" else None,
    )


def _output(given: Scoring, table: str) -> str:
    """Where the new table goes; with .gz where the old one was named without."""
    if given.new_table and given.output:
        raise click.UsageError("NEW_TABLE and --output are the same: give one")
    if given.new_table:
        was_stem = table == given.phrase_table + ".gz"
        return given.new_table + ".gz" if was_stem and not is_gzip(given.new_table) else given.new_table
    if given.output or table == STANDARD_STREAM:
        return given.output or STANDARD_STREAM
    return with_shard(default_output(table), given.shard)


def _ini(given: Scoring, output: str) -> IniEdit | None:
    from moses_rnn.moses.ini_editing import IniEdit

    if not given.moses_ini:
        return None
    new = given.output_ini or str(Path(output).parent / (Path(given.moses_ini).stem + ".rnn.ini"))
    return IniEdit(existing_input(given.moses_ini), new, output, absolute_paths=True)


def _check_options(given: Scoring, output: str) -> None:
    """Refuse options that contradict each other or would do nothing."""
    check_json(given.as_json, output, estimate=given.estimate)
    _check_shard(given, output)
    if given.output_ini and not given.moses_ini:
        raise click.UsageError("--output-ini needs --moses-ini, the ini to extend")
    if given.moses_ini and (given.logarithms or output == "-"):
        what = "--log" if given.logarithms else "a table on stdout"
        raise click.UsageError(f"--moses-ini cannot go with {what}: Moses would not load such a table")
    if given.combine and max(len(given.models), len(given.inverse_models)) < 2:
        raise click.UsageError("--combine needs several models: repeat --model or --inverse-model")
    if "-" in (given.moses_ini, given.output_ini):
        raise click.UsageError("an ini is read from and written to a file, not a standard stream")
    if given.on_bad_line == "skip" and output == "-":
        raise click.UsageError("--on-bad-line skip needs an --output, beside which the bad lines go")


def _check_shard(given: Scoring, output: str) -> None:
    if given.shard and given.moses_ini:
        raise click.UsageError("--moses-ini is for whole tables: merge the shards, then run moses-rnn ini")
    if given.shard and output == "-":
        raise click.UsageError("--shard needs an --output that is a file: by its signature moses-rnn merge knows it")
