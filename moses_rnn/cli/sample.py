"""moses-rnn sample: target phrases that a network itself proposes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.command import (
    CONTEXT,
    CONTROL,
    Program,
    check_inputs,
    choose_device,
    model_option,
    print_err,
    print_out,
    reports_errors,
    takes,
    threads_option,
)
from moses_rnn.errors import CheckpointError

if TYPE_CHECKING:
    from moses_rnn.networks.steps import Stepper
    from moses_rnn.scorers.open import Model
    from moses_rnn.translation.proposals import Known, Proposals, Proposer, Reading
    from moses_rnn.translation.search import Writer

SAMPLES, SEED = 50, 1  # defaults of what --beam has no use for
MAX_WORDS = 50  # of a target
PRECISION = "fp64"  # with fp32, one of some ten thousand samples would depend on what else is sampled

EPILOG = """\b
Example: the best of 50 samples and which are not in the table; the likeliest targets of all; many sources:
  moses-rnn sample --model phrase-table.rnn-model --source "far from the" --table phrase-table.gz
  moses-rnn sample --model phrase-table.rnn-model --source "far from the" --beam 50
  zcat phrase-table.gz | sed 's/ *|||.*//' | uniq \\
    | moses-rnn sample - --model phrase-table.rnn-model --format tsv > samples.tsv
Sentences of a language model:
  moses-rnn sample --model cslm --samples 20

Samples are drawn word by word from p(word | words before, source) up to the end symbol, then ranked by the model's
log p(target | source): natural, with the end symbols of both sides. ×3: drawn three times. A source's samples depend on
the seed and the options, not on other sources. Gaps of rules are numbered: [X][X]1. A model of moses-rnn-train
--inverse reads target phrases and writes source phrases. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 input
or model rejected.
"""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What the command line asks for; None where the default depends on --beam."""

    model: Path
    file: str | None
    sources: tuple[str, ...]
    samples: int | None
    top: int
    beam: int | None
    seed: int | None
    table: str | None
    layout: str
    device: str
    threads: int | None


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("file", metavar="[SOURCES]", required=False)
@model_option(required=True)
@click.option("--source", "sources", multiple=True, help="A source phrase; may be repeated")
@click.option("--samples", type=click.IntRange(1), help=f"Of each source [default: {SAMPLES}]")
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, help="Targets to print of each source")
@click.option("--beam", type=click.IntRange(1), help="Search with a beam of this width instead of sampling")
@click.option("--seed", type=click.IntRange(0), help=f"Of the samples [default: {SEED}]")
@click.option("--table", help="Mark what is not in this phrase table, and print its share")
@click.option("--format", "layout", type=click.Choice(["text", "tsv"]), default="text", show_default=True)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@threads_option
@reports_errors
@takes(Sampling)
def main(request: Sampling) -> None:
    """Propose target phrases for source phrases by a network alone (the paper's Table 3).

    Source phrases are those of --source, then the lines of the file SOURCES; - is stdin. A language model needs none.
    """
    _check_options(request)
    check_inputs(request.model, request.file, request.table)
    from moses_rnn.cli.progress import progress
    from moses_rnn.scorers.open import open_model
    from moses_rnn.translation.proposals import Reading, Totals, refuse_annotated

    request = replace(request, device=choose_device(request.device))
    model = open_model(request.model, of_pairs=False)
    refuse_annotated(model)
    reading = Reading(model)
    sources = _sources(request, reading) if _reads_sources(model, request) else [b""]
    proposer = _proposer(model, reading, _known(request.table, sources, reading), request)
    totals, unit = Totals(), "targets" if request.beam else "samples"
    # On a terminal the targets themselves show how far the work is.
    quiet = sys.stdout.isatty() or not sys.stderr.isatty()
    with progress("sources", quiet=quiet) as advanced:
        for proposals in proposer(sources):
            _print(proposals, request, unit, first=not totals.sources)
            totals.add(proposals)
            advanced(totals.sources, totals.sources / len(sources))
    if len(sources) > 1:
        print_err(f"{len(sources):,} sources: {totals.summary(unit)}")
    for text in totals.warnings(MAX_WORDS):
        print_err(f"warning: {text}")


def _check_options(request: Sampling) -> None:
    """Refuse what contradicts itself or would do nothing."""
    options = {"samples": request.samples, "seed": request.seed}
    idle = [name for name, value in options.items() if value is not None]
    if request.beam and idle:
        raise click.UsageError(f"--{idle[0]} is about samples, and --beam searches instead")
    if request.file == request.table == "-":
        raise click.UsageError("SOURCES and --table cannot both be stdin")


def _reads_sources(model: Model, request: Sampling) -> bool:
    """Whether the network reads sources; refuse it without any, and a language model with some."""
    reads = model.architecture.reads_sources
    given = request.file or request.sources
    if reads and not given:
        raise click.UsageError("nothing to read: give --source, or SOURCES (- is stdin)")
    if not reads and (given or request.table):
        expected = f"{model.folder}: expected a network of sources and targets, found: {model.network_title}"
        raise CheckpointError(expected, advice="A language model writes without SOURCES, --source and --table.")
    return reads


def _sources(request: Sampling, reading: Reading) -> list[bytes]:
    """All source phrases, in the network's words."""
    from moses_rnn.files.streams import find_input, read_lines
    from moses_rnn.translation.proposals import parse_sources

    sources = list(parse_sources(map(os.fsencode, request.sources), "--source", reading))
    if request.file:
        path = find_input(request.file)
        sources += parse_sources(read_lines(path), path, reading)
    return sources


def _known(table: str | None, sources: Sequence[bytes], reading: Reading) -> Known | None:
    """The targets that the table has."""
    from moses_rnn.files.streams import find_input, read_lines
    from moses_rnn.table.phrase_table import parse_table, read_first_line
    from moses_rnn.translation.proposals import known_targets

    if table is None:
        return None
    path = find_input(table)
    _, form = read_first_line(path, reading.form if reading.form.is_factored else None)
    reading.check_form(path, form)
    return known_targets(parse_table(read_lines(path), path, form=form), sources, reading)


def _proposer(model: Model, reading: Reading, known: Known | None, request: Sampling) -> Proposer:
    """What writes targets, by sampling or search, and scores them."""
    import torch

    from moses_rnn.networks.hardware import Compute
    from moses_rnn.translation.proposals import Proposer

    if request.threads:
        torch.set_num_threads(request.threads)
    compute = Compute(request.device, PRECISION)
    writer = _writer(model.make_stepper(compute), request)
    return Proposer(reading, writer, model.make_scorer(compute), known)


def _writer(stepper: Stepper[Any, Any], request: Sampling) -> Writer:
    from moses_rnn.translation.search import BeamConfig, BeamSearch, Sampler, SamplingConfig

    if request.beam:
        width, best = request.beam, request.top
        return BeamSearch(stepper, BeamConfig(width, best, MAX_WORDS))
    samples = SAMPLES if request.samples is None else request.samples
    seed = SEED if request.seed is None else request.seed
    return Sampler(stepper, SamplingConfig(samples, seed=seed, max_words=MAX_WORDS))


def _print(proposals: Proposals, request: Sampling, unit: str, *, first: bool) -> None:
    from moses_rnn.translation.proposals import TSV_COLUMNS, as_text, as_tsv

    if request.layout == "text":
        text = "\n".join([*as_text(proposals, request.top, unit), ""])
        print_out(CONTROL.sub(lambda control: f"\\x{ord(control.group()):02x}", text))  # it may command a terminal
    elif lines := [TSV_COLUMNS] * first + as_tsv(proposals, request.top):
        print_out("\n".join(lines))
