"""moses-rnn ini: a moses.ini in, the same ini for a scored table out."""

from __future__ import annotations

from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import click

from moses_rnn.cli.command import command, print_err, print_out, warn
from moses_rnn.files.outputs import OutputFile
from moses_rnn.files.streams import find_input, regular_file
from moses_rnn.moses.ini_editing import IniEdit, edit_ini
from moses_rnn.options import Force, Option

EPILOG = """\b
Example: the ini for a scored table, then the one for its compact form:
  moses-rnn ini moses.ini --table phrase-table.rnn.gz
  moses-rnn ini moses.ini --table phrase-table.rnn.gz --type PhraseDictionaryCompact -o compact.ini

This changes num-features, path, type, tuneable-components and weights of one phrase dictionary, and with
--absolute-paths all relative paths. If the type changes, the dictionary may get a name=. No other byte changes. If
Moses builds dictionaries of this type from the text table, this also prints the build command, with the table's number
of scores. Exit codes: 0 done, 1 failure, 2 usage error, 3 ini or table refused.
"""


@command(EPILOG)
def main(
    edit: IniEdit,
    *,
    output: Annotated[str, Option("New ini; - is stdout [default: moses.rnn.ini for moses.ini]", "-o --output")] = "",
    diff: Annotated[bool, Option("Show the changes and write nothing")] = False,
    force: Force = False,
) -> None:
    """Write a copy of MOSES_INI that loads a scored table."""
    if edit.table is None:
        if edit.feature or edit.type or edit.path or edit.weights:
            raise click.UsageError("--feature, --type, --path and --weight need --table, the scored table")
        if not edit.absolute_paths:
            raise click.UsageError("nothing to do: give --table, --absolute-paths or both")
    source = find_input(edit.ini)
    scored = regular_file(edit.table) if edit.table else None
    output = output or str(Path(source).with_suffix(".rnn.ini"))
    new = edit_ini(replace(edit, ini=source, table=scored))
    warn(*new.warnings)
    if diff:
        print_out(_diff(source, new.content, output))
    elif output == "-":
        click.echo(new.content, nl=False)
    else:
        with OutputFile(output, force=force, inputs=(source, *([scored, f"{scored}.json"] if scored else []))) as file:
            file.commit(new.content)
        print_err(f"ini: {output}")
    if new.command:
        print_err(f"make the dictionary with: {new.command}")


def _diff(old: str, content: bytes, output: str) -> str:
    before, after = (data.decode("utf-8", "surrogateescape").split("\n") for data in (Path(old).read_bytes(), content))
    return "\n".join(unified_diff(before, after, old, output, lineterm=""))
