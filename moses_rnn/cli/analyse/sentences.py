"""moses-rnn-analyse, the commands that look at networks of sentences: where they look, how they sum sentences up."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.analyse.options import force_option, model_argument
from moses_rnn.cli.command import CONTEXT, Program, put, reports_errors, takes
from moses_rnn.cli.nmt_options import warn_of_unit
from moses_rnn.errors import OutputError
from moses_rnn.formats.grids import PICTURES

if TYPE_CHECKING:
    from moses_rnn.analysis.alignment_maps import AlignmentMap

ALIGNMENTS_EPILOG = """\b
Examples: where a network looked while it wrote lines 3 and 7 itself; of a given translation, as text:
  moses-rnn-analyse alignments search test.en --line 3 --line 7 -o maps
  moses-rnn-analyse alignments search test.en test.fr --line 3

\b
SOURCE is a text that MODEL reads, TARGET one that it writes, line by line; without TARGET, it is the best translation
by beam search. A map has the source across and the target down, both with </s>: each row is alpha of one target word,
and sums to 1; white is 0, black 1. Words that are <unk> to the network are grey.
"""


@dataclass(frozen=True, kw_only=True)
class AlignmentsRequest:
    """What the command line asks for."""

    model: Path
    source: str
    target: str | None
    lines: tuple[int, ...]
    beam: int
    output: str | None
    layout: str | None
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=ALIGNMENTS_EPILOG)
@model_argument
@click.argument("source")
@click.argument("target", required=False)
@click.option("--line", "lines", type=click.IntRange(1), multiple=True, required=True, help="From 1; may be repeated")
@click.option("--beam", type=click.IntRange(1), default=12, show_default=True, help="Width of the search; 1 is greedy")
@click.option("-o", "--output", help="A picture (.svg, .png), or a folder with a picture of each line (line-3.svg)")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "json"]),
    help="Print alpha in per cent, or a JSON record a line; needs no library [default: text, unless there is -o]",
)
@force_option
@reports_errors
@takes(AlignmentsRequest)
def alignments(request: AlignmentsRequest) -> None:
    """Show where MODEL, a network with attention, looked in lines of SOURCE while it wrote (the paper's heat maps)."""
    pictures = _pictures(request)
    if request.source == request.target == "-":
        raise click.UsageError("only one of SOURCE and TARGET can be -")
    from moses_rnn.analysis.alignment_maps import as_json, as_text
    from moses_rnn.analysis.plots import alignment_image, check_matplotlib

    if pictures:
        check_matplotlib("--format text and json need nothing")
    maps = _maps(request)
    _write({path: alignment_image(one, _kind(path)) for path, one in zip(pictures, maps, strict=False)}, request)
    if request.layout == "json":
        put("\n".join(map(as_json, maps)))
    elif request.layout == "text" or not pictures:
        put("\n\n".join(map(as_text, maps)))


def _pictures(request: AlignmentsRequest) -> list[Path]:
    """Of each line, in order; none if none is wanted."""
    if request.output is None:
        return []
    place, numbers = Path(request.output), sorted(set(request.lines))
    if not place.suffix or place.is_dir():
        return [place / f"line-{number}.svg" for number in numbers]
    if _kind(place) not in PICTURES:
        raise click.UsageError(f"--output {place}: expected a folder, or a name that ends with .svg or .png")
    if len(numbers) > 1:
        raise click.UsageError(
            f"--output {place}: expected a folder for {len(numbers)} pictures, found the name of one"
        )
    return [place]


def _kind(picture: Path) -> str:
    return picture.suffix.removeprefix(".").lower()


def _maps(request: AlignmentsRequest) -> list[AlignmentMap]:
    from moses_rnn.analysis.alignment_maps import attentive_stepper, given_maps, own_maps, read_chosen
    from moses_rnn.files.streams import existing_input
    from moses_rnn.producers.open import open_model

    source = existing_input(request.source)
    target = None if request.target is None else existing_input(request.target)
    model = open_model(request.model)
    stepper = attentive_stepper(model)
    warn_of_unit(model)
    sources, targets = read_chosen(source, target, frozenset(request.lines))
    if target is None:
        return own_maps(model.checkpoint, stepper, sources, request.beam)
    return given_maps(model.checkpoint, stepper, sources, targets)


def _write(pictures: dict[Path, bytes], request: AlignmentsRequest) -> None:
    """Write all pictures, or none."""
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.producers.open import model_files

    inputs = (request.source, *filter(None, [request.target]), *model_files(request.model))
    for folder in {path.parent for path in pictures}:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be written: {error.strerror}") from error
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(str(path), force=request.force, inputs=inputs)) for path in pictures]
        for file, data in zip(files, pictures.values(), strict=True):
            file.commit(data)


SENTENCE_COMMANDS = (alignments,)
