"""Those subcommands of moses-rnn-analyse that look at the sources of a scored phrase table and their targets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.analyse.options import (
    SORTED,
    column_option,
    layout_option,
    open_table,
    progress,
    quiet_option,
    seed_option,
)
from moses_rnn.cli.command import CONTEXT, FiniteFloat, Program, put, reports_errors, say, takes
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.analysis.scored_table import ScoredTable
    from moses_rnn.analysis.tables import SourceGroup
    from moses_rnn.files.metered import Advanced

TARGETS_EPILOG = f"""\b
Example: long sources seen often and seldom; other limits, as a table of LaTeX; given ones:
  moses-rnn-analyse targets phrase-table.rnn.gz
  moses-rnn-analyse targets phrase-table.rnn.gz --min-count 100 --max-count 2 --seed 7 --format latex
  moses-rnn-analyse targets phrase-table.rnn.gz --source "the old man" --top 5

A source is drawn by the seed and its own words, so that other tables of the same text give the same ones. Of equally
good targets, the table's first one stands first. {SORTED}
"""


@dataclass(frozen=True, kw_only=True)
class TargetsRequest:
    """What the command line asks for."""

    phrase_table: str
    sources: tuple[str, ...]
    kind: str
    count: int
    min_words: int
    min_targets: int | None
    min_count: float | None
    max_count: float
    top: int
    seed: int
    column: int | None
    layout: str
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=TARGETS_EPILOG)
@click.argument("phrase_table")
@click.option(
    "--source",
    "sources",
    multiple=True,
    help="A source phrase, as it stands in the table; may be repeated [default: long ones are chosen]",
)
@click.option(
    "--choose",
    "kind",
    type=click.Choice(["frequent", "rare", "both"]),
    default="both",
    show_default=True,
    help="Which long source phrases",
)
@click.option("--count", type=click.IntRange(1), default=3, show_default=True, help="How many of each kind")
@click.option("--min-words", type=click.IntRange(1), default=4, show_default=True, help="Their least length")
@click.option("--min-targets", type=click.IntRange(1), help="Their least number of targets [default: that of --top]")
@click.option(
    "--min-count",
    type=FiniteFloat(0),
    help="Draw frequent ones from all that were extracted at least N times [default: take the most frequent]",
)
@click.option(
    "--max-count",
    type=FiniteFloat(1),
    default=3,
    show_default=True,
    help="Draw rare ones from all that were extracted at most N times",
)
@click.option("--top", type=click.IntRange(1), default=3, show_default=True, help="Targets of each")
@seed_option
@column_option
@layout_option
@quiet_option
@reports_errors
@takes(TargetsRequest)
def targets(request: TargetsRequest) -> None:
    """Show the best targets of source phrases by the table's p(target|source) and by the RNN (the paper's Table 2)."""
    from moses_rnn.analysis.tables import as_grid, as_text
    from moses_rnn.formats.grids import LAYOUTS

    table = open_table(request.phrase_table, request.column)
    with progress(quiet=request.quiet) as advanced:
        groups = _given(table, request.sources, advanced) if request.sources else _chosen(table, request, advanced)
    if request.layout == "text":
        put(as_text(groups, table.column, request.top))
    else:
        put(LAYOUTS[request.layout](as_grid(groups, table.column, request.top)))


def _given(table: ScoredTable, sources: tuple[str, ...], advanced: Advanced) -> list[SourceGroup]:
    from moses_rnn.analysis.selection import targets_of
    from moses_rnn.analysis.tables import SourceGroup
    from moses_rnn.formats.phrase_forms import words

    there = list(targets_of(table.sources(advanced), [os.fsencode(source) for source in sources]))
    if not there:
        wanted = ", ".join(map(repr, sources))
        raise InputError(f"{table.path}: expected source phrases {wanted}, found none")
    names = {tuple(words(one.source)) for one in there}
    for source in sources:
        if tuple(words(os.fsencode(source))) not in names:
            say(f"warning: {table.path}: has no source phrase {source!r}")
    return [SourceGroup("", there)]


def _chosen(table: ScoredTable, request: TargetsRequest, advanced: Advanced) -> list[SourceGroup]:
    from moses_rnn.analysis.selection import select
    from moses_rnn.analysis.tables import SourceGroup, long_sources

    kinds = long_sources(
        request.count,
        min_words=request.min_words,
        min_targets=request.min_targets or request.top,
        min_count=request.min_count,
        max_count=request.max_count,
        seed=request.seed,
    )
    wanted = list(kinds.values()) if request.kind == "both" else [kinds[request.kind]]
    selections = select(table.sources(advanced), wanted)
    if not any(selection.sources for selection in selections):
        limits = "; or ".join(str(one.limits) for one in wanted)
        raise InputError(f"{table.path}: expected source phrases of {limits}, found none")
    return [SourceGroup(selection.wanted.title, selection.sources, str(selection)) for selection in selections]


SUMMARY_EPILOG = f"""\b
Example: over all source phrases of four words and more:
  moses-rnn-analyse summary phrase-table.rnn.gz --min-words 4

Whether the paper's observations hold: does the RNN prefer shorter targets, does it follow counts? {SORTED}
"""


@dataclass(frozen=True, kw_only=True)
class SummaryRequest:
    """What the command line asks for."""

    phrase_table: str
    min_words: int
    min_targets: int
    sample: int
    seed: int
    column: int | None
    layout: str
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=SUMMARY_EPILOG)
@click.argument("phrase_table")
@click.option("--min-words", type=click.IntRange(1), default=1, show_default=True, help="Leave shorter sources out")
@click.option(
    "--min-targets", type=click.IntRange(2), default=2, show_default=True, help="Leave sources with fewer targets out"
)
@click.option("--sample", type=click.IntRange(2), default=100_000, show_default=True, help="Pairs to draw")
@seed_option
@column_option
@layout_option
@quiet_option
@reports_errors
@takes(SummaryRequest)
def summary(request: SummaryRequest) -> None:
    """Sum up what the table and the RNN prefer: lengths, agreement, and correlation with counts."""
    from moses_rnn.analysis.preferences import as_grid, notes, summarise
    from moses_rnn.formats.grids import LAYOUTS

    table = open_table(request.phrase_table, request.column)
    with progress(quiet=request.quiet) as advanced:
        figures = summarise(
            table,
            table.sources(advanced),
            min_words=request.min_words,
            min_targets=request.min_targets,
            sample_size=request.sample,
            seed=request.seed,
        )
    put(LAYOUTS[request.layout](as_grid(figures)))
    if request.layout == "text":
        put("\n".join(notes(figures)))


TABLE_COMMANDS = (targets, summary)
