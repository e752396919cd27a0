"""moses-rnn validate: says whether a phrase table is sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.command import (
    CONTEXT,
    Program,
    check_inputs,
    print_err,
    print_json,
    print_out,
    reports_errors,
    takes,
)
from moses_rnn.cli.options import json_option

if TYPE_CHECKING:
    from moses_rnn.table.validation import Validation as Report

EPILOG = """\b
Example: before hours of scoring, and after a copy to another machine:
  moses-rnn validate phrase-table.gz --sorted
  moses-rnn validate phrase-table.rnn.gz --quick

The whole check reads every line: fields, number and form of the scores, encoding, order, the end of the compressed
file. The first line shows whether words have factors. --quick compares size and SHA-256 of the file with the signature
beside it (TABLE.json, from moses-rnn-score) and looks at no line. Exit codes: 0 sound, 1 failure, 2 wrong command line,
3 not sound.
"""
SHOWN_BAD_LINES = 10


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What the command line asks for."""

    phrase_table: str
    quick: bool
    must_be_sorted: bool
    strict: bool
    as_json: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.option("--quick", is_flag=True, help="Only compare the file with its signature")
@click.option("--sorted", "must_be_sorted", is_flag=True, help="Refuse a table that LC_ALL=C sort would change")
@click.option("--strict", is_flag=True, help="Refuse what is merely odd: scores not above 0, invalid UTF-8, CRLF, …")
@json_option
@reports_errors
@takes(Validation)
def main(request: Validation) -> None:
    """Check a Moses PHRASE_TABLE (- is stdin) without scoring it."""
    from moses_rnn.files.streams import find_input

    table = find_input(request.phrase_table)
    check_inputs(table)
    if request.quick:
        _compare_with_signature(table, request)
    else:
        _read_every_line(table, request)


def _compare_with_signature(table: str, request: Validation) -> None:
    from moses_rnn.table.validation import check_signature

    if request.must_be_sorted or request.strict:
        raise click.UsageError("--quick looks at no line: it cannot go with --sorted or --strict")
    sound = check_signature(table)
    if request.as_json:
        print_json({"table": table, "sound": True, "signature": sound})
    else:
        print_out(f"{table}: {sound}")


def _read_every_line(table: str, request: Validation) -> None:
    from moses_rnn.cli.progress import Display
    from moses_rnn.table.validation import validate

    display = Display("lines")
    try:
        report = validate(
            table,
            _Shown(SHOWN_BAD_LINES),
            display.show,
            strict=request.strict,
            must_be_sorted=request.must_be_sorted,
        )
    finally:
        display.close()
    for warning in report.warnings:
        print_err(f"warning: {warning}")
    if request.as_json:
        print_json(_record(report))
    else:
        print_out("\n".join(report.summary()))


def _record(report: Report) -> Mapping[str, Any]:
    """What a sound table holds."""
    return {
        "table": report.name,
        "sound": True,
        "lines": report.lines,
        "sources": report.sources,
        "longest_source": report.longest_source,
        "longest_target": report.longest_target,
        "scores": [{"lowest": low, "highest": high} for low, high in report.ranges],
        "sorted": report.unsorted is None,
        "first_unsorted": report.unsorted,
        "repeated": report.repeated,
        "signature": report.signature,
        "warnings": report.warnings,
    }


class _Shown:
    """Shows the first few of something."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, text: str) -> None:
        if self._left > 0:
            print_err(text)
        self._left -= 1
