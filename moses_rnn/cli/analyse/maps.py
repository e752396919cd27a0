"""moses-rnn analyse map and gates: what is inside a network."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.analysis.choices import METHODS, NETWORKS
from moses_rnn.cli.analyse.options import (
    EITHER_ORDER,
    ModelAndTable,
    force_option,
    in_either_order,
    is_inverse,
    model_argument,
    model_blocks,
    open_phrase_network,
    open_writer,
    progress_of,
    seed_option,
)
from moses_rnn.cli.command import CONTEXT, Program, Seed, put, reports_errors, takes
from moses_rnn.cli.files import check_inputs, output_to
from moses_rnn.cli.nmt_options import warn_of_unit
from moses_rnn.errors import FormatError, InputError, writing
from moses_rnn.formats.grids import PICTURES

if TYPE_CHECKING:
    from moses_rnn.analysis.alignment_maps import AlignmentMap
    from moses_rnn.analysis.correlation import Floats
    from moses_rnn.analysis.phrase_samples import Pair
    from moses_rnn.models.checkpoint import Checkpoint

    Points = tuple[str, list[str], Floats]

DATA = ("csv", "json")
FEWEST_POINTS = 2
# the options of each kind of map
OPTIONS = {
    "words": {"side", "max_points", "method", "seed", "export"},
    "phrases": {"min_words", "max_points", "method", "seed"},
    "sentences": {"max_points", "method", "seed"},
    "alignments": {"lines", "beam"},
}
DEFAULTS: dict[str, dict[str, Any]] = {"sentences": {"max_points": 1000, "method": "pca"}}
MAP_EPILOG = f"""\b
Examples: words (Figure 4 of the paper), phrases of a table by their summaries c (Figure 5), lines of a text:
  moses-rnn analyse map words phrase-table.rnn-model -o words.svg -o words.csv
  moses-rnn analyse map phrases phrase-table.rnn-model phrase-table.gz -o phrases.svg
  moses-rnn analyse map sentences search test.en --max-points 50 -o sentences.svg
All source words with their numbers, as moses-rnn-train --source-embeddings reads them:
  moses-rnn analyse map words phrase-table.rnn-model --export source.vec
Where a network looked while it wrote lines 3 and 7 itself; of a given translation, as text:
  moses-rnn analyse map alignments search test.en --line 3 --line 7 -o maps
  moses-rnn analyse map alignments search test.en test.fr --line 3

sentences: what the decoder begins with stands for a sentence: of a deep LSTM h of all layers after the last word, of an
RNNsearch s_0, of an RNN Encoder-Decoder c. Of sentences that differ in <unk> alone, the first one is shown.

alignments: the source is across and the target down, both with </s>. Each row is alpha of one target word, and sums to
1; white is 0, black 1. Words that are <unk> to the network are grey. FILE is a text that MODEL reads, TARGET one that
it writes, line by line; without TARGET, it is the best translation by beam search.

phrases: {EITHER_ORDER}
"""


@dataclass(frozen=True, kw_only=True)
class MapRequest:
    """What the command line asks for; None where it says nothing."""

    what: str
    model: Path
    file: str | None
    target: str | None
    outputs: tuple[str, ...]
    method: str | None
    side: str | None
    min_words: int | None
    max_points: int | None
    export: str | None
    lines: tuple[int, ...]
    beam: int | None
    seed: int | None
    force: bool


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a map is made; defaults of DEFAULTS come first."""

    side: str = "source"
    min_words: int = 4
    max_points: int = 2000
    method: str = "tsne"
    seed: int = 1
    export: str | None = None
    lines: tuple[int, ...] = ()
    beam: int = 12


@click.command("map", cls=Program, context_settings=CONTEXT, epilog=MAP_EPILOG)
@click.argument("what", type=click.Choice(list(OPTIONS)))
@model_argument
@click.argument("file", required=False)
@click.argument("target", required=False)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    help="Picture (.svg, .png) or data (.csv, .json), may be repeated; of alignments also a folder of pictures",
)
@click.option("--method", type=click.Choice(METHODS), help="Of the layout [default: pca of sentences, else tsne]")
@click.option("--side", type=click.Choice(["source", "target"]), help="Whose words [default: source]")
@click.option("--min-words", type=click.IntRange(1), help="The least length of a phrase [default: 4]")
@click.option(
    "--max-points",
    type=click.IntRange(2),
    help="The most frequent words, a sample of phrases, the first sentences [default: 2000; 1000 sentences]",
)
@click.option("--export", metavar="FILE", help="Write the embeddings of all words in word2vec's text")
@click.option("--line", "lines", type=click.IntRange(1), multiple=True, help="Of alignments, from 1; may be repeated")
@click.option("--beam", type=click.IntRange(1), help="Of alignments: the width of the search [default: 12]")
@click.option("--seed", type=Seed(32), help="Of layout and sample [default: 1]")
@force_option
@reports_errors
@takes(MapRequest)
def map_(request: MapRequest) -> None:
    """Draw the words, phrases or sentences that the network MODEL knows as points, or where it looked while it wrote.

    FILE is a phrase table (phrases) or a text (sentences, alignments); words need none.
    """
    settings = _settings(request)
    _check_files(request)
    if request.what == "phrases":
        places = in_either_order(ModelAndTable(model=request.model, phrase_table=str(request.file)))
        request = replace(request, model=places.model, file=places.phrase_table)
    check_inputs(request.model, request.file, request.target)
    if request.what == "alignments":
        _draw_alignments(request, settings)
        return
    if settings.export:
        _export(request.model, settings, settings.export, force=request.force)
    if request.outputs:
        _draw(request, settings)


def _settings(request: MapRequest) -> Settings:
    """The options of this kind of map; one of another kind is refused."""
    names = sorted(set().union(*OPTIONS.values()))
    given = {name: value for name in names if (value := getattr(request, name)) not in (None, ())}
    if others := sorted(given.keys() - OPTIONS[request.what]):
        option = "--line" if others[0] == "lines" else f"--{others[0].replace('_', '-')}"
        kinds = " and ".join(what for what, own in OPTIONS.items() if others[0] in own)
        raise click.UsageError(f"{option} is for {kinds}, not for {request.what}")
    return Settings(**{**DEFAULTS.get(request.what, {}), **given})


def _check_files(request: MapRequest) -> None:
    """Refuse what does not go with the kind of map."""
    what = request.what
    if what == "alignments" and not request.lines:
        raise click.UsageError("Missing option '--line'.")
    if what != "alignments" and not request.outputs and not request.export:
        raise click.UsageError("Missing option '-o' / '--output'" + (", or --export." if what == "words" else "."))
    if (request.file is None) != (what == "words"):
        raise click.UsageError("map words takes no FILE" if request.file else "Missing argument 'FILE'.")
    if request.target is not None and what != "alignments":
        raise click.UsageError(f"TARGET is for alignments, not for {what}")
    if request.file is not None and request.file == request.target == "-":
        raise click.UsageError("only one of FILE and TARGET can be -")


def _export(model: Path, settings: Settings, output: str, *, force: bool) -> None:
    from moses_rnn.analysis.maps import all_embeddings
    from moses_rnn.formats.embeddings import embedding_lines
    from moses_rnn.producers.open import open_model

    names, rows = all_embeddings(open_model(model), settings.side)
    with output_to(output, force, ()) as file:
        file.append(b"".join(embedding_lines(names, rows.tolist(), rows.shape[1])))
        file.commit()


def _draw(request: MapRequest, settings: Settings) -> None:
    """Draw points and write them, as each output's suffix says; what is missing is noticed before the long work."""
    kinds = [_kind_of(output) for output in request.outputs]
    from moses_rnn.analysis.maps import MapConfig, as_csv, as_json, as_text, check_method, draw_map
    from moses_rnn.analysis.plots import check_matplotlib, map_image
    from moses_rnn.files.outputs import OutputFile, commit_all, refuse_equal

    refuse_equal(request.outputs)
    check_method(settings.method)
    if set(kinds) & set(PICTURES):
        check_matplotlib()
    inputs = _inputs(request)
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(name, force=request.force, inputs=inputs)) for name in request.outputs]
        title, labels, vectors = POINTS[request.what](request, settings)
        map_ = draw_map(f"{title}, {settings.method}", labels, vectors, MapConfig(settings.method, seed=settings.seed))
        texts = {"csv": as_csv, "json": as_json}
        for file, kind in zip(files, kinds, strict=True):
            file.append(texts[kind](map_).encode() if kind in texts else map_image(map_, kind))
        commit_all(files)
    put("\n".join(as_text(map_)))


def _kind_of(output: str) -> str:
    kind = Path(output).suffix.removeprefix(".").lower()
    if kind not in PICTURES + DATA:
        raise click.UsageError(f"--output {output}: expected a name that ends with .svg, .png, .csv or .json")
    return kind


def _inputs(request: MapRequest) -> tuple[str, ...]:
    """Files that no output may replace."""
    from moses_rnn.producers.open import model_files

    return (*filter(None, [request.file, request.target]), *model_files(request.model))


def _word_points(request: MapRequest, settings: Settings) -> Points:
    from moses_rnn.analysis.maps import word_points

    labels, vectors = word_points(open_writer(request.model).checkpoint, settings.side, settings.max_points)
    if not labels:
        raise InputError(f"{request.model}: expected a {settings.side} shortlist with words, found none")
    return f"{settings.side} words", labels, vectors


def _phrase_points(request: MapRequest, settings: Settings) -> Points:
    from moses_rnn.analysis.maps import phrase_points
    from moses_rnn.analysis.phrase_samples import sample_phrases

    checkpoint = open_phrase_network(request.model).checkpoint
    blocks, inverse = model_blocks(str(request.file), checkpoint), is_inverse(checkpoint)
    sample = sample_phrases(blocks, settings.max_points, settings.seed, inverse=inverse, min_words=settings.min_words)
    return f"{'target' if inverse else 'source'} phrases", *phrase_points(checkpoint, sample)


def _sentence_points(request: MapRequest, settings: Settings) -> Points:
    from moses_rnn.analysis.maps import sentence_points
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.phrase_forms import words
    from moses_rnn.producers.open import open_model

    model = open_model(request.model)
    warn_of_unit(model)
    name = existing_input(str(request.file))
    lines = [line.rstrip(b"\r\n") for line in islice(read_lines(name), settings.max_points)]
    for number, line in enumerate(lines, start=1):
        if not words(line):
            raise FormatError(name, number, "a sentence", "a blank line")
    labels, vectors = sentence_points(model, lines)
    if len(labels) < FEWEST_POINTS:
        raise InputError(f"{name}: expected two sentences that the network can tell apart, found {len(labels)}")
    return "sentences", labels, vectors


POINTS = {"words": _word_points, "phrases": _phrase_points, "sentences": _sentence_points}


def _draw_alignments(request: MapRequest, settings: Settings) -> None:
    """Print alpha, or write it as pictures or records."""
    files = _alignment_files(request, settings)
    from moses_rnn.analysis.alignment_maps import as_json, as_text
    from moses_rnn.analysis.plots import check_matplotlib
    from moses_rnn.analysis.sentence_plots import ALIGNMENTS_OTHERWISE, alignment_image

    if any(_suffix(path) in PICTURES for path in files):
        check_matplotlib(ALIGNMENTS_OTHERWISE)
    maps = _alignment_maps(request, settings)
    if not files:
        put("\n\n".join(map(as_text, maps)))
    elif _suffix(files[0]) == "json":
        _write({files[0]: "".join(f"{as_json(one)}\n" for one in maps).encode()}, request)
    else:
        _write({path: alignment_image(one, _suffix(path)) for path, one in zip(files, maps, strict=True)}, request)


def _alignment_files(request: MapRequest, settings: Settings) -> list[Path]:
    """A picture of each line, in order, or a file of records; none: they are printed."""
    if not request.outputs:
        return []
    numbers, place = sorted(set(settings.lines)), Path(request.outputs[0])
    if len(request.outputs) > 1:
        raise click.UsageError("--output: expected one of alignments, a picture or a folder of pictures")
    if not place.suffix or place.is_dir():
        return [place / f"line-{number}.svg" for number in numbers]
    if _suffix(place) not in (*PICTURES, "json"):
        raise click.UsageError(f"--output {place}: expected a folder, or a name that ends with .svg, .png or .json")
    if len(numbers) > 1 and _suffix(place) in PICTURES:
        raise click.UsageError(
            f"--output {place}: expected a folder for {len(numbers)} pictures, found the name of one"
        )
    return [place]


def _suffix(path: Path) -> str:
    return path.suffix.removeprefix(".").lower()


def _alignment_maps(request: MapRequest, settings: Settings) -> list[AlignmentMap]:
    from moses_rnn.analysis.alignment_maps import attentive_stepper, given_maps, own_maps, read_chosen
    from moses_rnn.files.streams import existing_input
    from moses_rnn.producers.open import open_model

    source = existing_input(str(request.file))
    target = None if request.target is None else existing_input(request.target)
    model = open_model(request.model)
    stepper = attentive_stepper(model)
    warn_of_unit(model)
    sources, targets = read_chosen(source, target, frozenset(settings.lines))
    if target is None:
        return own_maps(model.checkpoint, stepper, sources, settings.beam)
    return given_maps(model.checkpoint, stepper, sources, targets)


def _write(contents: dict[Path, bytes], request: MapRequest) -> None:
    """Write all files, or none."""
    from moses_rnn.files.outputs import OutputFile, commit_all

    for folder in {path.parent for path in contents}:
        with writing(folder):
            folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        inputs = _inputs(request)
        files = [stack.enter_context(OutputFile(str(path), force=request.force, inputs=inputs)) for path in contents]
        for file, data in zip(files, contents.values(), strict=True):
            file.append(data)
        commit_all(files)


GATES_EPILOG = f"""\b
Example: which units of a network remember and which forget, the numbers of all units in a file
  moses-rnn analyse gates phrase-table.rnn-model phrase-table.gz -o gates.csv

z near 1: the unit keeps its state (long-term); r near 0: it forgets it (short-term); section 2.3 of the paper. A gate
is active beyond 0.5. Words that come five times or more in the sample are shown.
{EITHER_ORDER}
"""


@dataclass(frozen=True, kw_only=True)
class GatesRequest(ModelAndTable):
    """What the command line asks for."""

    network: str
    phrases: int
    seed: int
    output: str | None
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=GATES_EPILOG)
@model_argument
@click.argument("phrase_table")
@click.option("--network", type=click.Choice(NETWORKS), default="encoder", show_default=True, help="Whose gates")
@click.option("--phrases", type=click.IntRange(1), default=2000, show_default=True, help="To sample from the table")
@seed_option
@click.option("-o", "--output", help="Write the numbers of all units as CSV")
@force_option
@reports_errors
@takes(GatesRequest)
def gates(request: GatesRequest) -> None:
    """Report what the gates of each unit of the network MODEL do over phrases of PHRASE_TABLE."""
    request = in_either_order(request)
    check_inputs(request.model, request.phrase_table)
    from moses_rnn.analysis.gates import as_grid, as_text, measure_gates
    from moses_rnn.files.outputs import NoOutput, OutputFile
    from moses_rnn.formats.grids import as_csv

    output, inputs = request.output, (request.phrase_table,)
    with OutputFile(output, force=request.force, inputs=inputs) if output else NoOutput() as file:
        checkpoint = open_phrase_network(request.model).checkpoint
        pairs = _pairs(checkpoint, request)
        report = measure_gates(checkpoint, pairs, request.network, progress_of("phrases", len(pairs)))
        file.commit(f"{as_csv(as_grid(report))}\n".encode())
    put("\n".join(as_text(report)))


def _pairs(checkpoint: Checkpoint, request: GatesRequest) -> list[Pair]:
    """What the network runs over; an encoder writes nothing."""
    from moses_rnn.analysis.phrase_samples import Pair, sample_pairs, sample_phrases

    blocks, inverse = model_blocks(request.phrase_table, checkpoint), is_inverse(checkpoint)
    if request.network == "decoder":
        return sample_pairs(blocks, request.phrases, request.seed, inverse=inverse)
    return [Pair(phrase, b"") for phrase in sample_phrases(blocks, request.phrases, request.seed, inverse=inverse)]


MAP_COMMANDS = (map_, gates)
