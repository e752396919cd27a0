"""moses-rnn nmt train: two texts in, the folder of a network that reads whole sentences out."""

from __future__ import annotations

from typing import Any

import click

from moses_rnn.cli.command import CONTEXT, STOPPED, Program, check_inputs, model_option, reports_errors, section
from moses_rnn.cli.training import (
    Setting,
    check_options,
    learning_options,
    learning_settings,
    limit_options,
    run_options,
    shown_presets,
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


SETTINGS = [
    Setting("alignment_size", click.IntRange(1)),
    Setting("maxout_size", click.IntRange(1)),
    Setting("output_rank", click.IntRange(0)),
    Setting("layers", click.IntRange(1, 64)),
    Setting("phases", click.Choice(["paper", "groundhog"])),
    Setting("source_order", click.Choice(["reversed", "forward"])),
    Setting("peepholes", bool),
    Setting("min_count", click.IntRange(1)),
    Setting("partition_words", click.IntRange(3)),
    Setting("reshuffle", bool),
    Setting("rare_window", click.IntRange(1, 1000)),
    Setting("max_length", click.IntRange(0)),
    Setting("held_out", click.IntRange(1)),
]


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG, params=[*SETTINGS, *learning_settings()])
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
@limit_options({"paper": None, "small": None}, "texts")
@section(
    "Network",
    click.option("--inverse", is_flag=True, help="Learn p(source | target) instead"),
    click.option("--hidden-size", type=click.IntRange(1), help="Hidden units H"),
    click.option("--embedding-size", type=click.IntRange(1), help="Embedding dimensions E"),
    click.option("--source-words", type=click.IntRange(1), help="Source words that are known; others are <unk>"),
    click.option("--target-words", type=click.IntRange(1), help="Target words that are known; others are <unk>"),
)
@learning_options("Sentence pairs")
@section(
    "Rare words",
    click.option(
        "--rare",
        type=click.Choice(["noalign", "copyable", "posall", "posunk"]),
        help="Annotate words outside the shortlists, so that they can be restored in translations (Luong et al.)",
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
