"""moses-rnn-sample: target phrases that a network itself proposes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn import __version__
from moses_rnn.cli.command import CONTEXT, CONTROL, FiniteFloat, Program, choose_device, put, reports_errors, say

if TYPE_CHECKING:
    from moses_rnn.producers.open import OpenModel
    from moses_rnn.translation.proposals import Known, Proposals, Proposer, Reading, Write

SAMPLING: dict[str, Any] = {"samples": 50, "temperature": 1.0, "seed": 1}  # defaults of what --beam has no use for

EPILOG = """\b
Example: the best of 50 samples and what of them the table has not; the likeliest targets of all; many sources:
  moses-rnn-sample phrase-table.rnn-model --source "far from the" --table phrase-table.gz
  moses-rnn-sample phrase-table.rnn-model --source "far from the" --beam 50
  zcat phrase-table.gz | sed 's/ *|||.*//' | uniq | moses-rnn-sample phrase-table.rnn-model - --format tsv > samples.tsv

Samples are drawn word by word from p(word | words before, source) up to the end symbol, then ranked by the scorer's
log p(target | source): natural, with the end symbols of both sides, whatever the temperature. ×3: drawn three times. A
source's samples depend on the seed and the options, not on other sources. Gaps of rules are numbered: [X][X]1. A model
of moses-rnn-train --inverse reads target phrases and writes source phrases. Exit codes: 0 done, 1 failure, 2 wrong
command line, 3 input or model rejected.
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", metavar="[SOURCES]", required=False)
@click.option("--source", "sources", multiple=True, help="A source phrase; may be repeated")
@click.option("--samples", type=click.IntRange(1), help=f"Of each source [default: {SAMPLING['samples']}]")
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, help="Targets to print of each source")
@click.option("--beam", type=click.IntRange(1), help="Search with a beam of this width instead of sampling")
@click.option(
    "--temperature",
    type=FiniteFloat(0, min_open=True),
    help=f"Below 1, likely words are drawn more often; above, less [default: {SAMPLING['temperature']:g}]",
)
@click.option("--seed", type=click.IntRange(0), help=f"Of the samples [default: {SAMPLING['seed']}]")
@click.option("--no-unk", is_flag=True, help="Never write <unk>; log p stays the model's")
@click.option("--max-words", type=click.IntRange(1), default=50, show_default=True, help="Of a target")
@click.option("--table", help="Mark what this phrase table has not, and print its share")
@click.option("--format", "layout", type=click.Choice(["text", "tsv"]), default="text", show_default=True)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp64"]),
    default="fp64",
    show_default=True,
    help="With fp32, one of some ten thousand samples may depend on what else is sampled",
)
@click.option("--threads", type=click.IntRange(1), help="CPU threads [default: all cores]")
@click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr")
@click.version_option(__version__)
@reports_errors
def main(model: Path, file: str | None, sources: tuple[str, ...], layout: str, quiet: bool, **options: Any) -> None:
    """Propose target phrases for source phrases by the network MODEL alone (the paper's Table 3).

    Source phrases are those of --source, then the lines of the file SOURCES; - is stdin.
    """
    from moses_rnn.cli.progress import Display
    from moses_rnn.producers.open import open_model
    from moses_rnn.translation.proposals import Reading, Totals

    _check_options(file, sources, options)
    device = choose_device(options["device"])
    opened = open_model(model)
    reading = Reading(opened.checkpoint)
    wanted = _sources(file, sources, reading)
    proposer = _proposer(opened, reading, _known(options["table"], wanted, reading), device, options)
    totals, unit = Totals(), "targets" if options["beam"] else "samples"
    # On a terminal the targets themselves show how far the work is.
    display = Display("sources", quiet=quiet or sys.stdout.isatty() or not sys.stderr.isatty())
    for found in proposer(wanted):
        _print(found, layout, options["top"], unit, first=not totals.sources)
        totals.add(found)
        display.show(totals.sources, totals.sources / len(wanted))
    display.close()
    if not quiet and len(wanted) > 1:
        say(f"{len(wanted):,} sources: {totals.summary(unit)}")
    for text in totals.warnings(options["max_words"]):
        say(f"warning: {text}")


def _check_options(file: str | None, sources: Sequence[str], options: dict[str, Any]) -> None:
    """Refuse what contradicts itself or would do nothing."""
    if not file and not sources:
        raise click.UsageError("nothing to read: give --source, or SOURCES (- is stdin)")
    idle = [name for name in SAMPLING if options[name] is not None]
    if options["beam"] and idle:
        raise click.UsageError(f"--{idle[0]} is about samples, and --beam searches instead")
    if file == options["table"] == "-":
        raise click.UsageError("SOURCES and --table cannot both be stdin")


def _sources(file: str | None, sources: Sequence[str], reading: Reading) -> list[bytes]:
    """All source phrases, in the network's words."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.translation.proposals import parse_sources

    found = list(parse_sources(map(os.fsencode, sources), "--source", reading))
    if file:
        path = existing_input(file)
        found += parse_sources(read_lines(path), path, reading)
    return found


def _known(table: str | None, wanted: Sequence[bytes], reading: Reading) -> Known | None:
    """The targets that the table has."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.phrase_table import first_look, parse_table
    from moses_rnn.translation.proposals import known_targets

    if table is None:
        return None
    path = existing_input(table)
    _, form = first_look(path, reading.form if reading.form.is_factored else None)
    reading.check_form(path, form)
    return known_targets(parse_table(read_lines(path), path, form=form), wanted, reading)


def _proposer(
    model: OpenModel, reading: Reading, known: Known | None, device: str, options: dict[str, Any]
) -> Proposer:
    """What writes targets, by sampling or search, and scores them."""
    import torch

    from moses_rnn.producers.base import Compute
    from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
    from moses_rnn.translation.proposals import Proposer
    from moses_rnn.translation.sampling import Sampler, SamplingConfig

    if options["threads"]:
        torch.set_num_threads(options["threads"])
    compute = Compute(device, options["precision"])
    network = model.make_stepper(compute)
    limits = {"max_words": options["max_words"], "allow_unknown": not options["no_unk"]}
    if options["beam"]:
        write: Write = BeamSearch(network, BeamConfig(options["beam"], options["top"], **limits))
    else:
        given = {name: default if options[name] is None else options[name] for name, default in SAMPLING.items()}
        write = Sampler(network, SamplingConfig(**given, **limits))
    return Proposer(reading, write, model.make_producer(compute).log_probs, known)


def _print(found: Proposals, layout: str, top: int, unit: str, *, first: bool) -> None:
    from moses_rnn.translation.proposals import TSV_COLUMNS, as_text, as_tsv

    if layout == "text":
        text = "\n".join([*as_text(found, top, unit), ""])
        put(CONTROL.sub(lambda control: f"\\x{ord(control.group()):02x}", text))  # it may command a terminal
    elif lines := [TSV_COLUMNS] * first + as_tsv(found, top):
        put("\n".join(lines))
