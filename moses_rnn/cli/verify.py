"""moses-rnn-verify: asks real Moses whether it sees what a table says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn import __version__
from moses_rnn.cli.command import CONTEXT, Program, end_cleanly_on_sigterm, put, reports_errors, say
from moses_rnn.errors import InputError, MosesRnnError

if TYPE_CHECKING:
    from moses_rnn.moses.programs import Dictionary

KINDS = ("text", "compact", "on-disk", "probing", "moses2")

EPILOG = """\b
Example: the table as text and in all its binary forms, then a table and its ini without Moses:
  MOSES_ROOT=~/mosesdecoder moses-rnn-verify phrase-table.rnn.gz
  moses-rnn-verify phrase-table.rnn.gz --moses-ini moses.rnn.ini --no-decoder

Source phrases of the table are translated as sentences; every translation by a single phrase pair is read back from the
n-best list, and its features are compared with the logarithms of the pair's scores, old and new ones. Each kind of
dictionary is made for that and removed again; moses2 is ProbingPT in the decoder moses2. Lines without words on a side
cannot be asked for. Exit codes: 0 all is as the table says, 1 a program failed, 2 wrong command line, 3 not
as the table says.
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.option("--moses-ini", help="Also compare this ini with the table, and ask the dictionary it names")
@click.option("--feature", help="Which phrase dictionary of the ini is meant, if several could be")
@click.option("--no-decoder", is_flag=True, help="Only do that; needs no Moses")
@click.option(
    "--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Of dictionary; repeat it [default: all]"
)
@click.option("--sources", type=click.IntRange(1), default=300, show_default=True, help="Source phrases to look at")
@click.option("--seed", type=int, default=1, show_default=True, help="Of their choice")
@click.option("--whole", is_flag=True, help="Make the dictionaries of the whole table, not of these sources' lines")
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=1e-4, show_default=True, help="Of a feature above -87"
)
@click.option("--moses-root", type=click.Path(path_type=Path), envvar="MOSES_ROOT", help="A built Moses [$MOSES_ROOT]")
@click.option("-q", "--quiet", is_flag=True, help="Do not say what is being done")
@click.version_option(__version__)
@reports_errors
def main(phrase_table: str, moses_ini: str | None, feature: str | None, no_decoder: bool, **options: Any) -> None:
    """Check with real Moses that the decoder sees what a scored PHRASE_TABLE says."""
    from moses_rnn.files.streams import existing_input
    from moses_rnn.moses.verification import check_ini

    if (no_decoder or feature) and not moses_ini:
        name = "--no-decoder" if no_decoder else "--feature"
        raise click.UsageError(f"{name} is about an ini: name it with --moses-ini")
    table = existing_input(phrase_table)
    if table == "-":
        raise click.UsageError("the table is read twice: name a file")
    own = None
    if moses_ini:
        said, own = check_ini(table, existing_input(moses_ini), feature)
        put("\n".join(said))
    if not no_decoder:
        _verify(table, own, **options)


def _verify(
    table: str,
    own: Dictionary | None,
    moses_root: Path | None,
    kinds: tuple[str, ...],
    sources: int,
    seed: int,
    tolerance: float,
    *,
    whole: bool,
    quiet: bool,
) -> None:
    from moses_rnn.moses.programs import Moses
    from moses_rnn.moses.verification import Verification, verify

    if moses_root is None:
        raise click.UsageError("MOSES_ROOT is not set: name a built Moses with it, or give --no-decoder")
    wanted = Verification(table, Moses(moses_root.absolute()), kinds or KINDS, sources, seed, whole, tolerance, own)
    end_cleanly_on_sigterm()
    compared = verify(wanted, lambda text: None if quiet else say(text))
    for comparison in compared:
        put("\n".join(comparison.summary()))
    if any(comparison.failure for comparison in compared):
        raise MosesRnnError(f"{table}: not everything could be compared: a program of Moses failed")
    if not all(comparison.is_good for comparison in compared):
        raise InputError(f"{table}: the decoder does not see what the table says")
