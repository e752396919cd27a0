"""moses-rnn-analyse: what a scored table says."""

from __future__ import annotations

import os
from pathlib import Path

import click

from moses_rnn import __version__
from moses_rnn.cli.command import CONTEXT, ProgramGroup, put, reports_errors, say
from moses_rnn.errors import InputError

TABLE_SCORES = 4  # what phrase-extract writes

EPILOG = """\b
Example:
  moses-rnn-analyse targets phrase-table.rnn.gz --count 3
  moses-rnn-analyse targets phrase-table.rnn.gz --source "the old man" --top 5
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
@click.version_option(__version__)
def main() -> None:
    """Look at a phrase table that moses-rnn-score has scored, and at what came of it."""


@main.command(context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.option(
    "--source",
    "sources",
    multiple=True,
    help="A source phrase, as it stands in the table; may be repeated [default: frequent ones]",
)
@click.option("--count", type=click.IntRange(1), default=3, show_default=True, help="How many frequent source phrases")
@click.option("--min-words", type=click.IntRange(1), default=3, show_default=True, help="Their least length")
@click.option("--top", type=click.IntRange(1), default=3, show_default=True, help="Targets of each")
@click.option("--column", type=int, default=-1, show_default=True, help="The score to compare, from 0; -1 is the last")
@reports_errors
def targets(phrase_table: str, sources: tuple[str, ...], count: int, min_words: int, top: int, column: int) -> None:
    """Show the best targets of source phrases by the table's p(target|source) and by the RNN (the paper's Table 2)."""
    from moses_rnn.analysis.tables import frequent_sources, side_by_side, targets_of
    from moses_rnn.formats.phrase_table import DIRECT_COLUMN, first_look, parse_table
    from moses_rnn.formats.streams import existing_input, read_lines

    table = existing_input(phrase_table)
    _, form = first_look(table)
    lines = parse_table(read_lines(table), table, form=form)
    if sources:
        found = list(targets_of(lines, [os.fsencode(source) for source in sources]))
    else:
        found = frequent_sources(lines, count, min_words=min_words, min_targets=top)
    if not found:
        wanted = ", ".join(repr(source) for source in sources) or f"of {min_words} words and {top} targets"
        raise InputError(f"{table}: expected source phrases {wanted}, found none")
    scores = len(found[0].targets[0][1])
    if scores <= DIRECT_COLUMN:
        raise InputError(
            f"{table}: expected p(target|source) as score {DIRECT_COLUMN + 1}, as phrase-extract writes it, "
            f"found {scores} scores"
        )
    if not -scores <= column < scores:
        raise InputError(f"{table}: expected --column from 0 to {scores - 1}, the scores of this table, found {column}")
    if column == -1 and scores <= TABLE_SCORES:
        raise InputError(
            f"{table}: expected a scored table, found {scores} scores\n"
            f"  Score it with moses-rnn-score {table}, or name the column to compare with --column."
        )
    for source in found:
        put("\n".join([*side_by_side(source, column, top), ""]))


RESULTS_EPILOG = """\b
Example, as `make results` calls it:
  moses-rnn-analyse results work --target fr --system baseline --system rnn --seed 1 --seed 2 --seed 3
"""


@main.command(context_settings=CONTEXT, epilog=RESULTS_EPILOG)
@click.argument("work", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="Suffix of the target language")
@click.option("--system", "systems", multiple=True, required=True, help="A system, the baseline first; repeat it")
@click.option("--seed", "seeds", multiple=True, required=True, help="Of a tuning; repeat it")
@click.option("--samples", type=click.IntRange(1), default=1000, show_default=True, help="Of the paired bootstrap")
@click.option("-o", "--output", help="Write all numbers as JSON")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
def results(
    work: Path,
    target: str,
    systems: tuple[str, ...],
    seeds: tuple[str, ...],
    samples: int,
    output: str | None,
    *,
    force: bool,
) -> None:
    """Compare tuned and decoded systems in the folder WORK (the paper's Table 1)."""
    from moses_rnn.analysis.results import Place, as_json, table, warnings
    from moses_rnn.analysis.results import results as compared
    from moses_rnn.formats.outputs import OutputFile

    found = compared(Place(work, target), systems, seeds, samples=samples)
    if output:
        with OutputFile(output, force=force) as file:
            file.commit(as_json(found))
    for text in warnings(found):
        say(f"warning: {text}")
    put("\n".join(table(found)))
