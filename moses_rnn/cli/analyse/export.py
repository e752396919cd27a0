"""moses-rnn-analyse export: a phrase table for programs that know nothing of Moses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.analyse.options import force_option
from moses_rnn.cli.command import CONTEXT, Program, reports_errors, takes
from moses_rnn.cli.files import check_inputs
from moses_rnn.files.streams import without_compression_suffix

if TYPE_CHECKING:
    from moses_rnn.api.tables import Table

TEXTS = ("tsv", "jsonl")  # which come in parts and may be compressed

EPILOG = """\b
Example, for a spreadsheet or awk; for jq:
  moses-rnn-analyse export phrase-table.rnn.gz -o phrase-table.tsv.gz
  moses-rnn-analyse export phrase-table.rnn.gz -o phrase-table.jsonl

A row a line, with the columns that moses_rnn.read_table names (docs/api.md): source, target, alignment, the scores, how
often target, source and pair were extracted. Scores are as the table has them: probabilities, as a rule.
"""


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """What the command line asks for."""

    phrase_table: str
    output: str
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.option("-o", "--output", required=True, help="A .tsv or .jsonl, or one of these with .gz")
@force_option
@reports_errors
@takes(ExportRequest)
def export(request: ExportRequest) -> None:
    """Write PHRASE_TABLE as tab-separated columns or as JSON lines."""
    kind = _kind_of(request.output)
    check_inputs(request.phrase_table)
    from moses_rnn.api.tables import read_table
    from moses_rnn.files.outputs import OutputFile

    table = read_table(request.phrase_table)
    with OutputFile(request.output, force=request.force, inputs=(table.path,)) as file:
        for part in _texts(table, kind):
            file.append(part)
        file.commit()


def _kind_of(output: str) -> str:
    """What an output's suffix asks for; refused before the work if it cannot be made."""
    kind = without_compression_suffix(output).suffix.removeprefix(".").lower()
    if kind not in TEXTS:
        raise click.UsageError(f"--output {output}: expected a name that ends with .tsv, .jsonl, .tsv.gz or .jsonl.gz")
    return kind


def _texts(table: Table, kind: str) -> Iterator[bytes]:
    """Lines, some ten thousand at a time."""
    from moses_rnn.formats.grids import json_line, tsv_line

    header = table.columns
    if kind == "tsv":
        yield f"{tsv_line(header)}\n".encode()
    for batch in table.batches():
        columns = [
            [text.encode("utf-8", "surrogateescape") for text in column]
            if isinstance(column, list)
            else column.tolist()
            for column in batch.values()
        ]
        rows = zip(*columns, strict=True)
        lines = map(tsv_line, rows) if kind == "tsv" else (json_line(header, row) for row in rows)
        yield "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
