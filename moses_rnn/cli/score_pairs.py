"""moses-rnn-score --format tsv: pairs of plain lines of text, with their log p as a further column."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from moses_rnn.cli.command import choose_device, print_err, print_json
from moses_rnn.errors import ArgumentError, InputError, ScoreError

if TYPE_CHECKING:
    from moses_rnn.api.models import Model
    from moses_rnn.api.pairs import Pair
    from moses_rnn.cli.score import Scoring
    from moses_rnn.files.streams import Meter

LINES = 4096  # written together
PAIR = re.compile(r"pairs\[(\d+)\]")

# Options of the command that mean something here; the others are of phrase tables
TAKEN = {
    *("phrase_table", "new_table", "out", "models", "layout", "device", "precision", "threads"),
    *("allow_misfit", "force", "as_json", "quiet"),
}


def refuse_options_of_tables(context: click.Context) -> None:
    """Raise click.UsageError if an option was given that says something of phrase tables alone."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name in context.params and name not in TAKEN:
            raise click.UsageError(f"{parameter.opts[0]} is for phrase tables: it cannot go with --format tsv")


def score_pairs(given: Scoring) -> None:
    """Write every line of a table of pairs, with the natural log p of its target behind it.

    Raises:
        InputError: a line is not a pair, or not one that the model reads; it is named.
        CheckpointError: a model cannot be read, or has learned nothing.
    """
    import moses_rnn
    from moses_rnn.cli.progress import Display
    from moses_rnn.files.outputs import OutputFile, StandardOutput
    from moses_rnn.files.streams import Meter
    from moses_rnn.score.checks import check_learned
    from moses_rnn.scorers.open import model_files, needs_alignments, open_model

    table, place, models = given.table, given.output, given.models
    if not given.allow_misfit:
        for folder in models:
            check_learned(open_model(folder))
    combine = "mean-log" if len(models) > 1 else None
    precision = given.precision or "fp32"
    model = moses_rnn.load(
        list(models), device=choose_device(given.device), precision=precision, threads=given.threads, combine=combine
    )
    inputs = (table, *(path for folder in models for path in model_files(folder)))
    output = StandardOutput() if place == "-" else OutputFile(place, force=given.force, inputs=inputs)
    display, meter = Display("pairs", quiet=given.quiet), Meter()
    lowest, highest, done = math.inf, -math.inf, 0
    scored = _scored(model, table, meter, aligned=any(map(needs_alignments, models)))
    try:
        with output:
            while block := list(islice(scored, LINES)):
                output.append(b"".join(b"%b\t%.9g\n" % pair for pair in block))
                scores = [score for _, score in block]
                lowest, highest, done = min(lowest, *scores), max(highest, *scores), done + len(block)
                display.show(done, meter.share)
            output.commit()
    finally:
        display.close()
    if given.as_json:
        record = {"table": table, "output": place, "lines": done, "name": model.name, "meaning": model.meaning}
        print_json({**record, "lowest": lowest, "highest": highest})
    elif not given.quiet:
        print_err(f"{done:,} pairs in and out: {place}")


def _scored(model: Model, table: str, meter: Meter, *, aligned: bool) -> Iterator[tuple[bytes, float]]:
    """Each line without its end, and log p of its pair; an error names the line.

    `aligned` says whether the third column holds word alignments, by which the model annotates rare words.
    """
    from moses_rnn.files.streams import read_lines
    from moses_rnn.table.tab_separated import TAB, split_pair

    read: deque[bytes] = deque()

    def pairs() -> Iterator[Pair]:
        for number, line in enumerate(read_lines(table, meter=meter), start=1):
            read.append(line.removesuffix(b"\n"))
            source, target = split_pair(line, table, number)
            further = read[-1].split(TAB)[2:]
            yield (source, target, further[0]) if aligned and further else (source, target)

    try:
        for score in model.score_iter(pairs()):
            yield read.popleft(), score
    except (ArgumentError, ScoreError) as error:
        error.message = PAIR.sub(lambda match: f"{table}:{int(match[1]) + 1}", error.message)
        if isinstance(error, ScoreError):
            raise
        raise InputError(error.message, advice=error.advice) from error
