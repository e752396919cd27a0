"""What the subcommands of moses-rnn-analyse share that read a scored phrase table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from moses_rnn.analysis.scored_table import Advanced, ScoredTable

column_option = click.option(
    "--column", type=int, default=-1, show_default=True, help="The RNN's score, from 0; -1 is the last"
)
layout_option = click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "markdown", "latex", "csv"]),
    default="text",
    show_default=True,
)
seed_option = click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of what is drawn")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress")
force_option = click.option("--force", is_flag=True, help="Replace existing outputs")

SORTED = "The table must be in the order of LC_ALL=C sort, as train-model.perl leaves it; it is read as a stream."


def open_table(path: str, column: int) -> ScoredTable:
    """The scored table that a user means."""
    from moses_rnn.analysis.scored_table import ScoredTable
    from moses_rnn.formats.streams import existing_input

    return ScoredTable.open(existing_input(path), column)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Advanced]:
    """Lines as they are read, shown on a terminal only."""
    from moses_rnn.cli.progress import Display

    display = Display("lines", quiet=quiet or not sys.stderr.isatty())
    try:
        yield display.show
    finally:
        display.close()
