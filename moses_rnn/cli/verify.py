"""moses-rnn verify: asks real Moses whether it sees what a table says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.command import (
    CONTEXT,
    Program,
    end_cleanly_on_sigterm,
    print_err,
    print_json,
    print_out,
    reports_errors,
    takes,
)
from moses_rnn.cli.options import json_option
from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.moses.dictionaries import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moses_rnn.moses.decoder import Comparison, Dictionary

EPILOG = """\b
Example: the table as text and in all its binary forms, then a table and its ini without Moses:
  MOSES_ROOT=~/mosesdecoder moses-rnn verify phrase-table.rnn.gz
  moses-rnn verify phrase-table.rnn.gz --moses-ini moses.rnn.ini --no-decoder

Source phrases of the table are translated as sentences; every translation by a single phrase pair is read back from the
n-best list, and its features are compared with the logarithms of the pair's scores, old and new ones. Each kind of
dictionary is made for that and removed again; moses2 is ProbingPT in the decoder moses2. Lines without words on a side
cannot be asked for. Exit codes: 0 all is as the table says, 1 a program failed, 2 wrong command line, 3 not
as the table says.
"""


@dataclass(frozen=True, kw_only=True)
class Check:
    """What the command line asks for."""

    phrase_table: str
    moses_ini: str | None
    no_decoder: bool
    kinds: tuple[str, ...]
    sources: int
    whole: bool
    as_json: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.option("--moses-ini", help="Also compare this ini with the table, and ask the dictionary it names")
@click.option("--no-decoder", is_flag=True, help="Only do that; needs no Moses")
@click.option(
    "--kind", "kinds", type=click.Choice(list(KINDS)), multiple=True, help="Of dictionary; repeat it [default: all]"
)
@click.option("--sources", type=click.IntRange(1), default=300, show_default=True, help="Source phrases to look at")
@click.option("--whole", is_flag=True, help="Make the dictionaries of the whole table, not of these sources' lines")
@json_option
@reports_errors
@takes(Check)
def main(request: Check) -> None:
    """Check with the Moses in MOSES_ROOT that the decoder sees what a scored PHRASE_TABLE says."""
    from moses_rnn.files.streams import find_input
    from moses_rnn.moses.decoder import check_ini

    if request.no_decoder and not request.moses_ini:
        raise click.UsageError("--no-decoder is about an ini: name it with --moses-ini")
    table = find_input(request.phrase_table)
    if table == "-":
        raise click.UsageError("the table is read twice: name a file")
    own = None
    holds: list[str] = []
    if request.moses_ini:
        holds, own = check_ini(table, find_input(request.moses_ini), None)
        if not request.as_json:
            print_out("\n".join(holds))
    comparisons = [] if request.no_decoder else _ask_moses(table, own, request)
    if request.as_json:
        print_json(verification_record(table, holds, comparisons))
    _judge(table, comparisons)


def _ask_moses(table: str, own: Dictionary | None, request: Check) -> Sequence[Comparison]:
    from moses_rnn.moses.decoder import Moses, verify

    moses = Moses.of_environment()
    if moses is None:
        raise click.UsageError("MOSES_ROOT is not set: name a built Moses with it, or give --no-decoder")
    end_cleanly_on_sigterm()
    comparisons = verify(
        table,
        moses,
        request.kinds or tuple(KINDS),
        print_err,
        sources=request.sources,
        whole=request.whole,
        own=own,
    )
    if not request.as_json:
        for comparison in comparisons:
            print_out("\n".join(comparison.summary()))
    return comparisons


def verification_record(table: str, holds: Sequence[str], comparisons: Sequence[Comparison]) -> Mapping[str, Any]:
    """What an ini and a table have in common, and what a decoder saw of each kind of dictionary."""
    return {
        "table": table,
        "good": all(comparison.is_good for comparison in comparisons),
        "ini": list(holds),
        "kinds": [
            {
                "kind": one.kind,
                "good": one.is_good,
                "pairs": one.pairs,
                "values": one.values,
                "largest_difference": float(one.largest),
                "values_below": one.below,
                "largest_difference_below": float(one.largest_below),
                "missing": len(one.missing),
                "wrong": len(one.wrong),
                "failure": one.failure,
            }
            for one in comparisons
        ],
    }


def _judge(table: str, comparisons: Sequence[Comparison]) -> None:
    if any(comparison.failure for comparison in comparisons):
        raise MosesRnnError(f"{table}: not everything could be compared: a program of Moses failed")
    if not all(comparison.is_good for comparison in comparisons):
        raise InputError(f"{table}: the decoder does not see what the table says")
