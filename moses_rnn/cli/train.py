"""moses-rnn-train: a phrase table in, a model folder out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn import __version__
from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    FiniteFloat,
    Program,
    StopRequest,
    choose_device,
    default_model,
    factor_options,
    put,
    reports_errors,
    say,
)
from moses_rnn.cli.training_options import learning_options, prepare_folder, run_options, with_threads
from moses_rnn.errors import InputError, Stopped

if TYPE_CHECKING:
    from collections import Counter

    from moses_rnn.formats.phrase_forms import PhraseForm
    from moses_rnn.training.config import Preset, TrainingConfig
    from moses_rnn.training.estimate import Estimate
    from moses_rnn.training.run import TrainingRequest

LONG_MINUTES = 10  # of training: less would hardly win back what compiling takes
FAR_BELOW = 0.8  # a model that costs more than this share of a unigram model's cost has hardly begun

EPILOG = f"""\b
Example: half an hour on a laptop, then score the same table:
  moses-rnn-train phrase-table.gz --preset small --max-minutes 30
  moses-rnn-score phrase-table.gz

The model learns log p(target | source); both sides' end symbols are part of it. Run the same command again after any
interruption, kill -9 included, and it goes on where it was. Exit codes: 0 done, 1 failure, 2 wrong command line,
3 table or model rejected, {STOPPED} stopped and resumable.
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.option(
    "--model", type=click.Path(path_type=Path), help="Model folder [default: PHRASE_TABLE's name + .rnn-model]"
)
@click.option(
    "--preset", type=click.Choice(["paper", "small"]), help="Sizes and optimiser [default: paper on a GPU, else small]"
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
@click.option("--inverse", is_flag=True, help="Learn p(source | target) instead, for moses-rnn-score --inverse-model")
@click.option("--hidden-size", type=click.IntRange(1), help="Hidden units H")
@click.option("--embedding-size", type=click.IntRange(1), help="Embedding dimensions E")
@click.option("--maxout-size", type=click.IntRange(1), help="Maxout units M")
@click.option("--output-rank", type=click.IntRange(1), help="Rank R of the output matrix")
@click.option("--shortlist", type=click.IntRange(1), help="Words known on each side; others are <unk>")
@click.option("--source-corpus", help="Count source words here, not over the table's distinct phrases")
@click.option("--target-corpus", help="Count target words here, not over the table's distinct phrases")
@click.option(
    "--initial-deviation",
    type=FiniteFloat(0, min_open=True),
    help="Of the matrices' initial weights, but for the recurrent ones [paper: 0.01]",
)
@click.option("--batch-tokens", type=click.IntRange(0), help="Target words a minibatch at most; 0 for no limit")
@click.option(
    "--sampled-words",
    type=click.IntRange(0),
    help="Learn with a normalisation estimated from so many words, for shortlists above 30 000; 0 for all words",
)
@click.option(
    "--reduction", type=click.Choice(["pair-mean", "token-mean", "sum"]), help="What the gradient is averaged over"
)
@click.option(
    "--compile/--no-compile",
    "compiled",
    default=None,
    help="Let torch fuse the rest, which takes a minute [default: for large networks on a CPU]",
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
    "--estimate", is_flag=True, help="Say how long it will take here and how good to expect it, and train nothing"
)
@learning_options("Phrase pairs", "distinct pairs")
@factor_options
@run_options
@click.version_option(__version__)
@reports_errors
def main(
    phrase_table: str, model: Path | None, restart: bool, quiet: bool, threads: int | None, **options: Any
) -> None:
    """Train an RNN Encoder-Decoder on the phrase pairs of a Moses PHRASE_TABLE (plain, .gz, .bz2, .xz or .zst)."""
    import torch

    from moses_rnn.cli.training_display import PairsDisplay
    from moses_rnn.files.streams import STANDARD_STREAM, existing_input
    from moses_rnn.formats.phrase_forms import PhraseForm
    from moses_rnn.formats.phrase_table import first_look
    from moses_rnn.formats.table_blocks import parse_blocks
    from moses_rnn.models.encdec import ENCDEC
    from moses_rnn.models.learning_curves import verdict
    from moses_rnn.training.config import PRESETS
    from moses_rnn.training.run import estimate_run, train

    if phrase_table == STANDARD_STREAM:
        raise InputError("a table to train on must be a file: a stopped run reads it again")
    table = existing_input(phrase_table)
    folder = model or default_model(table, inverse=options["inverse"])
    device = choose_device(options["device"])
    preset = options["preset"] or ("paper" if device.startswith("cuda") else "small")
    options["cores"] = threads or torch.get_num_threads()
    factors = PhraseForm(options["source_factor"], options["target_factor"])
    _, form = first_look(table, factors)
    request = _request(Path(table).name, device, PRESETS[preset], options, form)
    if not options["estimate"]:
        prepare_folder(folder, ENCDEC, restart=restart)
    advise = "paper" if options["preset"] is None and preset == "small" else None
    display = PairsDisplay(request, advise_on=advise, quiet=quiet)
    stop = StopRequest()
    blocks = parse_blocks(display.reading(table, stop), table, form=factors)
    pairs = (pair for block in blocks for pair in block.pairs(inverse=options["inverse"]))
    counts = [_word_counts(options["source_corpus"]), _word_counts(options["target_corpus"])]
    read, written = reversed(counts) if options["inverse"] else counts
    if options["estimate"]:
        _print_estimate(estimate_run(pairs, request, display, (read, written)))
        return
    progress = train(pairs, folder, request, display, stop, (read, written))
    display.close()
    if not progress.finished:
        raise Stopped(f"stopped after {progress.examples:,} pairs; the same command goes on")
    judged = verdict(progress.history, display.unigram_nats)
    if progress.best >= display.unigram_nats:
        say(f"warning: {judged}: moses-rnn-score will refuse this model; train longer, or with another --learning-rate")
    elif progress.best > FAR_BELOW * display.unigram_nats:
        say(
            f"warning: {progress.best:.2f} nats per target token is not far below a unigram model's "
            f"{display.unigram_nats:.2f}: train longer before scoring"
        )
    if not quiet:
        say(
            f"finished: {progress.finished}; best held-out {progress.best:.4f} nats per target token; model in {folder}"
        )
        say(f"verdict: {judged}")


def _print_estimate(expected: Estimate) -> None:
    """How long, and how good."""
    from moses_rnn.cli.progress import duration
    from moses_rnn.training.config import SHARES_OF_UNIGRAMS

    passes = f"{expected.passes:.1f} passes in the time or epochs given" if expected.passes < math.inf else "no limit"
    put(
        f"{expected.pairs_per_second:,.0f} pairs/s here: {duration(expected.seconds_of_a_pass)} for each pass over "
        f"{expected.pairs:,} pairs; {passes}"
    )
    reached = ", ".join(f"{share:.0%} after {passes:g}" for passes, share in SHARES_OF_UNIGRAMS)
    put(
        f"For comparison: on Multi30k (828,000 pairs) --preset small cost, of what a unigram model costs, {reached} "
        "passes"
    )


def _request(table: str, device: str, preset: Preset, options: dict[str, Any], form: PhraseForm) -> TrainingRequest:
    """The preset with what the command line says otherwise."""
    from moses_rnn.training.corpus import CorpusConfig
    from moses_rnn.training.run import TrainingRequest

    given = {key: value for key, value in options.items() if value is not None}
    words = given.get("shortlist", preset.shortlist)
    network = _network(preset, given)
    return TrainingRequest(
        network=network,
        corpus=CorpusConfig(words, words, given["held_out"], given["max_length"], given["seed"]),
        training=_training(preset.training, device, network["hidden_size"], given),
        direction="target-to-source" if given["inverse"] else "source-to-target",
        device=device,
        table=table,
        phrases=form.as_record(),
    )


def _network(preset: Preset, given: dict[str, Any]) -> dict[str, Any]:
    from moses_rnn.models.encdec import SWITCHES
    from moses_rnn.training.run import variant_of

    switches = {key: given.get(key, value) for key, value in SWITCHES[given["variant"]].items()}
    sizes = ("hidden_size", "embedding_size", "maxout_size", "output_rank")
    return {**{key: given.get(key, getattr(preset, key)) for key in sizes}, "variant": variant_of(switches), **switches}


def _training(preset: TrainingConfig, device: str, hidden_size: int, given: dict[str, Any]) -> TrainingConfig:
    from moses_rnn.models.hardware import LARGE_TO_LEARN, choose_compiled, choose_precision
    from moses_rnn.training.config import for_optimiser

    config = for_optimiser(preset, given.get("optimiser", preset.optimiser))
    if given["variant"] == "groundhog":
        config = replace(config, reduction="sum")  # what the released code does
    chosen = {key: value for key, value in given.items() if key in config.__dataclass_fields__}
    chosen["precision"] = choose_precision(given["precision"], device, hidden_size)
    minutes = chosen.get("max_minutes", config.max_minutes) or math.inf
    chosen["compiled"] = choose_compiled(
        given.get("compiled"), device, hidden_size, long=minutes >= LONG_MINUTES, large=LARGE_TO_LEARN
    )
    return with_threads(replace(config, **chosen), device, given["cores"])


def _word_counts(corpus: str | None) -> Counter[bytes] | None:
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.training.corpus import count_words

    return None if corpus is None else count_words(read_lines(existing_input(corpus)))
