"""moses-rnn-score --format tsv: pairs of plain lines of text, with their log p as a further column."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from moses_rnn.cli.command import say
from moses_rnn.cli.summaries import put_json
from moses_rnn.errors import ArgumentError, InputError, ScoreError

if TYPE_CHECKING:
    from moses_rnn.api.models import Model
    from moses_rnn.files.outputs import Output

LINES = 4096  # scored and written together
PAIR = re.compile(r"pairs\[(\d+)\]")

# Options of the command that mean something here; the others are of phrase tables
TAKEN = {
    *("phrase_table", "new_table", "output", "models", "layout", "device", "precision", "threads"),
    *("allow_misfit", "force", "as_json", "quiet"),
}


@dataclass(frozen=True, kw_only=True)
class PairScoring:
    """Which pairs, by what and whereto."""

    table: str
    output: str
    models: Sequence[Path]
    device: str
    precision: str
    threads: int | None
    allow_misfit: bool
    force: bool
    as_json: bool
    quiet: bool


def refuse_options_of_tables(context: click.Context) -> None:
    """Raise click.UsageError if an option was given that says something of phrase tables alone."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name in context.params and name not in TAKEN:
            raise click.UsageError(f"{parameter.opts[0]} is for phrase tables: it cannot go with --format tsv")


def score_pairs(request: PairScoring) -> None:
    """Write every line with the natural log p of its target behind it.

    Raises:
        InputError: a line is not a pair, or not one that the model reads; it is named.
        CheckpointError: a model cannot be read, or has learned nothing.
    """
    import moses_rnn
    from moses_rnn.files.outputs import OutputFile, StandardOutput
    from moses_rnn.producers.open import model_files, open_model
    from moses_rnn.scoring.fit import check_learned

    if not request.allow_misfit:
        for folder in request.models:
            check_learned(open_model(folder))
    folders: list[str | Path] = list(request.models)
    model = moses_rnn.load(
        folders,
        device=request.device,
        precision=request.precision,
        threads=request.threads,
        combine="mean-log" if len(folders) > 1 else None,
    )
    inputs = (request.table, *(path for folder in request.models for path in model_files(folder)))
    output = (
        StandardOutput() if request.output == "-" else OutputFile(request.output, force=request.force, inputs=inputs)
    )
    with output:
        record = {"table": request.table, "output": request.output, **_write(request, model, output)}
        output.commit()
    if request.as_json:
        put_json(record)
    elif not request.quiet:
        say(f"{record['lines']:,} pairs in and out: {request.output}")


def _write(request: PairScoring, model: Model, output: Output) -> dict[str, Any]:
    """Score and write; returns what is to be told of it."""
    from moses_rnn.cli.progress import Display
    from moses_rnn.files.metered import Meter
    from moses_rnn.files.streams import read_lines

    display, meter = Display("pairs", quiet=request.quiet), Meter()
    lowest, highest, done = math.inf, -math.inf, 0
    lines = read_lines(request.table, meter=meter)
    try:
        while block := list(islice(lines, LINES)):
            scores = list(_scores(model, block, request.table, done))
            pieces = (
                b"%b\t%.9g\n" % (line.removesuffix(b"\n"), score) for line, score in zip(block, scores, strict=True)
            )
            output.append(b"".join(pieces))
            lowest, highest, done = min(lowest, *scores), max(highest, *scores), done + len(block)
            display.show(done, meter.share)
    finally:
        display.close()
    return {"lines": done, "name": model.name, "meaning": model.meaning, "lowest": lowest, "highest": highest}


def _scores(model: Model, block: Sequence[bytes], name: str, before: int) -> Iterator[float]:
    """log p of each line; an error names the line."""
    from moses_rnn.formats.tab_separated import split_pair

    pairs = [split_pair(line, name, number) for number, line in enumerate(block, start=before + 1)]
    try:
        yield from model.score_iter(pairs)
    except (ArgumentError, ScoreError) as error:
        error.message = PAIR.sub(lambda match: f"{name}:{before + int(match[1]) + 1}", error.message)
        if isinstance(error, ScoreError):
            raise
        raise InputError(error.message, advice=error.advice) from error
