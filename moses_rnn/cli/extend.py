"""moses-rnn extend: a phrase table in, the same table with pairs that the network proposes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import (
    check_inputs,
    choose_device,
    command,
    end_cleanly_on_sigterm,
    print_err,
    print_out,
    warn,
)
from moses_rnn.cli.inputs import choose_model, sound_signature
from moses_rnn.errors import number_of
from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.translation.requests import ExtensionRequest

if TYPE_CHECKING:
    from moses_rnn.models.model import Model
    from moses_rnn.translation.extend import Extended

EPILOG = """\b
Examples: phrases of a text that the table lacks; the same with an ini:
  moses-rnn extend phrase-table.gz --text test.en
  moses-rnn extend phrase-table.gz --text test.en --moses-ini moses.ini

The table's own lines stay byte for byte as they are. The table must be in the order of LC_ALL=C sort; new lines go in
that order too. Words that the network does not know are neither proposed nor translated. docs/extend.md describes the
columns of a new line. Exit codes: 0 done, 1 failure, 2 usage error, 3 table, text, model or ini refused.
"""


@command(EPILOG)
def main(request: ExtensionRequest) -> None:
    """Extend a Moses PHRASE_TABLE with phrase pairs that a network proposes."""
    _check_options(request)
    folder = choose_model(request.model, request.phrase_table)
    check_inputs(request.phrase_table, folder, request.text, request.inverse_model, request.moses_ini)
    end_cleanly_on_sigterm()
    from moses_rnn.cli.progress import progress
    from moses_rnn.score.checks import unit_warnings
    from moses_rnn.translation.extend import extend

    request = replace(request, device=choose_device(request.device, request.threads))
    models = [_open(folder, "source-to-target", request)]
    if request.inverse_model:
        models.append(_open(request.inverse_model, "target-to-source", request))
    stage = partial(progress, quiet=request.quiet)
    extended = extend(request, models, sound_signature(request.table), stage)
    warnings = (*unit_warnings(models[:1], on_sentences=False), *extended.warnings, *extended.ini.warnings)
    for line in () if request.quiet else _summary(request, extended):
        print_err(line)
    warn(*warnings)
    print_out("[feature]\n{}\n\n[weight]\n{}".format(*extended.ini.lines))


def _check_options(request: ExtensionRequest) -> None:
    if STANDARD_STREAM in (request.phrase_table, request.text, request.output, request.moses_ini):
        raise click.UsageError("PHRASE_TABLE, --text, --output and --moses-ini must be files, not -")


def _open(folder: Path, direction: str, request: ExtensionRequest) -> Model:
    from moses_rnn.models.open import check_learned, open_model

    model = open_model(folder, direction=direction)
    if not request.allow_misfit:
        check_learned(model)
    return model


def _summary(request: ExtensionRequest, extended: Extended) -> Iterator[str]:
    counts = extended.counts
    yield f"{number_of(extended.lines, 'line')}, {counts.lines:,} of them new: {request.new_table}"
    yield f"signature: {request.new_table}.json"
    if request.new_ini:
        yield f"ini: {request.new_ini}"
    yield (
        f"{number_of(extended.phrases, 'phrase')} of the text: {number_of(counts.lacking, 'was', 'were')} not "
        "in the table, "
        f"{number_of(counts.made, 'of these is', 'of these are')} now"
    )
    if extended.unknown_words:
        unknown = f"{extended.unknown_words:,} of the text's {number_of(extended.text_words, 'word')} "
        unknown += f"{'is' if extended.unknown_words == 1 else 'are'} unknown to the network"
        yield f"{unknown}: phrases with them stay as they were"
    yield (
        f"{number_of(counts.likely, 'target')} with log p of {request.min_log_prob:g} or more: {counts.empty:,} empty, "
        f"{counts.impossible:,} with words like [w] or a|b that no table holds, "
        f"{counts.surplus:,} beyond --top {request.top}"
    )
    fills = (f"{i} {fill}" if isinstance(fill, str) else f"{i} {fill:.6g}" for i, fill in enumerate(extended.fills, 1))
    yield f"columns of the new lines: {', '.join(fills)}"
