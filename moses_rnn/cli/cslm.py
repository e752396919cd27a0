"""moses-rnn-cslm: a feed-forward language model, trained, judged and written for the decoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    FiniteFloat,
    Program,
    ProgramGroup,
    choose_device,
    put,
    reports_errors,
    say,
    shows_version,
    takes,
)
from moses_rnn.cli.training_options import learning_options, preset_option, run_options, shown_presets
from moses_rnn.cli.training_ranks import of_rank, stop_request, together
from moses_rnn.errors import OutputError
from moses_rnn.training.config import CSLM_PRESETS, CslmRequest

if TYPE_CHECKING:
    from moses_rnn.models.vocabulary import Vocabulary
    from moses_rnn.producers.backoff import Backoff
    from moses_rnn.producers.kenlm import KenlmProducer

EPILOG = """\b
Example: train on the target side of the corpus, compare with the system's n-gram model, write it for the decoder:
  moses-rnn-cslm train train.fr --model cslm --preset small --self-normalise 0.1
  moses-rnn-cslm perplexity cslm dev.fr test.fr --lm lm.arpa
  moses-rnn-cslm export-nplm cslm cslm.nplm --dev dev.fr
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
@shows_version
def main() -> None:
    """Train and use a CSLM, the feed-forward n-gram language model of Schwenk that the paper uses."""


TRAIN_EPILOG = f"""\b
Example:
  moses-rnn-cslm train train.fr --model cslm --preset small --max-minutes 20
By several processes (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --no-python moses-rnn-cslm train train.fr --model cslm

{shown_presets(CSLM_PRESETS)}
Texts are tokenised, one sentence a line, as the target side that the decoder writes. Run the same command again after
any interruption to continue. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 text or model rejected,
{STOPPED} stopped and resumable.
"""


@main.command(cls=Program, context_settings=CONTEXT, epilog=TRAIN_EPILOG)
@click.argument("texts", nargs=-1, required=True)
@click.option("--model", type=click.Path(path_type=Path), required=True, help="Model folder")
@preset_option(CSLM_PRESETS)
@click.option("--order", type=click.IntRange(2, 64), help="n of the n-grams [default: 7]")
@click.option("--embedding-size", type=click.IntRange(1), help="Dimensions of a word")
@click.option("--first-size", type=click.IntRange(1), help="Units of the first rectified layer")
@click.option("--second-size", type=click.IntRange(1), help="Units of the second")
@click.option("--shortlist", type=click.IntRange(1), help="Words that are known; others are <unk>")
@click.option("--dev", help="A text to judge by [default: some lines of the first, which are not trained on]")
@click.option(
    "--held-out", type=click.IntRange(1), help="Lines to hold out [default: one in 1,000, but at least 1,000]"
)
@click.option(
    "--self-normalise", type=FiniteFloat(0), help="α of a penalty α (log Z)², for a decoder that does not normalise"
)
@learning_options("N-grams", "text", evaluated=" [default: an epoch]", patience=" [default: 10]")
@run_options
@reports_errors
@takes(CslmRequest)
def train(request: CslmRequest) -> None:
    """Train a CSLM on tokenised TEXTS, taken as one."""
    from moses_rnn.cli.training_display import TrainingDisplay, say_end
    from moses_rnn.training.cslm_run import train_cslm

    with together() as ranks:
        request = of_rank(request, ranks)
        display = TrainingDisplay(quiet=request.quiet)
        outcome = train_cslm(request, display, stop_request(ranks), ranks)
    display.close()
    say_end(outcome, request.model, "n-grams", quiet=request.quiet, leads=ranks.leads)


PERPLEXITY_EPILOG = """\b
Example: the first text decides the interpolation's weight:
  moses-rnn-cslm perplexity cslm dev.fr test.fr --lm lm.arpa

All models share one vocabulary, that of the n-gram model and the shortlist together: words outside the shortlist get
their n-gram model's share of what the CSLM gives to <unk>. --lm must be an ARPA file, plain or .gz: a binary one does
not say which words it knows.
"""


@main.command(cls=Program, context_settings=CONTEXT, epilog=PERPLEXITY_EPILOG)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1, required=True)
@click.option("--lm", help="An n-gram model to compare, to back off to and to interpolate with; ARPA")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@reports_errors
def perplexity(model: Path, texts: tuple[str, ...], lm: str | None, device: str) -> None:
    """Print perplexities of tokenised TEXTS: the CSLM's, an n-gram model's, and of both together."""
    from moses_rnn.analysis.perplexity import as_markdown, best_weight, judge
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.models.checkpoint import load_checkpoint
    from moses_rnn.models.cslm import CSLM
    from moses_rnn.producers.base import Compute
    from moses_rnn.producers.cslm import CslmProducer

    checkpoint = load_checkpoint(model, CSLM)
    kenlm = backoff = None
    if lm:
        kenlm, backoff = _backing_off(lm, checkpoint.target_vocabulary)
    cslm = CslmProducer(checkpoint, Compute(choose_device(device)), backoff)
    paths = [existing_input(text) for text in texts]
    judged = [judge(read_lines(path), Path(path).name, cslm, kenlm) for path in paths]
    weight = best_weight(judged[0]) if kenlm else None
    put("\n".join(as_markdown(judged, weight)))
    if backoff and weight is not None:
        put(
            f"\nThe weight is the best for {judged[0].name}. Outside the shortlist: {backoff.words:,} words of the "
            f"n-gram model, <unk> among them, with a mass of {backoff.outside:.4f} without context."
        )


def _backing_off(lm: str, vocabulary: Vocabulary) -> tuple[KenlmProducer, Backoff]:
    """An n-gram model, and what it needs to share out <unk>."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.arpa import parse_arpa
    from moses_rnn.producers.backoff import Backoff
    from moses_rnn.producers.kenlm import KenlmProducer

    path = existing_input(lm)
    model = KenlmProducer(path)
    return model, Backoff(parse_arpa(read_lines(path), path), model, vocabulary, path)


NPLM_EPILOG = """\b
Example:
  moses-rnn-cslm export-nplm cslm cslm.nplm --dev dev.fr

For a Moses built with --with-nplm. Its NeuralLM does not normalise: train with --self-normalise. The mean of log Z on
the --dev text is taken off the output biases.
"""
FAR_FROM_NORMAL = 0.5  # nats a word


@main.command("export-nplm", cls=Program, context_settings=CONTEXT, epilog=NPLM_EPILOG)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("output")
@click.option("--dev", required=True, help="A tokenised text, to see how far log Z is from 0")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
def export_nplm(model: Path, output: str, dev: str, force: bool) -> None:
    """Write a CSLM as NPLM text file OUTPUT, and print the lines of moses.ini that load it."""
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.files.streams import STANDARD_STREAM, compression_of, existing_input, read_lines
    from moses_rnn.models.checkpoint import load_checkpoint
    from moses_rnn.models.cslm import CSLM
    from moses_rnn.producers.nplm_export import normalisers, nplm_network

    if output == STANDARD_STREAM or compression_of(output):
        raise OutputError(f"{output}: expected the name of a plain file, as NPLM reads it")
    checkpoint = load_checkpoint(model, CSLM)
    dev = existing_input(dev)
    with OutputFile(output, force=force, inputs=(dev, str(model))) as file:
        norms = normalisers(checkpoint, read_lines(dev), dev)
        for line in nplm_network(checkpoint, norms.mean).lines():
            file.append(line)
        file.commit()
    say(
        f"log Z on {norms.tokens:,} words of {dev}: mean {norms.mean:.4f}, which is taken off; mean |log Z| "
        f"{norms.mean_abs:.4f} before, {norms.mean_abs_without_mean:.4f} after"
    )
    if norms.mean_abs_without_mean > FAR_FROM_NORMAL:
        say("warning: that is far from a probability: train with --self-normalise 0.1, say")
    _put_ini_lines(checkpoint.model.config.order, str(Path(output).absolute()))


def _put_ini_lines(order: int, path: str) -> None:
    """What a moses.ini needs."""
    from moses_rnn.formats.ini_lines import is_readable_path

    if not is_readable_path(path):
        say(f"warning: {path}: Moses cannot read paths with blanks or '#': move the file before using it")
    put(f"[feature]\nNeuralLM name=CSLM0 order={order} path={path} factor=0\n\n[weight]\nCSLM0= 0.1")
