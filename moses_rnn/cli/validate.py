"""moses-rnn validate: check a phrase table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import click

from moses_rnn.cli.command import check_inputs, command, print_err, print_json, print_out, warn
from moses_rnn.options import Json, Option

if TYPE_CHECKING:
    from moses_rnn.table.validation import Validation

EPILOG = """\b
Examples: before hours of scoring, and after copying to another machine:
  moses-rnn validate phrase-table.gz --sorted
  moses-rnn validate phrase-table.rnn.gz --quick

The full check reads every line and tests fields, number and format of the scores, encoding, order, and the end of the
compressed file. The table's first line decides how many factors a word has. --quick only compares the file's size and
SHA-256 with the signature beside it (TABLE.json, from moses-rnn-score). Exit codes: 0 sound, 1 failure, 2 usage
error, 3 not sound.
"""
SHOWN_BAD_LINES = 10


@command(EPILOG)
def main(
    phrase_table: str,
    *,
    quick: Annotated[bool, Option("Only compare the file with its signature")] = False,
    must_be_sorted: Annotated[bool, Option("Refuse a table that LC_ALL=C sort would change", "--sorted")] = False,
    strict: Annotated[bool, Option("Also refuse oddities: scores of 0 or below, invalid UTF-8, CRLF, …")] = False,
    as_json: Json = False,
) -> None:
    """Check a Moses PHRASE_TABLE (- is stdin) without scoring it."""
    from moses_rnn.files.streams import find_input
    from moses_rnn.table.signatures import check_signature

    table = find_input(phrase_table)
    check_inputs(table)
    if quick and (must_be_sorted or strict):
        raise click.UsageError("--quick reads no lines: it cannot be combined with --sorted or --strict")
    if quick:
        sound = check_signature(table)
        record: Mapping[str, Any] = {"table": table, "sound": True, "signature": sound}
        text = f"{table}: {sound}"
    else:
        report = _read_every_line(table, strict=strict, must_be_sorted=must_be_sorted)
        record, text = _record(report), "\n".join(report.summary())
    if as_json:
        print_json(record)
    else:
        print_out(text)


def _read_every_line(table: str, *, strict: bool, must_be_sorted: bool) -> Validation:
    from moses_rnn.cli.progress import progress
    from moses_rnn.table.validation import validate

    shown = itertools.count()

    def show(text: str) -> None:
        if next(shown) < SHOWN_BAD_LINES:
            print_err(text)

    with progress("lines") as advanced:
        report = validate(table, show, advanced, strict=strict, must_be_sorted=must_be_sorted)
    warn(*report.warnings)
    return report


def _record(report: Validation) -> Mapping[str, Any]:
    return {
        "table": report.name,
        "sound": True,
        "lines": report.lines,
        "sources": report.sources if report.unsorted is None else None,
        "longest_source": report.longest_source,
        "longest_target": report.longest_target,
        "scores": [{"lowest": low, "highest": high} for low, high in report.ranges],
        "sorted": report.unsorted is None,
        "first_unsorted": report.unsorted,
        "repeated": report.repeated,
        "signature": report.signature,
        "warnings": report.warnings,
    }
