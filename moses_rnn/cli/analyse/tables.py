"""Those subcommands of moses-rnn analyse that look at the sources of a scored phrase table and their targets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from moses_rnn.analysis.choices import Column
from moses_rnn.analysis.grids import PICTURES
from moses_rnn.cli.analyse.options import (
    SEED,
    SORTED,
    Layout,
    kind_of,
    open_table,
    optional_output,
    progress,
)
from moses_rnn.cli.command import check_inputs, command, print_err, print_out
from moses_rnn.errors import InputError
from moses_rnn.options import Force, Option

if TYPE_CHECKING:
    from moses_rnn.analysis.agreement import Scatter
    from moses_rnn.analysis.scored_table import ScoredTable
    from moses_rnn.analysis.targets import SourceGroup
    from moses_rnn.files.streams import Advanced

TARGETS_EPILOG = f"""\b
Example: long sources seen often and seldom; others, as CSV; given ones:
  moses-rnn analyse targets phrase-table.rnn.gz
  moses-rnn analyse targets phrase-table.rnn.gz --min-words 3 --format csv
  moses-rnn analyse targets phrase-table.rnn.gz --source "the old man" --top 5

A source is drawn by its own words, so that other tables of the same text give the same ones. Of equally good targets,
the table's first one comes first. {SORTED}
"""


@dataclass(frozen=True, kw_only=True)
class TargetsRequest:
    """What the command line asks for."""

    phrase_table: str
    sources: Annotated[
        tuple[str, ...],
        Option("A source phrase, as the table has it; may be repeated [default: long ones are chosen]", "--source"),
    ] = ()
    count: Annotated[int, Option("Of frequent and of rare ones", min=1)] = 3
    min_words: Annotated[int, Option("Their least length", min=1)] = 4
    top: Annotated[int, Option("Targets of each", min=1)] = 3
    column: Column = None
    layout: Layout = "text"


@command(TARGETS_EPILOG)
def targets(request: TargetsRequest) -> None:
    """Show the best targets of source phrases by the table's p(target|source) and by the RNN (the paper's Table 2)."""
    from moses_rnn.analysis.grids import LAYOUTS
    from moses_rnn.analysis.targets import as_grid, as_text

    table = open_table(request.phrase_table, request.column)
    with progress() as advanced:
        groups = _given(table, request.sources, advanced) if request.sources else _chosen(table, request, advanced)
    if request.layout == "text":
        print_out(as_text(groups, table.column, request.top))
    else:
        print_out(LAYOUTS[request.layout](as_grid(groups, table.column, request.top)))


def _given(table: ScoredTable, sources: tuple[str, ...], advanced: Advanced) -> list[SourceGroup]:
    from moses_rnn.analysis.targets import SourceGroup, targets_of
    from moses_rnn.table.phrase_table import words

    there = list(targets_of(table.sources(advanced), [os.fsencode(source) for source in sources]))
    if not there:
        wanted = ", ".join(map(repr, sources))
        raise InputError(f"{table.path}: expected source phrases {wanted}, found none")
    names = {tuple(words(one.source)) for one in there}
    for source in sources:
        if tuple(words(os.fsencode(source))) not in names:
            print_err(f"warning: {table.path}: has no source phrase {source!r}")
    return [SourceGroup("", there)]


def _chosen(table: ScoredTable, request: TargetsRequest, advanced: Advanced) -> list[SourceGroup]:
    from moses_rnn.analysis.targets import LongSources

    chooser = LongSources(request.count, min_words=request.min_words, min_targets=request.top, seed=SEED)
    for lines in table.sources(advanced):
        chooser.add(lines)
    groups = chooser.groups()
    if not any(group.sources for group in groups):
        expected = f"source phrases of at least {request.min_words} words and {request.top} targets"
        raise InputError(f"{table.path}: expected {expected}, found none")
    return groups


SUMMARY_EPILOG = f"""\b
Example: also how far table and RNN agree over all pairs, as a figure and in numbers:
  moses-rnn analyse summary phrase-table.rnn.gz -o scatter.svg

Logarithms are natural. Pearson's correlation is that of all pairs, Spearman's that of a sample; pairs whose RNN score
is at the floor, and those with a score of 0, are counted and left out of both.
Whether the paper's observations hold: does the RNN prefer shorter targets, does it follow counts? {SORTED}
"""


@dataclass(frozen=True, kw_only=True)
class SummaryRequest:
    """What the command line asks for."""

    phrase_table: str
    output: Annotated[
        str | None,
        Option("Draw Figure 3 as .svg or .png (needs matplotlib), or write its cells as .csv", "-o --output"),
    ] = None
    column: Column = None
    layout: Layout = "text"
    force: Force = False


@command(SUMMARY_EPILOG)
def summary(request: SummaryRequest) -> None:
    """Sum up what the table and the RNN prefer: lengths, agreement, and correlation with counts (Figure 3)."""
    check_inputs(request.phrase_table)
    from moses_rnn.analysis.agreement import compute_scatter, groups_grid, notes, preferences_grid, summarise
    from moses_rnn.analysis.grids import LAYOUTS
    from moses_rnn.table.signatures import recorded_floor

    output = request.output
    kind = kind_of(output, (*PICTURES, "csv"), "a .csv needs nothing") if output else ""
    table, show = open_table(request.phrase_table, request.column), LAYOUTS[request.layout]
    with optional_output(output, table.path, force=request.force) as file:
        with progress() as advanced:
            pairs = table.pairs(advanced)
        figures = summarise(pairs, seed=SEED)
        if output:
            scatter = compute_scatter(pairs, floor=recorded_floor(table.signature, table.column), seed=SEED)
            file.commit(_drawn(scatter, kind))
    print_out(show(preferences_grid(figures)))
    if request.layout == "text":
        print_out("\n".join(notes(figures)))
    if output:
        print_out(f"\n{show(groups_grid(scatter))}")


def _drawn(scatter: Scatter, kind: str) -> bytes:
    """Figure 3 as a picture, or its cells."""
    from moses_rnn.analysis.agreement import histogram_grid
    from moses_rnn.analysis.grids import as_csv
    from moses_rnn.analysis.plots import density_figure, picture

    if kind in PICTURES:
        return picture(density_figure, scatter, kind=kind)
    return f"{as_csv(histogram_grid(scatter))}\n".encode()
