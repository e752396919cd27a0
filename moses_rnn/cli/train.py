"""moses-rnn-train: a phrase table in, a model folder out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    Program,
    check_inputs,
    model_option,
    print_json,
    print_out,
    reports_errors,
    section,
    shows_version,
)
from moses_rnn.cli.options import default_model, factor_options, json_option, pairs_option, training_record
from moses_rnn.cli.training import (
    check_options,
    learning_options,
    limit_options,
    run_options,
    settings,
    shown_presets,
    value_option,
)
from moses_rnn.errors import MosesRnnError
from moses_rnn.table.tab_separated import LAYOUTS
from moses_rnn.training.networks import SHARES_OF_UNIGRAMS, Options, networks_of

if TYPE_CHECKING:
    from moses_rnn.training.train import Outcome

FAR_BELOW = 0.8  # a model that costs more than this share of what a unigram model costs has hardly begun to learn

EPILOG = f"""\b
Example: half an hour on a laptop, then score the same table:
  moses-rnn-train phrase-table.gz --preset small --max-minutes 30
  moses-rnn-score phrase-table.gz
On all GPUs of a machine, started again when a process dies (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --max-restarts 3 --no-python moses-rnn-train phrase-table.gz

{shown_presets("encdec")}
The model learns log p(target | source); both sides' end symbols are part of it. Run the same command again after any
interruption, kill -9 included, and it continues where it was. Exit codes: 0 done, 1 failure, 2 wrong command line,
3 table or model rejected, {STOPPED} stopped and resumable.
"""


SETTINGS = (
    "variant summary first_step decoder_reset cell encoder_reset leaky_share forget_bias slots "
    "first_size second_size corrupt freeze_embeddings sampled_words max_length maxout_size "
    "output_rank held_out compiled"
)


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG, params=settings(SETTINGS))
@click.argument("phrase_table")
@model_option(text="Model folder [default: PHRASE_TABLE's name + .rnn-model]")
@click.option(
    "--architecture",
    type=click.Choice(networks_of("table")),
    default="encdec",
    show_default=True,
    help="The RNN Encoder-Decoder, or for comparison a network of phrases of 7 words at most: a CSTM, or a ranker, "
    "whose score is no log-probability",
)
@click.option("--inverse", is_flag=True, help="Learn p(source | target) instead, for moses-rnn-score --inverse-model")
@limit_options("distinct pairs")
@click.option(
    "--estimate", is_flag=True, help="Print how long training will take here and what cost to expect; train nothing"
)
@section(
    "Network",
    value_option("--hidden-size", least=1, text="Hidden units H"),
    value_option("--embedding-size", text="Embedding dimensions E"),
    value_option("--shortlist", text="Words that are known on each side; others are <unk>"),
    click.option(
        "--source-embeddings", metavar="FILE", help="Source words begin as this file in word2vec's text has them"
    ),
    click.option(
        "--target-embeddings", metavar="FILE", help="Target words begin as this file in word2vec's text has them"
    ),
)
@learning_options("Phrase pairs")
@section("Phrase table", pairs_option, factor_options)
@run_options(json_option, shows_version)
@reports_errors
def main(*, estimate: bool, as_json: bool, **options: Any) -> None:
    """Train an RNN Encoder-Decoder on the phrase pairs of a Moses PHRASE_TABLE (plain or .gz)."""
    if estimate and as_json:
        raise click.UsageError("--json is the summary of a training: it cannot go with --estimate")
    check_options(options)
    table = options["phrase_table"]
    check_inputs(table, options["source_embeddings"], options["target_embeddings"])
    from moses_rnn.cli.training import run_training, say_next

    if estimate:
        _print_estimate(options)
        return
    options["model"] = folder = options["model"] or default_model(table, inverse=options["inverse"])
    outcome = run_training(options, _warning)
    if outcome.progress.best < (outcome.baseline_cost or math.inf):  # else it will be refused
        say_next(*_next_words(options), quiet=options["quiet"])
    if as_json:
        print_json(training_record(outcome, folder, _warning(outcome)))


def _next_words(options: Options) -> list[str | Path]:
    """The command that scores, or before it the one that trains the direction which no table goes without."""
    table, inverse = options["phrase_table"], options["inverse"]
    layout: list[str | Path] = ["--format", options["layout"]] if options["layout"] != LAYOUTS[0] else []
    if inverse and not default_model(table).is_dir():
        return ["moses-rnn-train", table, *layout]
    return ["moses-rnn-score", table, "--inverse-model" if inverse else "--model", options["model"], *layout]


def _warning(outcome: Outcome) -> str:
    """What is wrong with the model; empty if nothing is."""
    best, rival, measure = outcome.progress.best, outcome.baseline_cost or math.inf, outcome.measure
    if best >= rival:
        return (
            f"{outcome.verdict}: moses-rnn-score will refuse this model; train longer, or with another --learning-rate"
        )
    if best > FAR_BELOW * rival:
        return f"{best:.2f} {measure.unit} is not far below {measure.rival}'s {rival:.2f}: train longer before scoring"
    return ""


def _print_estimate(options: Options) -> None:
    """How long, and how good if there is something to compare with."""
    from moses_rnn.cli.progress import duration
    from moses_rnn.cli.training import TrainingDisplay, of_rank, stop_request, together
    from moses_rnn.training.train import estimate_training

    with together() as ranks:
        if ranks.size > 1:
            raise MosesRnnError(f"--estimate: expected one process, found {ranks.size}")
        display = TrainingDisplay(quiet=options["quiet"])
        expected = estimate_training(of_rank(options, ranks), display, stop_request(ranks))
    passes = f"{expected.passes:.1f} passes in the time or epochs given" if expected.passes < math.inf else "no limit"
    print_out(
        f"{expected.pairs_per_second:,.0f} pairs/s here: {duration(expected.seconds_of_a_pass)} for each pass over "
        f"{expected.pairs:,} pairs; {passes}",
    )
    if options["architecture"] == "encdec":
        reached = ", ".join(f"{share:.0%} after {passes:g}" for passes, share in SHARES_OF_UNIGRAMS)
        print_out(
            f"For comparison: on Multi30k (828,000 pairs) --preset small cost, of what a unigram model costs, "
            f"{reached} passes",
        )
