"""moses-rnn-score --format tsv: pairs of plain lines of text, with their log p as a further column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from moses_rnn.cli.command import choose_device, print_err, print_json

if TYPE_CHECKING:
    from moses_rnn.api.pairs import BytesPair
    from moses_rnn.cli.score import Scoring

# Options of the command that mean something here; the others are of phrase tables
TAKEN = {
    *("phrase_table", "place", "new_table", "models", "layout", "device", "precision", "threads"),
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
    from moses_rnn.api import models as api
    from moses_rnn.cli.options import output_to
    from moses_rnn.cli.progress import progress
    from moses_rnn.files.streams import Meter, read_lines
    from moses_rnn.scorers.open import check_learned, model_files, needs_alignments, open_model

    table, models = given.table, given.models
    if not given.allow_misfit:
        for folder in models:
            check_learned(open_model(folder))
    model = api.load(
        models,
        device=choose_device(given.device),
        precision=given.precision or "fp32",
        threads=given.threads,
        combine="mean-log" if len(models) > 1 else None,
    )
    inputs = (table, *(path for folder in models for path in model_files(folder)))
    lowest, highest, done, meter = math.inf, -math.inf, 0, Meter()
    lines, copies = itertools.tee(read_lines(table, meter=meter))
    pairs = _pairs(lines, table, aligned=any(map(needs_alignments, models)))
    with output_to(given.output, given.force, inputs) as output, progress("pairs", quiet=given.quiet) as advanced:
        for scores in api.score_pairs(model, pairs):
            scored = zip(scores.tolist(), copies, strict=False)
            output.append(b"".join(b"%b\t%.9g\n" % (line.removesuffix(b"\n"), score) for score, line in scored))
            lowest, highest, done = min(lowest, scores.min()), max(highest, scores.max()), done + len(scores)
            advanced(done, meter.share)
        output.commit()
    if given.as_json:
        record = {"table": table, "output": given.output, "lines": done, "name": model.name, "meaning": model.meaning}
        print_json({**record, "lowest": float(lowest), "highest": float(highest)})
    elif not given.quiet:
        print_err(f"{done:,} pairs in and out: {given.output}")


def _pairs(lines: Iterable[bytes], table: str, *, aligned: bool) -> Iterator[BytesPair]:
    """A pair of each line; `aligned` says whether the third column holds word alignments, which the model needs."""
    from moses_rnn.api.pairs import BytesPair
    from moses_rnn.table.tab_separated import TAB, split_pair

    for number, line in enumerate(lines, start=1):
        pair = BytesPair(f"{table}:{number}", *split_pair(line, table, number))
        further = line.removesuffix(b"\n").split(TAB)[2:]
        yield pair._replace(alignment=further[0]) if aligned and further else pair
