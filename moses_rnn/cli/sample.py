"""moses-rnn sample: print target phrases that a network proposes."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import click

from moses_rnn.api.pairs import as_str
from moses_rnn.cli.command import check_inputs, choose_device, command, harmless, print_err, print_out, warn
from moses_rnn.errors import CheckpointError, number_of
from moses_rnn.options import Argument, Device, ModelFolder, Option, Threads

if TYPE_CHECKING:
    from moses_rnn.models.model import Model
    from moses_rnn.translation.proposals import Converter, Known, Proposals

SAMPLES, SEED = 50, 1  # defaults of options that --beam does not use
MAX_WORDS = 50  # of a target

TSV_COLUMNS = "source\trank\ttarget\tlog_prob\ttimes\tin_table"

EPILOG = """\b
Examples: the best of 50 samples, marking those not in the table; the likeliest targets, by beam search; many sources:
  moses-rnn sample --model phrase-table.rnn-model --source "far from the" --table phrase-table.gz
  moses-rnn sample --model phrase-table.rnn-model --source "far from the" --beam 50
  zcat phrase-table.gz | sed 's/ *|||.*//' | uniq \\
    | moses-rnn sample - --model phrase-table.rnn-model --format tsv > samples.tsv
Sentences of a language model:
  moses-rnn sample --model cslm --samples 20

The network draws samples word by word from p(word | words before, source) up to the end symbol. They are ranked by its
log p(target | source): natural, with the end symbols of both sides. ×3 means drawn three times. A source's samples
depend on the seed and the options, not on other sources. Non-terminals of rules are numbered: [X][X]1. A model from
moses-rnn-train --inverse reads target phrases and writes source phrases. Exit codes: 0 done, 1 failure, 2 usage
error, 3 input or model refused.
"""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The options of the command; None: the default depends on --beam."""

    file: Annotated[str | None, Argument("[SOURCES]")] = None
    model: ModelFolder
    sources: Annotated[tuple[str, ...], Option("Source phrase; repeat it for several", "--source")] = ()
    samples: Annotated[int | None, Option(f"Samples per source [default: {SAMPLES}]", min=1)] = None
    top: Annotated[int, Option("Targets to print per source", min=1)] = 5
    beam: Annotated[int | None, Option("Search with a beam of this width instead of sampling", min=1)] = None
    seed: Annotated[int | None, Option(f"Seed of the samples [default: {SEED}]", min=0)] = None
    table: Annotated[str | None, Option("Mark targets that are not in this phrase table, and print their share")] = None
    layout: Annotated[Literal["text", "tsv"], Option("", "--format")] = "text"
    device: Device = "auto"
    threads: Threads = None


@command(EPILOG)
def main(given: Sampling) -> None:
    """Propose target phrases for source phrases with a network alone (the paper's Table 3).

    Source phrases come from --source, then from the lines of the file SOURCES; - is stdin. A language model takes none.
    """
    _check_options(given)
    check_inputs(given.model, given.file, given.table)
    from moses_rnn.api.models import DRAWING, make_proposer
    from moses_rnn.cli.progress import progress
    from moses_rnn.models.open import open_model
    from moses_rnn.networks.compute import Compute
    from moses_rnn.translation.proposals import Converter, Totals
    from moses_rnn.translation.search import BeamConfig, SamplingConfig

    compute = Compute(choose_device(given.device, given.threads), DRAWING)
    model = open_model(given.model, of_pairs=False)
    config: SamplingConfig | BeamConfig
    if given.beam:
        config = BeamConfig(given.beam, given.top, MAX_WORDS)
    else:
        seed = SEED if given.seed is None else given.seed
        config = SamplingConfig(given.samples or SAMPLES, seed=seed, max_words=MAX_WORDS)
    reading = Converter(model)
    sources = _read_sources(given, reading) if _reads_sources(model, given) else [b""]
    known = _read_known(given.table, sources, reading)
    propose = make_proposer(model, config, model.make_scorer(compute), compute.device, known)
    totals, unit = Totals(), "targets" if given.beam else "samples"
    # On a terminal, the targets themselves show the progress.
    quiet = sys.stdout.isatty() or not sys.stderr.isatty()
    with progress("sources", quiet=quiet) as advanced:
        for proposals in propose(sources):
            _print(proposals, given, unit, first=not totals.sources)
            totals.add(proposals)
            advanced(totals.sources, totals.sources / len(sources))
    if len(sources) > 1:
        print_err(f"{number_of(len(sources), 'source')}: {totals.summary(unit)}")
    warn(*totals.warnings(MAX_WORDS))


def _check_options(given: Sampling) -> None:
    options = {"samples": given.samples, "seed": given.seed}
    idle = [name for name, value in options.items() if value is not None]
    if given.beam and idle:
        raise click.UsageError(f"--{idle[0]} applies to samples, but --beam searches instead")


def _reads_sources(model: Model, given: Sampling) -> bool:
    """Whether the network reads sources; raise an error if they are missing, or given to a language model."""
    reads, some = model.architecture.reads_sources, given.file or given.sources
    if reads and not some:
        raise click.UsageError("nothing to read: give --source, or SOURCES (- is stdin)")
    if not reads and (some or given.table):
        expected = f"{model.folder}: expected a network of sources and targets, found: {model.network_title}"
        raise CheckpointError(expected, advice="A language model takes no SOURCES, --source or --table.")
    return reads


def _read_sources(given: Sampling, reading: Converter) -> list[bytes]:
    from moses_rnn.files.streams import find_input, read_text
    from moses_rnn.translation.proposals import parse_sources

    sources = list(parse_sources(map(os.fsencode, given.sources), "--source", reading))
    if given.file:
        path = find_input(given.file)
        sources += parse_sources(read_text(path), path, reading)
    return sources


def _read_known(table: str | None, sources: Collection[bytes], reading: Converter) -> Known | None:
    """Return the targets that the table has for the sources."""
    from moses_rnn.files.streams import read_lines, regular_file
    from moses_rnn.table.phrase_table import parse_table, read_first_line
    from moses_rnn.translation.proposals import known_targets

    if table is None:
        return None
    path = regular_file(table)
    _, form = read_first_line(path, reading.form if reading.form.is_factored else None)
    reading.check_form(path, form)
    return known_targets(parse_table(read_lines(path), path, form=form), sources, reading)


def _print(proposals: Proposals, given: Sampling, unit: str, *, first: bool) -> None:
    if given.layout == "text":
        print_out(harmless("\n".join([*_as_text(proposals, given.top, unit), ""])))
    elif lines := [TSV_COLUMNS] * first + _as_tsv(proposals, given.top):
        print_out("\n".join(lines))


def _as_text(proposals: Proposals, top: int, unit: str) -> list[str]:
    """Format a source and its best targets for people; invalid UTF-8 becomes surrogates."""
    from moses_rnn.translation.proposals import Totals

    title = Totals().add(proposals).summary(unit)
    title += ", the table lacks this source" if proposals.is_lacking else ""
    lines = [f"{as_str(proposals.source)}   ({title})"]
    for proposal in proposals.best[:top]:
        times = f"  ×{proposal.times:,}" if proposal.times > 1 else ""
        new = "  not in the table" if proposal.in_table is False else ""
        lines.append(f"    {proposal.log_prob:z8.3f}  {as_str(proposal.target) or '(nothing)'}{times}{new}")
    return lines


def _as_tsv(proposals: Proposals, top: int) -> list[str]:
    """Return lines of TSV_COLUMNS; `in_table` is empty without a table, or if it lacks the source."""
    marks, source = {True: "yes", False: "no", None: ""}, as_str(proposals.source)
    rows = (
        (source, rank, as_str(one.target), f"{one.log_prob:.6f}", one.times, marks[one.in_table])
        for rank, one in enumerate(proposals.best[:top], start=1)
    )
    return ["\t".join(map(str, row)) for row in rows]
