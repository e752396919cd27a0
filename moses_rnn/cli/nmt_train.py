"""moses-rnn nmt train: two texts in, the folder of a network that reads whole sentences out."""

from __future__ import annotations

from typing import Any

import click

from moses_rnn.cli.command import CONTEXT, STOPPED, Program, check_inputs, model_option, reports_errors, section
from moses_rnn.cli.training import (
    check_options,
    learning_options,
    limit_options,
    run_options,
    settings,
    shown_presets,
    value_option,
)
from moses_rnn.training.networks import networks_of

EPILOG = f"""\b
Example: at most an hour on a laptop, then a feature of n-best lists, and translations:
  moses-rnn nmt train corpus/train --source en --target fr --dev corpus/dev --model search
  moses-rnn nbest dev.100best.gz --source corpus/dev.en --add search -o dev.search.gz
  moses-rnn nmt translate --model search < corpus/test.en > test.fr
By all GPUs of a machine (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --no-python moses-rnn nmt train corpus/train --source en --target fr \\
    --dev corpus/dev --model search

{shown_presets(*networks_of("sentences"))}
The texts are tokenised and escaped as Moses sees them. Run the same command again after any interruption, kill -9
included, and it continues where it was. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 texts or model rejected,
{STOPPED} stopped and resumable.
"""


SETTINGS = (
    "alignment_size maxout_size output_rank layers phases source_order peepholes min_count "
    "partition_words reshuffle rare_window max_length held_out"
)


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG, params=settings(SETTINGS))
@click.argument("prefix")
@click.option("--source", required=True, help="The source text is PREFIX.SOURCE, plain or compressed")
@click.option("--target", required=True, help="The target text is PREFIX.TARGET, line by line its translation")
@click.option("--dev", help="Held-out texts, DEV.SOURCE and DEV.TARGET [default: some of the pairs]")
@model_option(required=True)
@click.option(
    "--architecture",
    type=click.Choice(networks_of("sentences")),
    default="rnnsearch",
    show_default=True,
    help="rnnsearch: with attention (Bahdanau et al.); seq2seq: deep LSTMs (Sutskever et al.); rnnenc: the phrase "
    "model's network, on sentences",
)
@limit_options("texts")
@section(
    "Network",
    click.option("--inverse", is_flag=True, help="Learn p(source | target) instead"),
    value_option("--hidden-size", least=1, text="Hidden units H"),
    value_option("--embedding-size", text="Embedding dimensions E"),
    value_option("--source-words", text="Source words that are known; others are <unk>"),
    value_option("--target-words", text="Target words that are known; others are <unk>"),
)
@learning_options("Sentence pairs")
@section(
    "Rare words",
    value_option(
        "--rare",
        text="Annotate words outside the shortlists, so that they can be restored in translations (Luong et al.)",
    ),
    click.option("--alignment", metavar="FILE", help="Word alignment of the texts, a line for each pair: 0-0 1-2 …"),
    click.option("--dev-alignment", metavar="FILE", help="Word alignment of DEV.SOURCE and DEV.TARGET"),
)
@run_options()
@reports_errors
def train(**options: Any) -> None:
    """Train a network that reads whole sentences on PREFIX.SOURCE and PREFIX.TARGET."""
    check_options(options)
    texts, endings = options["dev"] or options["prefix"], (options["source"], options["target"])
    check_inputs(*(f"{prefix}.{ending}" for prefix in (options["prefix"], texts) for ending in endings))
    check_inputs(options["alignment"], options["dev_alignment"])
    from moses_rnn.cli.training import run_training, say_next

    run_training(options)
    text = f"{texts}.{endings[options['inverse']]}"
    say_next("moses-rnn", "nmt", "translate", text, "--model", options["model"], quiet=options["quiet"])
