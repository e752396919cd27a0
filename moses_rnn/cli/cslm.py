"""moses-rnn cslm: neural language models, trained, judged and written for the decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    FiniteFloat,
    Program,
    ProgramGroup,
    check_inputs,
    model_option,
    print_err,
    print_out,
    reports_errors,
    section,
)
from moses_rnn.cli.cslm_perplexity import perplexity
from moses_rnn.cli.training_options import (
    Setting,
    check_options,
    learning_options,
    learning_settings,
    limit_options,
    run_options,
    shown_presets,
)
from moses_rnn.errors import InputError, OutputError
from moses_rnn.training.networks import networks_of

EPILOG = """\b
Example: train on the target side of the corpus, compare with the system's n-gram model, write it for the decoder:
  moses-rnn cslm train train.fr --model cslm --preset small --self-normalise 0.1
  moses-rnn cslm perplexity dev.fr test.fr --model cslm --lm lm.arpa
  moses-rnn cslm export-nplm cslm.nplm --model cslm --dev dev.fr
\b
A recurrent network instead, for n-best lists:
  moses-rnn cslm train train.fr --network rnnlm --dev dev.fr --model rnnlm
  moses-rnn nbest dev.nbest.gz --source dev.en --add rnnlm -o dev.more.gz
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Train and use neural language models: the CSLM of Schwenk that the paper uses, Bengio's, and Mikolov's RNNLM."""


TRAIN_EPILOG = f"""\b
Example:
  moses-rnn cslm train train.fr --model cslm --preset small --max-minutes 20
  moses-rnn cslm train train.fr --network rnnlm --dev dev.fr --model rnnlm
By several processes (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --no-python moses-rnn cslm train train.fr --model cslm

{shown_presets(*networks_of("text"))}
Texts are tokenised, one sentence a line, as the target side that the decoder writes. Run the same command again after
any interruption to continue. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 text or model rejected,
{STOPPED} stopped and resumable.
"""


SETTINGS = [
    Setting("first_size", click.IntRange(1)),
    Setting("second_size", click.IntRange(1)),
    Setting("direct", bool),
    Setting("min_count", click.IntRange(1)),
    Setting("bptt", click.IntRange(0)),
    Setting("held_out", click.IntRange(1)),
]


@main.command(cls=Program, context_settings=CONTEXT, epilog=TRAIN_EPILOG, params=[*SETTINGS, *learning_settings()])
@click.argument("texts", nargs=-1, required=True)
@model_option(required=True)
@click.option(
    "--network",
    "--architecture",
    "architecture",
    type=click.Choice(networks_of("text")),
    default="cslm",
    show_default=True,
    help="cslm: n-grams, two rectified layers (Schwenk); bengio: n-grams, one layer, or direct connections too (Bengio "
    "et al.); rnnlm: whole sentences, recurrent (Mikolov et al.)",
)
@click.option("--dev", help="A text to judge by [default: some lines of the first, which are not trained on]")
@limit_options({"paper": None, "small": None}, "text")
@section(
    "Network",
    click.option("--order", type=click.IntRange(2, 64), help="n of the n-grams, of cslm [7] and bengio [5]"),
    click.option("--embedding-size", type=click.IntRange(1), help="Dimensions of a word, of cslm and bengio"),
    click.option(
        "--hidden-size", type=click.IntRange(0), help="Hidden units of bengio, where 0 leaves none, and of rnnlm"
    ),
    click.option("--shortlist", type=click.IntRange(1), help="Words that are known; others are <unk>"),
)
@learning_options(
    "N-grams, or sentences of rnnlm,",
    click.option(
        "--self-normalise",
        type=FiniteFloat(0),
        help="α of a penalty α (log Z)², for a decoder that does not normalise; of cslm and bengio",
    ),
)
@run_options()
@reports_errors
def train(**options: Any) -> None:
    """Train a language model on tokenised TEXTS, taken as one."""
    check_options(options)
    check_inputs(*options["texts"], options["dev"])
    from moses_rnn.cli.training_display import run_training, say_next

    run_training(options)
    text = options["dev"] or options["texts"][0]
    say_next("moses-rnn", "cslm", "perplexity", text, "--model", options["model"], quiet=options["quiet"])


main.add_command(perplexity)


NPLM_EPILOG = """\b
Example:
  moses-rnn cslm export-nplm cslm.nplm --model cslm --dev dev.fr

For a Moses built with --with-nplm. Its NeuralLM does not normalise: train with --self-normalise. The mean of log Z on
the --dev text is taken off the output biases.
"""
FAR_FROM_NORMAL = 0.5  # nats a word


@main.command("export-nplm", cls=Program, context_settings=CONTEXT, epilog=NPLM_EPILOG)
@click.argument("output")
@model_option(required=True)
@click.option("--dev", required=True, help="A tokenised text, to see how far log Z is from 0")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
def export_nplm(output: str, model: Path, dev: str, force: bool) -> None:
    """Write a CSLM as NPLM text file OUTPUT, and print the lines of moses.ini that load it."""
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.files.streams import STANDARD_STREAM, find_input, is_gzip, read_lines

    if output == STANDARD_STREAM or is_gzip(output):
        raise OutputError(f"{output}: expected the name of a plain file, as NPLM reads it")
    check_inputs(model, dev)
    from moses_rnn.networks.cslm import CSLM
    from moses_rnn.scorers.nplm_export import normalisers, nplm_network
    from moses_rnn.scorers.open import open_language_model

    cslm = open_language_model(model)
    if cslm.architecture is not CSLM:
        expected = "a CSLM, which is what NeuralLM computes"
        raise InputError(f"{model}: expected {expected}, found: {cslm.architecture.title}")
    dev = find_input(dev)
    with OutputFile(output, force=force, inputs=(dev, str(model))) as file:
        norms = normalisers(cslm, read_lines(dev), dev)
        for line in nplm_network(cslm, norms.mean).lines():
            file.append(line)
        file.commit()
    print_err(
        f"log Z on {norms.tokens:,} words of {dev}: mean {norms.mean:.4f}, which is taken off; mean |log Z| "
        f"{norms.mean_abs:.4f} before, {norms.mean_abs_without_mean:.4f} after"
    )
    if norms.mean_abs_without_mean > FAR_FROM_NORMAL:
        print_err("warning: that is far from a probability: train with --self-normalise 0.1, say")
    _put_ini_lines(cslm.config.order, str(Path(output).absolute()))


def _put_ini_lines(order: int, path: str) -> None:
    """What a moses.ini needs."""
    from moses_rnn.moses.ini_editing import is_readable_path

    if not is_readable_path(path):
        print_err(f"warning: {path}: Moses cannot read paths with blanks or '#': move the file before using it")
    print_out(f"[feature]\nNeuralLM name=CSLM0 order={order} path={path} factor=0\n\n[weight]\nCSLM0= 0.1")
