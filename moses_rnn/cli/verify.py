"""moses-rnn verify: asks real Moses whether it sees what a table says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click

from moses_rnn.cli.command import command, end_cleanly_on_sigterm, print_err, print_json, print_out
from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.moses.dictionaries import KINDS
from moses_rnn.options import Json, Option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moses_rnn.moses.decoder import Comparison

EPILOG = """\b
Examples: check the table as text and in all its binary forms; check a table and its ini without Moses:
  MOSES_ROOT=~/mosesdecoder moses-rnn verify phrase-table.rnn.gz
  moses-rnn verify phrase-table.rnn.gz --moses-ini moses.rnn.ini --no-decoder

Moses translates source phrases of the table as sentences. For every translation by a single phrase pair, the check
compares the features in the n-best list with the logarithms of the pair's scores, old and new. It builds each kind of
dictionary and removes it again; moses2 is ProbingPT in the decoder moses2. It cannot check lines with an empty source
or target, or rules with non-terminals. Exit codes: 0 Moses sees what the table says, 1 a program failed, 2 usage
error, 3 Moses sees something else.
"""


@command(EPILOG)
def main(  # noqa: PLR0913, one for each option
    phrase_table: str,
    *,
    moses_ini: Annotated[
        str | None, Option("Also compare this ini with the table, and check the dictionary it names")
    ] = None,
    feature: Annotated[
        str | None, Option("Phrase dictionary to check, if the ini has several: its name, or the table that it loads")
    ] = None,
    no_decoder: Annotated[bool, Option("Only compare the ini; needs no Moses")] = False,
    kinds: Annotated[
        tuple[str, ...],
        Option("Kind of dictionary; repeat it for several [default: all]", "--kind", choices=tuple(KINDS)),
    ] = (),
    sources: Annotated[int, Option("Source phrases to check", min=1)] = 300,
    whole: Annotated[
        bool, Option("Build dictionaries from the whole table, not only from the lines of the sources to check")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check with the Moses in MOSES_ROOT that the decoder sees what a scored PHRASE_TABLE says."""
    from moses_rnn.files.streams import find_input, regular_file
    from moses_rnn.moses.decoder import check_ini, verify
    from moses_rnn.moses.decoding import Moses
    from moses_rnn.table.signatures import signature_of

    if no_decoder and not moses_ini:
        raise click.UsageError("--no-decoder checks an ini: name it with --moses-ini")
    if feature and not moses_ini:
        raise click.UsageError("--feature is one of an ini: name it with --moses-ini")
    table = regular_file(phrase_table)
    signature_of(table)  # raises an error if it is of another table
    show = print_out if not as_json else lambda _: None
    holds, own = check_ini(table, find_input(moses_ini), feature) if moses_ini else ([], None)
    if holds:
        show("\n".join(holds))
    comparisons: Sequence[Comparison] = []
    if not no_decoder:
        if (moses := Moses.of_environment()) is None:
            raise click.UsageError("MOSES_ROOT is not set: name a built Moses with it, or give --no-decoder")
        end_cleanly_on_sigterm()
        comparisons = verify(table, moses, kinds or tuple(KINDS), print_err, sources=sources, whole=whole, own=own)
    for comparison in comparisons:
        show("\n".join(comparison.summary()))
    if as_json:
        good = all(comparison.good for comparison in comparisons)
        print_json({"table": table, "good": good, "ini": holds, "kinds": list(map(_record, comparisons))})
    _judge(table, comparisons)


def _record(one: Comparison) -> Mapping[str, Any]:
    """Return the record of one kind of dictionary, with numbers of pairs in place of pairs."""
    counts = {"missing": len(one.missing), "surplus": len(one.surplus), "wrong": len(one.wrong)}
    return {"kind": one.kind, "good": one.good, **vars(one), **counts}


def _judge(table: str, comparisons: Sequence[Comparison]) -> None:
    if any(comparison.failure for comparison in comparisons):
        raise MosesRnnError(f"{table}: some comparisons are missing: a Moses program failed")
    if not all(comparison.good for comparison in comparisons):
        raise InputError(f"{table}: the decoder does not see what the table says")
