"""moses-rnn extend: a phrase table in, the same table with pairs that the network proposes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import (
    CONTEXT,
    FiniteFloat,
    Program,
    check_inputs,
    choose_device,
    end_cleanly_on_sigterm,
    print_err,
    print_out,
    reports_errors,
    takes,
    threads_option,
)
from moses_rnn.cli.options import choose_model, model_beside_option, sound_signature
from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.translation.options import ExtensionRequest

if TYPE_CHECKING:
    from moses_rnn.scorers.open import Model
    from moses_rnn.translation.extend import Extended

EPILOG = """\b
Example: what a text needs and the table lacks; more targets for sources with one or two; both, with an ini:
  moses-rnn extend phrase-table.gz --text test.en
  moses-rnn extend phrase-table.gz --fewer-than 3 --top 2
  moses-rnn extend phrase-table.gz --text test.en --fewer-than 3 --provenance column --moses-ini moses.ini

The table's own lines stay byte for byte as they are, but for the column of --provenance. New lines are put among them
in the order of LC_ALL=C sort, in which the table must be. Words that the network does not know are neither proposed nor
translated. docs/extend.md says what the columns of a new line hold. Exit codes: 0 done, 1 failure, 2 wrong command
line, 3 table, text, model or ini rejected.
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@model_beside_option
@click.option("-o", "--output", help="New table [default: PHRASE_TABLE's name + .extended.gz]")
@click.option(
    "--fewer-than", type=click.IntRange(2, 1000), help="Extend the table's sources that have fewer targets than that"
)
@click.option(
    "--text", help="Extend phrases of this text that the table lacks, a sentence a line; as the table's words"
)
@click.option("--longest", type=click.IntRange(1), default=7, show_default=True, help="Words of a source")
@click.option("--top", type=click.IntRange(1), default=3, show_default=True, help="New targets of a source, at most")
@click.option(
    "--min-log-prob",
    type=FiniteFloat(max=0),
    default=-0.7,
    show_default=True,
    help="Least log p(target | source), natural, with the end symbols of both sides",
)
@click.option(
    "--inverse-model",
    type=click.Path(path_type=Path),
    help="A model of moses-rnn-train --inverse, for p(source | target)",
)
@click.option(
    "--provenance",
    type=click.Choice(["none", "column"]),
    default="none",
    show_default=True,
    help="Add a column of exp(1) on new lines and exp(0) on the others, a feature of 1 and 0",
)
@click.option("--moses-ini", help="Also write moses.extended.ini beside the new table, made from this ini")
@click.option("--allow-misfit", is_flag=True, help="Take a model that has learned nothing, which is refused otherwise")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@threads_option
@click.option("--force", is_flag=True, help="Replace existing outputs")
@click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr")
@reports_errors
@takes(ExtensionRequest)
def main(request: ExtensionRequest) -> None:
    """Extend a Moses PHRASE_TABLE by phrase pairs that a network proposes."""
    _check_options(request)
    folder = choose_model(request.model, request.phrase_table)
    check_inputs(request.phrase_table, folder, request.text, request.inverse_model, request.moses_ini)
    end_cleanly_on_sigterm()
    import torch

    from moses_rnn.cli.progress import progress
    from moses_rnn.score.checks import unit_warnings
    from moses_rnn.translation.extend import extend

    if request.threads:
        torch.set_num_threads(request.threads)
    request = replace(request, device=choose_device(request.device))
    models = [_open(folder, "source-to-target", request)]
    if request.inverse_model:
        models.append(_open(request.inverse_model, "target-to-source", request))
    stage = partial(progress, quiet=request.quiet)
    extended = extend(request, models, sound_signature(request.table), stage)
    warnings = (*unit_warnings(models[0], on_sentences=False), *extended.warnings, *extended.ini.warnings)
    summary = [] if request.quiet else _summary(request, extended)
    for line in [*summary, *(f"warning: {text}" for text in warnings)]:
        print_err(line)
    print_out("[feature]\n{}\n\n[weight]\n{}".format(*extended.ini.lines))


def _check_options(request: ExtensionRequest) -> None:
    """Refuse options that contradict each other or would do nothing."""
    if request.fewer_than is None and request.text is None:
        raise click.UsageError("nothing to extend: give --fewer-than, --text or both")
    if STANDARD_STREAM in (request.phrase_table, request.text, request.output, request.moses_ini):
        raise click.UsageError("what is read and written are files, not standard streams: the table is read twice")


def _open(folder: Path, direction: str, request: ExtensionRequest) -> Model:
    from moses_rnn.scorers.open import check_learned, open_model

    model = open_model(folder, direction=direction)
    if not request.allow_misfit:
        check_learned(model)
    return model


def _summary(request: ExtensionRequest, extended: Extended) -> Iterator[str]:
    counts = extended.counts
    yield f"{extended.lines:,} lines, {counts.lines:,} of them new: {request.new_table}"
    yield f"signature: {request.new_table}.json"
    if request.new_ini:
        yield f"ini: {request.new_ini}"
    if request.fewer_than:
        few = f"{counts.few:,} sources with fewer than {request.fewer_than} targets, {counts.extended:,} extended"
        yield f"{few}; {extended.unknown_sources:,} more have words that the network does not know"
    if request.text:
        yield from _summarise_text(extended)
    yield (
        f"{counts.likely:,} targets of log p {request.min_log_prob:g} and more: {counts.there:,} in the table "
        f"already, {counts.empty:,} empty, {counts.surplus:,} beyond --top {request.top}"
    )
    fills = (f"{i} {fill}" if isinstance(fill, str) else f"{i} {fill:.6g}" for i, fill in enumerate(extended.fills, 1))
    yield f"columns of the new lines: {', '.join(fills)}"


def _summarise_text(extended: Extended) -> Iterator[str]:
    counts = extended.counts
    yield (
        f"{extended.phrases:,} phrases of the text, {counts.lacking:,} of them not in the table before, "
        f"{counts.made:,} of these now"
    )
    if extended.unknown_words:
        unknown = f"{extended.unknown_words:,} of the text's {extended.text_words:,} words are unknown to the network"
        yield f"{unknown}: what has them is as it was"
