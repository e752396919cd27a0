"""moses-rnn-extend: a phrase table in, the same table with pairs that the network proposes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import (
    CONTEXT,
    FiniteFloat,
    Program,
    choose_device,
    end_cleanly_on_sigterm,
    put,
    reports_errors,
    say,
    shows_version,
    takes,
    threads_option,
)
from moses_rnn.cli.files import check_inputs
from moses_rnn.cli.progress import Display
from moses_rnn.cli.signatures import sound_signature
from moses_rnn.cli.table_options import TableOptions, relative_paths_option, table_options
from moses_rnn.files.streams import STANDARD_STREAM, compression_of, existing_input, without_compression_suffix

if TYPE_CHECKING:
    from moses_rnn.files.metered import Advanced
    from moses_rnn.formats.dictionaries import Shape
    from moses_rnn.producers.open import OpenModel
    from moses_rnn.scoring.new_ini import NewIni
    from moses_rnn.scoring.request import IniRequest
    from moses_rnn.translation.extension.columns import Fill
    from moses_rnn.translation.extension.request import Extended, ExtensionRequest

EPILOG = """\b
Example: what a text needs and the table lacks; more targets for sources with one or two; both, with an ini:
  moses-rnn-extend phrase-table.gz phrase-table.rnn-model --text test.en
  moses-rnn-extend phrase-table.gz phrase-table.rnn-model --fewer-than 3 --top 2
  moses-rnn-extend phrase-table.gz phrase-table.rnn-model --text test.en --fewer-than 3 --provenance column \\
      --moses-ini moses.ini

The table's own lines stay byte for byte as they are, but for the column of --provenance; new ones are put among them in
the order of LC_ALL=C sort, in which the table must be. Words that the network does not know are neither proposed nor
translated. What --column may be, from 1: network, inverse-network, lexical, inverse-lexical, lowest, mean, or a number;
docs/extend.md says what stands where by default. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 table, text,
model or ini rejected.
"""


@dataclass(frozen=True, kw_only=True)
class Extending(TableOptions):
    """The command's arguments and options."""

    phrase_table: str
    model: Path
    output: str | None
    fewer_than: int | None
    text: str | None
    longest: int
    top: int
    beam: int
    max_words: int
    min_log_prob: float
    inverse_model: Path | None
    columns: tuple[str, ...]
    provenance: str
    moses_ini: str | None
    output_ini: str | None
    relative_paths: bool
    feature: str | None
    weight: float | None
    allow_misfit: bool
    device: str
    threads: int | None
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("phrase_table")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", help="New table [default: PHRASE_TABLE's name + .extended.gz]")
@click.option(
    "--fewer-than", type=click.IntRange(2, 1000), help="Extend the table's sources that have fewer targets than that"
)
@click.option(
    "--text", help="Extend phrases of this text that the table lacks, a sentence a line; as the table's words"
)
@click.option("--longest", type=click.IntRange(1), default=7, show_default=True, help="Words of a source")
@click.option("--top", type=click.IntRange(1), default=3, show_default=True, help="New targets of a source, at most")
@click.option("--beam", type=click.IntRange(1), default=12, show_default=True, help="Width of the search")
@click.option("--max-words", type=click.IntRange(1), default=10, show_default=True, help="Of a target")
@click.option(
    "--min-log-prob",
    type=FiniteFloat(max=0),
    default=-0.7,
    show_default=True,
    help="Least log p(target | source), natural, with the end symbols of both sides",
)
@click.option(
    "--inverse-model",
    type=click.Path(path_type=Path),
    help="A model of moses-rnn-train --inverse, for p(source | target)",
)
@click.option("--column", "columns", multiple=True, metavar="N=WHAT", help="What stands in a column; may be repeated")
@click.option(
    "--provenance",
    type=click.Choice(["none", "column"]),
    default="none",
    show_default=True,
    help="Add a column of exp(1) on new lines and exp(0) on the others, a feature of 1 and 0",
)
@click.option("--moses-ini", help="Also write a moses.ini with the new table, made from this one")
@click.option("--output-ini", help="Where to [default: moses.extended.ini beside the new table]")
@relative_paths_option
@click.option("--feature", help="Which phrase dictionary of the ini is meant, if several could be")
@click.option("--weight", type=FiniteFloat(), help="Starting weight of the column of --provenance [default: 0]")
@table_options
@click.option("--allow-misfit", is_flag=True, help="Take a model that has learned nothing, which is refused otherwise")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@threads_option
@click.option("--force", is_flag=True, help="Replace existing outputs")
@click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr")
@shows_version
@reports_errors
@takes(Extending)
def main(given: Extending) -> None:
    """Extend a Moses PHRASE_TABLE by phrase pairs that the network MODEL proposes."""
    _check_options(given)
    check_inputs(given.phrase_table, given.model, given.text, given.inverse_model, given.moses_ini)
    end_cleanly_on_sigterm()
    from moses_rnn.scoring.fit import unit_warnings
    from moses_rnn.translation.extension.run import extend

    request = _request(given)
    inis, stages = _Inis(request, _ini(given, request.output)), _Stages(quiet=given.quiet)
    try:
        extended = extend(request, inis.make, stages.begin)
    finally:
        stages.close()
    warnings = (*unit_warnings(request.model, on_sentences=False), *extended.warnings, *inis.warnings)
    summary = [] if given.quiet else _summary(request, extended)
    for line in [*summary, *(f"warning: {text}" for text in warnings)]:
        say(line)
    put(inis.text)


def _check_options(given: Extending) -> None:
    """Refuse options that contradict each other or would do nothing."""
    if given.fewer_than is None and given.text is None:
        raise click.UsageError("nothing to extend: give --fewer-than, --text or both")
    if not given.moses_ini:
        names = ("output_ini", "relative_paths", "feature", "weight")
        idle = [name for name in names if getattr(given, name) not in (None, False)]
        if idle:
            raise click.UsageError(f"--{idle[0].replace('_', '-')} needs --moses-ini, the ini to extend")
    elif given.output and compression_of(given.output) not in (None, "gz"):
        found = f"found {given.output}: Moses's scripts read no other"
        raise click.UsageError(f"--moses-ini needs a plain or .gz table, {found}")
    if given.weight is not None and given.provenance == "none":
        raise click.UsageError("--weight is that of the column of --provenance")
    if STANDARD_STREAM in (given.phrase_table, given.text, given.output, given.moses_ini, given.output_ini):
        raise click.UsageError("what is read and written are files, not standard streams: the table is read twice")


def _request(given: Extending) -> ExtensionRequest:
    import torch

    from moses_rnn.translation.extension.new_lines import Limits
    from moses_rnn.translation.extension.request import ExtensionRequest

    if given.threads:
        torch.set_num_threads(given.threads)
    table = existing_input(given.phrase_table)
    output = given.output or _default_output(table)
    ini = _ini(given, output)
    return ExtensionRequest(
        table=table,
        output=output,
        model=_open(given.model, "source-to-target", given),
        inverse=_open(given.inverse_model, "target-to-source", given) if given.inverse_model else None,
        fewer_than=given.fewer_than or 0,
        text=existing_input(given.text) if given.text else None,
        longest=given.longest,
        beam=given.beam,
        most_words=given.max_words,
        limits=Limits(given.top, given.min_log_prob),
        fills=_fills(given.columns),
        provenance=given.provenance == "column",
        signature=sound_signature(table),
        ini=ini.output if ini else None,
        ini_inputs=(ini.ini,) if ini else (),
        device=choose_device(given.device),
        force=given.force,
        strict=given.strict,
        max_line_bytes=given.max_line_bytes,
    )


def _default_output(table: str) -> str:
    stem = without_compression_suffix(table)
    return str(stem.with_name(stem.name + ".extended.gz"))


def _open(folder: Path, direction: str, given: Extending) -> OpenModel:
    from moses_rnn.producers.open import open_model
    from moses_rnn.scoring.fit import check_learned

    model = open_model(folder, direction=direction)
    if not given.allow_misfit:
        check_learned(model)
    return model


def _fills(columns: tuple[str, ...]) -> dict[int, Fill]:
    from moses_rnn.translation.extension.columns import parse_fill

    try:
        return dict(parse_fill(column) for column in columns)
    except ValueError as error:
        raise click.UsageError(f"--column: {error}") from error


def _ini(given: Extending, output: str) -> IniRequest | None:
    from moses_rnn.scoring.request import IniRequest

    if not given.moses_ini:
        return None
    new = given.output_ini or str(Path(output).parent / (Path(given.moses_ini).stem + ".extended.ini"))
    how = given.feature, given.weight or 0.0, given.relative_paths
    return IniRequest(existing_input(given.moses_ini), new, *how)


class _Inis:
    """Makes the new ini, and remembers what is to be said of it."""

    def __init__(self, request: ExtensionRequest, wanted: IniRequest | None) -> None:
        self._request, self._wanted = request, wanted
        self._made: NewIni | None = None

    def make(self, shape: Shape, added: int) -> bytes:
        from moses_rnn.scoring.new_ini import make_ini

        self._made = make_ini(self._request.table, self._request.output, self._wanted, shape, added)
        return self._made.content

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._made.warnings if self._made else ()

    @property
    def text(self) -> str:
        """The lines that an ini needs."""
        feature, weight = self._made.lines if self._made else ("", "")
        return f"[feature]\n{feature}\n\n[weight]\n{weight}"


class _Stages:
    """Shows the progress of one reading after the other."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._display: Display | None = None

    def begin(self, unit: str) -> Advanced:
        self.close()
        self._display = Display(unit, quiet=self._quiet)
        return self._display.show

    def close(self) -> None:
        if self._display:
            self._display.close()


def _summary(request: ExtensionRequest, extended: Extended) -> Iterator[str]:
    counts = extended.counts
    yield f"{extended.lines:,} lines, {counts.lines:,} of them new: {request.output}"
    yield f"signature: {request.output}.json"
    if request.ini:
        yield f"ini: {request.ini}"
    if request.fewer_than:
        few = f"{counts.few:,} sources with fewer than {request.fewer_than} targets, {counts.extended:,} extended"
        yield f"{few}; {extended.unknown_sources:,} more have words that the network does not know"
    if request.text:
        yield from _of_text(extended)
    yield (
        f"{counts.likely:,} targets of log p {request.limits.least_log_prob:g} and more: {counts.there:,} in the table "
        f"already, {counts.empty:,} empty, {counts.surplus:,} beyond --top {request.limits.top}"
    )
    fills = (f"{i} {fill}" if isinstance(fill, str) else f"{i} {fill:.6g}" for i, fill in enumerate(extended.fills, 1))
    yield f"columns of the new lines: {', '.join(fills)}"


def _of_text(extended: Extended) -> Iterator[str]:
    counts, text = extended.counts, extended.text
    yield (
        f"{len(text.phrases):,} phrases of the text, {counts.lacking:,} of them not in the table before, "
        f"{counts.made:,} of these now"
    )
    if text.unknown:
        unknown = f"{len(text.unknown):,} of the text's {text.words:,} words are unknown to the network"
        yield f"{unknown}: what has them is as it was"
