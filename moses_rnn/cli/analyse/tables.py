"""Those subcommands of moses-rnn-analyse that look at the sources of a scored phrase table and their targets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

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
from moses_rnn.cli.command import CONTEXT, FiniteFloat, put, reports_errors, say
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.analysis.scored_table import Advanced, ScoredTable
    from moses_rnn.analysis.tables import Section

TARGETS_EPILOG = f"""\b
Example: long sources seen often and seldom; other limits, as a table of LaTeX; given ones:
  moses-rnn-analyse targets phrase-table.rnn.gz
  moses-rnn-analyse targets phrase-table.rnn.gz --min-count 100 --max-count 2 --seed 7 --format latex
  moses-rnn-analyse targets phrase-table.rnn.gz --source "the old man" --top 5

A source is drawn by the seed and its own words, so that other tables of the same text give the same ones. Of equally
good targets, the table's first one stands first. {SORTED}
"""


@click.command(context_settings=CONTEXT, epilog=TARGETS_EPILOG)
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
    help="Draw frequent ones from all that were extracted so often [default: take the most frequent]",
)
@click.option(
    "--max-count",
    type=FiniteFloat(1),
    default=3,
    show_default=True,
    help="Draw rare ones from all that were extracted at most so often",
)
@click.option("--top", type=click.IntRange(1), default=3, show_default=True, help="Targets of each")
@seed_option
@column_option
@layout_option
@quiet_option
@reports_errors
def targets(
    phrase_table: str,
    sources: tuple[str, ...],
    top: int,
    column: int | None,
    layout: str,
    *,
    quiet: bool,
    **options: Any,
) -> None:
    """Show the best targets of source phrases by the table's p(target|source) and by the RNN (the paper's Table 2)."""
    from moses_rnn.analysis.grids import LAYOUTS
    from moses_rnn.analysis.tables import as_grid, as_text

    table = open_table(phrase_table, column)
    options["min_targets"] = options["min_targets"] or top
    with progress(quiet=quiet) as advanced:
        sections = _given(table, sources, advanced) if sources else _chosen(table, options, advanced)
    if layout == "text":
        put(as_text(sections, table.column, top))
    else:
        put(LAYOUTS[layout](as_grid(sections, table.column, top)))


def _given(table: ScoredTable, sources: tuple[str, ...], advanced: Advanced) -> list[Section]:
    from moses_rnn.analysis.selection import targets_of
    from moses_rnn.analysis.tables import Section
    from moses_rnn.formats.phrase_forms import words

    found = list(targets_of(table.sources(advanced), [os.fsencode(source) for source in sources]))
    if not found:
        wanted = ", ".join(map(repr, sources))
        raise InputError(f"{table.path}: expected source phrases {wanted}, found none")
    there = {tuple(words(one.source)) for one in found}
    for source in sources:
        if tuple(words(os.fsencode(source))) not in there:
            say(f"warning: {table.path}: has no source phrase {source!r}")
    return [Section("", found)]


def _chosen(table: ScoredTable, options: dict[str, Any], advanced: Advanced) -> list[Section]:
    from moses_rnn.analysis.selection import select
    from moses_rnn.analysis.tables import Section, long_sources

    kind = options.pop("kind")
    kinds = long_sources(options.pop("count"), **options)
    wanted = list(kinds.values()) if kind == "both" else [kinds[kind]]
    found = select(table.sources(advanced), wanted)
    if not any(selection.sources for selection in found):
        limits = "; or ".join(str(one.limits) for one in wanted)
        raise InputError(f"{table.path}: expected source phrases of {limits}, found none")
    return [Section(selection.wanted.title, selection.sources, str(selection)) for selection in found]


SUMMARY_EPILOG = f"""\b
Example: over all source phrases of four words and more:
  moses-rnn-analyse summary phrase-table.rnn.gz --min-words 4

Whether the paper's observations hold: does the RNN prefer shorter targets, does it follow counts? {SORTED}
"""


@click.command(context_settings=CONTEXT, epilog=SUMMARY_EPILOG)
@click.argument("phrase_table")
@click.option("--min-words", type=click.IntRange(1), default=1, show_default=True, help="Leave shorter sources out")
@click.option(
    "--min-targets", type=click.IntRange(2), default=2, show_default=True, help="And those with fewer targets"
)
@click.option("--sample", type=click.IntRange(2), default=100_000, show_default=True, help="Pairs to draw")
@seed_option
@column_option
@layout_option
@quiet_option
@reports_errors
def summary(
    phrase_table: str,
    min_words: int,
    min_targets: int,
    sample: int,
    seed: int,
    column: int | None,
    layout: str,
    *,
    quiet: bool,
) -> None:
    """Sum up what the table and the RNN prefer: lengths, agreement, and correlation with counts."""
    from moses_rnn.analysis.grids import LAYOUTS
    from moses_rnn.analysis.preferences import as_grid, notes, summarise

    table = open_table(phrase_table, column)
    limits = {"min_words": min_words, "min_targets": min_targets}
    with progress(quiet=quiet) as advanced:
        found = summarise(table, table.sources(advanced), **limits, sample_size=sample, seed=seed)
    put(LAYOUTS[layout](as_grid(found)))
    if layout == "text":
        put("\n".join(notes(found)))


TABLE_COMMANDS = (targets, summary)
