"""moses-rnn-cslm: a feed-forward language model, trained, judged and written for the decoder."""

from __future__ import annotations

from collections.abc import Iterator
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
    ProgramGroup,
    StopRequest,
    choose_device,
    put,
    reports_errors,
    say,
)
from moses_rnn.cli.training_options import learning_options, prepare_folder, run_options, with_threads
from moses_rnn.errors import InputError, OutputError, Stopped

if TYPE_CHECKING:
    from moses_rnn.cli.training_display import NGramsDisplay
    from moses_rnn.models.vocabulary import Vocabulary
    from moses_rnn.producers.backoff import Backoff
    from moses_rnn.producers.kenlm import KenlmProducer
    from moses_rnn.training.config import CslmPreset
    from moses_rnn.training.cslm_run import CslmRequest, Lines

EPILOG = """\b
Example: train on the target side of the corpus, compare with the system's n-gram model, write it for the decoder:
  moses-rnn-cslm train train.fr --model cslm --preset small --self-normalise 0.1
  moses-rnn-cslm perplexity cslm dev.fr test.fr --lm lm.arpa
  moses-rnn-cslm export-nplm cslm cslm.nplm --dev dev.fr
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
@click.version_option(__version__)
def main() -> None:
    """Train and use a CSLM, the feed-forward n-gram language model of Schwenk that the paper uses."""


TRAIN_EPILOG = f"""\b
Example:
  moses-rnn-cslm train train.fr --model cslm --preset small --max-minutes 20

Texts are tokenised, one sentence a line, as the target side that the decoder writes. Run the same command again after
any interruption and it goes on. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 text or model rejected,
{STOPPED} stopped and resumable.
"""


@main.command(cls=Program, context_settings=CONTEXT, epilog=TRAIN_EPILOG)
@click.argument("texts", nargs=-1, required=True)
@click.option("--model", type=click.Path(path_type=Path), required=True, help="Model folder")
@click.option(
    "--preset", type=click.Choice(["paper", "small"]), help="Sizes and training [default: paper on a GPU, else small]"
)
@click.option("--order", type=click.IntRange(2, 64), help="n of the n-grams [default: 7]")
@click.option("--embedding-size", type=click.IntRange(1), help="Dimensions of a word")
@click.option("--first-size", type=click.IntRange(1), help="Units of the first rectified layer")
@click.option("--second-size", type=click.IntRange(1), help="Units of the second")
@click.option("--shortlist", type=click.IntRange(1), help="Words known; others are <unk>")
@click.option("--dev", help="A text to judge by [default: some lines of the first, which are not trained on]")
@click.option("--held-out", type=click.IntRange(1), help="How many [default: one in 1 000, at least 1 000]")
@click.option(
    "--self-normalise", type=FiniteFloat(0), help="α of a penalty α (log Z)², for a decoder that does not normalise"
)
@learning_options("N-grams", "text", evaluated=" [default: an epoch]", patience=" [default: 10]")
@run_options
@reports_errors
def train(texts: tuple[str, ...], model: Path, restart: bool, quiet: bool, threads: int | None, **options: Any) -> None:
    """Train a CSLM on tokenised TEXTS, taken as one."""
    import torch

    from moses_rnn.cli.training_display import NGramsDisplay
    from moses_rnn.models.cslm import CSLM
    from moses_rnn.models.learning_curves import verdict
    from moses_rnn.training.config import CSLM_PRESETS
    from moses_rnn.training.cslm_run import train_cslm

    device = choose_device(options["device"])
    preset = CSLM_PRESETS[options["preset"] or ("paper" if device.startswith("cuda") else "small")]
    options["cores"] = threads or torch.get_num_threads()
    request = _request(tuple(Path(text).name for text in texts), device, preset, options)
    display = NGramsDisplay(request.training, _sizes(request.network), quiet=quiet)
    stop = StopRequest()
    text = _lines(texts, display, stop)
    dev = _lines((options["dev"],), display, stop) if options["dev"] else None
    prepare_folder(model, CSLM, restart=restart)  # when the texts are known to be there
    progress = train_cslm(text, dev, model, request, display, stop)
    display.close()
    if not progress.finished:
        raise Stopped(f"stopped after {progress.examples:,} n-grams; the same command goes on")
    if not quiet:
        say(f"finished: {progress.finished}; best held-out {progress.best:.4f} nats per token; model in {model}")
        say(f"verdict: {verdict(progress.history)}")


def _lines(texts: tuple[str, ...], display: NGramsDisplay, stop: StopRequest) -> Lines:
    """The lines of texts, from the beginning each time it is called."""
    from moses_rnn.files.streams import STANDARD_STREAM, existing_input

    if STANDARD_STREAM in texts:
        raise InputError("a text to train on must be a file: it is read twice")
    paths = [existing_input(text) for text in texts]

    def lines() -> Iterator[bytes]:
        for path in paths:
            for block in display.reading(path, stop):
                yield from block.removesuffix(b"\n").split(b"\n")

    return lines


def _request(names: tuple[str, ...], device: str, preset: CslmPreset, options: dict[str, Any]) -> CslmRequest:
    """The preset with what the command line says otherwise."""
    from moses_rnn.models.hardware import choose_precision
    from moses_rnn.training.config import for_optimiser
    from moses_rnn.training.cslm_run import CslmRequest
    from moses_rnn.training.n_grams import TextConfig

    given = {key: value for key, value in options.items() if value is not None}
    network = {
        key: given.get(key, getattr(preset, key)) for key in ("order", "embedding_size", "first_size", "second_size")
    }
    learning = {key: given[key] for key in ("self_normalise",) if key in given}
    training = for_optimiser(preset.training, given.get("optimiser", preset.training.optimiser))
    chosen = {key: value for key, value in given.items() if key in training.__dataclass_fields__}
    chosen["precision"] = choose_precision(given["precision"], device, network["first_size"])
    return CslmRequest(
        network=network,
        text=TextConfig(given.get("shortlist", preset.shortlist), given.get("held_out", 0), given["seed"]),
        learning=replace(preset.learning, **learning),
        training=with_threads(replace(training, **chosen), device, given["cores"]),
        device=device,
        names=names,
    )


def _sizes(network: Any) -> str:
    order, embedding, first, second = network.values()
    return f"{order}-gram, {embedding} → {embedding * (order - 1)} → {first} → {second}"


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
        found = normalisers(checkpoint, read_lines(dev), dev)
        for line in nplm_network(checkpoint, found.mean).lines():
            file.append(line)
        file.commit()
    say(
        f"log Z on {found.tokens:,} words of {dev}: mean {found.mean:.4f}, which is taken off; mean |log Z| "
        f"{found.mean_abs:.4f} before, {found.mean_abs_without_mean:.4f} after"
    )
    if found.mean_abs_without_mean > FAR_FROM_NORMAL:
        say("warning: that is far from a probability: train with --self-normalise 0.1, say")
    _put_ini_lines(checkpoint.model.config.order, str(Path(output).absolute()))


def _put_ini_lines(order: int, path: str) -> None:
    """What a moses.ini needs."""
    from moses_rnn.formats.ini_lines import is_readable_path

    if not is_readable_path(path):
        say(f"warning: {path}: Moses cannot read paths with blanks or '#': move the file before using it")
    put(f"[feature]\nNeuralLM name=CSLM0 order={order} path={path} factor=0\n\n[weight]\nCSLM0= 0.1")
