"""moses-rnn analyse: what a scored table says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from moses_rnn.cli.analyse.explain import explain
from moses_rnn.cli.analyse.lengths import lengths
from moses_rnn.cli.analyse.maps import map_
from moses_rnn.cli.analyse.options import optional_output
from moses_rnn.cli.analyse.parses import parses
from moses_rnn.cli.analyse.prune import prune
from moses_rnn.cli.analyse.report import report
from moses_rnn.cli.analyse.tables import summary, targets
from moses_rnn.cli.command import CONTEXT, ProgramGroup, command, print_err, print_out
from moses_rnn.options import Force, Option

EPILOG = """\b
Example:
  moses-rnn analyse targets phrase-table.rnn.gz --count 3
  moses-rnn analyse targets phrase-table.rnn.gz --source "the old man" --top 5
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Look at a phrase table that moses-rnn-score has scored, and at what came of it."""


RESULTS_EPILOG = """\b
Example, as `make results` calls it:
  moses-rnn analyse results work --target fr --system baseline --system rnn --seed 1 --seed 2 --seed 3
"""


@dataclass(frozen=True, kw_only=True)
class ResultsRequest:
    """What the command line asks for."""

    work: Path
    target: Annotated[str, Option("Suffix of the target language")]
    systems: Annotated[tuple[str, ...], Option("A system, the baseline first; repeat it", "--system")]
    tests: Annotated[tuple[str, ...], Option("A test set; repeat it", "--test")] = ("test",)
    seeds: Annotated[tuple[str, ...], Option("Of a tuning; repeat it", "--seed")]
    output: Annotated[str | None, Option("Write all numbers as JSON", "-o --output")] = None
    force: Force = False


@command(RESULTS_EPILOG)
def results(request: ResultsRequest) -> None:
    """Compare tuned and decoded systems in the folder WORK (the paper's Table 1)."""
    from moses_rnn.analysis.results import Place, as_json, compare_systems, format_table, list_warnings

    place = Place(request.work, request.target, request.tests)
    comparison = compare_systems(place, request.systems, request.seeds)
    with optional_output(request.output, force=request.force) as file:
        file.commit(as_json(comparison))
    for text in list_warnings(comparison):
        print_err(f"warning: {text}")
    print_out("\n".join(format_table(comparison)))


for subcommand in (targets, summary, prune, map_, explain, lengths, parses, report, results):
    main.add_command(subcommand)
