"""moses-rnn-analyse: what a scored table says."""

from __future__ import annotations

import os

import click

from moses_rnn import __version__
from moses_rnn.cli.command import CONTEXT, ProgramGroup, put, reports_errors
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
    """Look at a phrase table that moses-rnn-score has scored."""


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
    from moses_rnn.analysis.tables import DIRECT_COLUMN, frequent_sources, side_by_side, targets_of
    from moses_rnn.formats.phrase_table import parse_table
    from moses_rnn.formats.streams import existing_input, read_lines

    table = existing_input(phrase_table)
    lines = parse_table(read_lines(table), table)
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
