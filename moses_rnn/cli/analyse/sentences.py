"""moses-rnn-analyse, the commands that look at networks of sentences: where they look, how they sum sentences up."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.analyse.model import MapOptions, draw_files, map_options
from moses_rnn.cli.analyse.options import force_option, model_argument
from moses_rnn.cli.command import CONTEXT, Program, put, reports_errors, takes
from moses_rnn.cli.files import check_inputs
from moses_rnn.cli.nmt_options import warn_of_unit
from moses_rnn.errors import FormatError, InputError, writing
from moses_rnn.formats.grids import PICTURES

if TYPE_CHECKING:
    from moses_rnn.analysis.alignment_maps import AlignmentMap
    from moses_rnn.analysis.maps import Map, MapConfig

FEWEST_POINTS = 2

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
    check_inputs(request.model, request.source, request.target)
    from moses_rnn.analysis.alignment_maps import as_json, as_text
    from moses_rnn.analysis.plots import check_matplotlib
    from moses_rnn.analysis.sentence_plots import alignment_image

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
    from moses_rnn.files.outputs import OutputFile, commit_all
    from moses_rnn.producers.open import model_files

    inputs = (request.source, *filter(None, [request.target]), *model_files(request.model))
    for folder in {path.parent for path in pictures}:
        with writing(folder):
            folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(str(path), force=request.force, inputs=inputs)) for path in pictures]
        for file, data in zip(files, pictures.values(), strict=True):
            file.append(data)
        commit_all(files)


SUMMARIES_EPILOG = """\b
Examples: the first 50 lines of a text; sentences that differ in word order and voice:
  moses-rnn-analyse summaries search test.en --max-points 50 -o sentences.svg
  moses-rnn-analyse summaries lstm -s "a man sees a dog" -s "a dog sees a man" -s "a dog is seen by a man" -o voice.svg

\b
What the decoder begins with stands for a sentence: of a deep LSTM h of all layers after the last word, of an RNNsearch
s_0, of an RNN Encoder-Decoder c. Sentences near each other are near each other in the network. Of sentences that
differ in <unk> alone, the first one is shown.
"""


@dataclass(frozen=True, kw_only=True)
class SummariesRequest(MapOptions):
    """What the command line asks for."""

    model: Path
    text: str | None
    sentences: tuple[str, ...]
    max_points: int


@click.command(cls=Program, context_settings=CONTEXT, epilog=SUMMARIES_EPILOG)
@model_argument
@click.argument("text", required=False)
@click.option("-s", "--sentence", "sentences", multiple=True, help="In place of a TEXT; may be repeated")
@click.option("--max-points", type=click.IntRange(2), default=1000, show_default=True, help="The first lines of TEXT")
@partial(map_options, method="pca")
@reports_errors
@takes(SummariesRequest)
def summaries(request: SummariesRequest) -> None:
    """Draw a map of sentences by what the network MODEL knows of each before it writes."""
    if (request.text is None) == (not request.sentences):
        raise click.UsageError("expected either a TEXT or sentences, each behind --sentence")
    check_inputs(request.model, request.text)
    from moses_rnn.analysis.maps import draw_map, sentence_points
    from moses_rnn.producers.open import model_files, open_model

    def draw(config: MapConfig) -> Map:
        model = open_model(request.model)
        warn_of_unit(model)
        labels, vectors = sentence_points(model, _sentences(request))
        if len(labels) < FEWEST_POINTS:
            name = request.text or "--sentence"
            raise InputError(f"{name}: expected two sentences that the network can tell apart, found {len(labels)}")
        return draw_map(f"sentences, {config.method}", labels, vectors, config)

    draw_files(draw, request, (*filter(None, [request.text]), *model_files(request.model)))


def _sentences(request: SummariesRequest) -> list[bytes]:
    """Without their line ends.

    Raises:
        FormatError: one has no words.
    """
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.phrase_forms import words

    if request.text is None:
        name, lines = "--sentence", [os.fsencode(sentence) for sentence in request.sentences]
    else:
        name = existing_input(request.text)
        lines = [line.rstrip(b"\r\n") for line in islice(read_lines(name), request.max_points)]
    for number, line in enumerate(lines, start=1):
        if not words(line):
            raise FormatError(name, number, "a sentence", "a blank line")
    return lines


SENTENCE_COMMANDS = (alignments, summaries)
