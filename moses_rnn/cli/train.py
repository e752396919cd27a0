"""moses-rnn-train: a phrase table in, a model folder out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, STOPPED, FiniteFloat, Program, put, reports_errors, shows_version, takes
from moses_rnn.cli.files import check_inputs
from moses_rnn.cli.summaries import json_option, put_json, training_record
from moses_rnn.cli.table_options import default_model, factor_options, pairs_option
from moses_rnn.cli.training_options import learning_options, preset_option, run_options, shown_presets
from moses_rnn.cli.training_ranks import of_rank, stop_request, together
from moses_rnn.errors import MosesRnnError
from moses_rnn.formats.tab_separated import LAYOUTS
from moses_rnn.training.architectures import ARCHITECTURES, CORRUPT, ENCDEC, check_network
from moses_rnn.training.cells import CELLS, FORGET_BIAS, LEAKY_SHARE
from moses_rnn.training.config import PRESETS, SHARES_OF_UNIGRAMS, PhraseModelRequest

if TYPE_CHECKING:
    from moses_rnn.training.estimate import Estimate
    from moses_rnn.training.ranks import Ranks
    from moses_rnn.training.run import Outcome

FAR_BELOW = 0.8  # a model that costs more than this share of what a unigram model costs has hardly begun to learn

EPILOG = f"""\b
Example: half an hour on a laptop, then score the same table:
  moses-rnn-train phrase-table.gz --preset small --max-minutes 30
  moses-rnn-score phrase-table.gz
On all GPUs of a machine, started again when a process dies (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --max-restarts 3 --no-python moses-rnn-train phrase-table.gz

{shown_presets(PRESETS)}
The model learns log p(target | source); both sides' end symbols are part of it. Run the same command again after any
interruption, kill -9 included, and it continues where it was. Exit codes: 0 done, 1 failure, 2 wrong command line,
3 table or model rejected, {STOPPED} stopped and resumable.
"""


@dataclass(frozen=True, kw_only=True)
class Training(PhraseModelRequest):
    """What the command line asks for."""

    model: Path | None
    as_json: bool
    estimate: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.option(
    "--model", type=click.Path(path_type=Path), help="Model folder [default: PHRASE_TABLE's name + .rnn-model]"
)
@preset_option(PRESETS)
@click.option(
    "--architecture",
    type=click.Choice(ARCHITECTURES),
    default="encdec",
    show_default=True,
    help="The RNN Encoder-Decoder, or for comparison a CSTM or a ranker: feed-forward networks of phrases of 7 words "
    "at most; a ranker's score is no log-probability",
)
@click.option(
    "--variant",
    type=click.Choice(["paper", "groundhog"]),
    default="paper",
    show_default=True,
    help="The paper's equations or those of the authors' released code",
)
@click.option(
    "--summary", type=click.Choice(["tanh", "last"]), help="Switch of the variant: c = tanh(V h_N + b) or h_N"
)
@click.option(
    "--first-step", type=click.Choice(["zero-embedding", "initial-state"]), help="Switch: what predicts the first word"
)
@click.option(
    "--decoder-reset", type=click.Choice(["after", "before"]), help="Switch: reset gate after or before the product"
)
@click.option(
    "--cell",
    type=click.Choice(CELLS),
    default="gru",
    show_default=True,
    help="What stands in the place of the paper's gated unit; other cells are scored by torch",
)
@click.option("--encoder-reset", type=click.Choice(["before", "after"]), help="Of gru: the encoder's [before]")
@click.option(
    "--leaky-share", type=FiniteFloat(0, 1), help=f"Of leaky: units that keep a part of their state [{LEAKY_SHARE:g}]"
)
@click.option("--forget-bias", type=FiniteFloat(-1000, 1000), help=f"Of LSTMs: b_f at first [{FORGET_BIAS:g}]")
@click.option("--inverse", is_flag=True, help="Learn p(source | target) instead, for moses-rnn-score --inverse-model")
@click.option("--hidden-size", type=click.IntRange(1), help="Hidden units H [of a ranker: 256]")
@click.option("--embedding-size", type=click.IntRange(1), help="Embedding dimensions E")
@click.option("--maxout-size", type=click.IntRange(1), help="Maxout units M")
@click.option("--output-rank", type=click.IntRange(1), help="Rank R of the output matrix")
@click.option("--slots", type=click.IntRange(1, 64), help="Of a CSTM or ranker: words of a phrase at most [7]")
@click.option("--first-size", type=click.IntRange(1), help="Of a CSTM: units of its first hidden layer [512]")
@click.option("--second-size", type=click.IntRange(1), help="Of a CSTM: units of its second hidden layer [256]")
@click.option(
    "--corrupt", type=click.Choice(CORRUPT), help="Of a ranker: which word of a target it sees replaced [last]"
)
@click.option("--source-embeddings", metavar="FILE", help="Source words begin as this file in word2vec's text has them")
@click.option("--target-embeddings", metavar="FILE", help="Target words, likewise")
@click.option("--freeze-embeddings", is_flag=True, help="Words that begin as a file has them stay so")
@click.option("--shortlist", type=click.IntRange(1), help="Words known on each side; others are <unk>")
@click.option(
    "--initial-deviation",
    type=FiniteFloat(0, min_open=True),
    help="Standard deviation of the initial weights of matrices that are not recurrent [paper: 0.01]",
)
@click.option(
    "--sampled-words",
    type=click.IntRange(0),
    help="Learn with a normalisation estimated from this many words, for shortlists above 30,000; 0 for all words",
)
@click.option(
    "--compile/--no-compile",
    "compiled",
    default=None,
    help="Train by torch, and fuse its element-wise work with torch.compile, which takes a minute [default: for large "
    "networks on a CPU without the native core]",
)
@click.option(
    "--max-length", type=click.IntRange(0), default=0, help="Leave out pairs with a longer side [default: none]"
)
@click.option(
    "--held-out",
    type=click.IntRange(1),
    default=5000,
    show_default=True,
    help="About this many pairs, chosen by source phrase, are never trained on",
)
@click.option(
    "--estimate", is_flag=True, help="Print how long training will take here and what cost to expect; train nothing"
)
@learning_options("Phrase pairs", "distinct pairs")
@factor_options
@pairs_option
@json_option
@run_options
@shows_version
@reports_errors
@takes(Training)
def main(request: Training) -> None:
    """Train an RNN Encoder-Decoder on the phrase pairs of a Moses PHRASE_TABLE (plain, .gz, .bz2, .xz or .zst)."""
    try:
        check_network(request)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    check_inputs(request.phrase_table, request.source_embeddings, request.target_embeddings)
    from moses_rnn.cli.training_display import TrainingDisplay, say_end, say_next
    from moses_rnn.files.streams import existing_input
    from moses_rnn.training.run import estimate_training, train_phrase_model

    with together() as ranks:
        table = existing_input(request.phrase_table)
        folder = request.model or default_model(table, inverse=request.inverse)
        request = replace(of_rank(request, ranks), phrase_table=table)
        _check_options(request, ranks)
        display, stop = TrainingDisplay(quiet=request.quiet), stop_request(ranks)
        if request.estimate:
            _print_estimate(estimate_training(request, display, stop), compare=request.architecture == ENCDEC)
            return
        outcome = train_phrase_model(request, folder, display, stop, ranks)
    display.close()
    say_end(outcome, folder, "pairs", quiet=request.quiet, leads=ranks.leads, warning=_warning(outcome))
    if outcome.progress.best < (outcome.rival_cost or math.inf):  # else it will be refused
        say_next(*_next_words(request, table, folder), quiet=request.quiet)
    if request.as_json:
        put_json(training_record(outcome, folder, _warning(outcome)))


def _next_words(request: Training, table: str, folder: Path) -> list[str | Path]:
    """The command that scores, or before it the one that trains the direction which no table goes without."""
    layout: list[str | Path] = ["--format", request.layout] if request.layout != LAYOUTS[0] else []
    if request.inverse and not default_model(table).is_dir():
        return ["moses-rnn-train", table, *layout]
    return ["moses-rnn-score", table, "--inverse-model" if request.inverse else "--model", folder, *layout]


def _check_options(request: Training, ranks: Ranks) -> None:
    if request.estimate and request.as_json:
        raise click.UsageError("--json is the summary of a training: it cannot go with --estimate")
    if request.estimate and ranks.size > 1:
        raise MosesRnnError(f"--estimate: expected one process, found {ranks.size}")


def _warning(outcome: Outcome) -> str:
    """What is wrong with the model; empty if nothing is."""
    best, rival, measure = outcome.progress.best, outcome.rival_cost or math.inf, outcome.measure
    if best >= rival:
        return (
            f"{outcome.verdict}: moses-rnn-score will refuse this model; train longer, or with another --learning-rate"
        )
    if best > FAR_BELOW * rival:
        return f"{best:.2f} {measure.unit} is not far below {measure.rival}'s {rival:.2f}: train longer before scoring"
    return ""


def _print_estimate(expected: Estimate, *, compare: bool) -> None:
    """How long, and how good if there is something to compare with."""
    from moses_rnn.cli.progress import duration

    passes = f"{expected.passes:.1f} passes in the time or epochs given" if expected.passes < math.inf else "no limit"
    put(
        f"{expected.pairs_per_second:,.0f} pairs/s here: {duration(expected.seconds_of_a_pass)} for each pass over "
        f"{expected.pairs:,} pairs; {passes}",
    )
    if not compare:
        return
    reached = ", ".join(f"{share:.0%} after {passes:g}" for passes, share in SHARES_OF_UNIGRAMS)
    put(
        f"For comparison: on Multi30k (828,000 pairs) --preset small cost, of what a unigram model costs, {reached} "
        "passes",
    )
