"""moses-rnn ini: a moses.ini in, the same ini for a scored table out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

import click

from moses_rnn.cli.command import CONTEXT, FiniteFloat, Program, print_err, print_out, reports_errors, takes
from moses_rnn.files.outputs import OutputFile
from moses_rnn.files.streams import find_input
from moses_rnn.moses.ini import IniEdit, edit_ini

EPILOG = """\b
Example: the ini for a scored table, then the one for its compact form:
  moses-rnn ini moses.ini --table phrase-table.rnn.gz
  moses-rnn ini moses.ini --table phrase-table.rnn.gz --type PhraseDictionaryCompact -o compact.ini

Changed are num-features, path, type and weights of one phrase dictionary, and with --absolute-paths all relative paths;
no other byte is. For a type that is made from the text table, the command that makes it is printed, with the number of
scores that this table has. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 ini or table rejected.
"""


@dataclass(frozen=True, kw_only=True)
class Edit(IniEdit):
    """What the command line asks for."""

    diff: bool
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("ini", metavar="MOSES_INI")
@click.option("--table", help="The scored text table (also where the dictionary is a binary one made from it)")
@click.option("--feature", help="Which phrase dictionary is meant, if several could be")
@click.option("--type", help="Type the dictionary becomes, ProbingPT say [default: the one it has]")
@click.option("--path", help="Its path= [default: the table, or beside it with the type's suffix]")
@click.option(
    "--weight",
    "weights",
    type=FiniteFloat(),
    multiple=True,
    help="Starting weight of the new columns, once for all or for each [default: mean absolute weight of the others]",
)
@click.option("--absolute-paths", is_flag=True, help="Make every path absolute, as mert-moses.pl needs them")
@click.option("-o", "--output", default="", help="New ini; - is stdout [default: MOSES_INI's name + .rnn.ini]")
@click.option("--diff", is_flag=True, help="Show the changes and write nothing")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
@takes(Edit)
def main(request: Edit) -> None:
    """Make MOSES_INI load a scored table."""
    if request.table is None:
        if request.feature or request.type or request.path or request.weights:
            raise click.UsageError("--feature, --type, --path and --weight need --table, the scored table")
        if not request.absolute_paths:
            raise click.UsageError("nothing to do: give --table, --absolute-paths or both")
    source = find_input(request.ini)
    scored = find_input(request.table) if request.table else None
    output = request.output or str(Path(source).with_suffix(".rnn.ini"))
    new = edit_ini(replace(request, ini=source, output=output, table=scored))
    for warning in new.warnings:
        print_err(f"warning: {warning}")
    if request.diff:
        print_out(_diff(source, new.content, output))
    elif output == "-":
        click.echo(new.content, nl=False)
    else:
        with OutputFile(output, force=request.force, inputs=(source, *([scored] if scored else []))) as file:
            file.commit(new.content)
        print_err(f"ini: {output}")
    if new.command:
        print_err(f"make the dictionary with: {new.command}")


def _diff(old: str, content: bytes, output: str) -> str:
    """What changed, as `diff -u` prints it."""
    before, after = (data.decode("utf-8", "surrogateescape").split("\n") for data in (Path(old).read_bytes(), content))
    return "\n".join(unified_diff(before, after, old, output, lineterm=""))
