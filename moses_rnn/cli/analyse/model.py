"""moses-rnn-analyse, the commands that look inside a network: gates, words, phrases."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

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
from moses_rnn.cli.files import check_inputs
from moses_rnn.errors import InputError
from moses_rnn.formats.grids import PICTURES

if TYPE_CHECKING:
    from moses_rnn.analysis.maps import Map, MapConfig
    from moses_rnn.analysis.phrase_samples import Pair
    from moses_rnn.models.checkpoint import Checkpoint

DATA = ("csv", "json")

GATES_EPILOG = f"""\b
Example: which units of a network remember and which forget, the numbers of all units in a file
  moses-rnn-analyse gates phrase-table.rnn-model phrase-table.gz -o gates.csv

z near 1: the unit keeps its state (long-term); r near 0: it forgets it (short-term); section 2.3 of the paper.
{EITHER_ORDER}
"""


@dataclass(frozen=True, kw_only=True)
class GatesRequest(ModelAndTable):
    """What the command line asks for."""

    network: str
    phrases: int
    seed: int
    threshold: float
    units: int
    words: int
    min_times: int
    output: str | None
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=GATES_EPILOG)
@model_argument
@click.argument("phrase_table")
@click.option("--network", type=click.Choice(NETWORKS), default="encoder", show_default=True, help="Whose gates")
@click.option("--phrases", type=click.IntRange(1), default=2000, show_default=True, help="To sample from the table")
@seed_option
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="T: an update gate is active where z > T, a reset gate where r < 1 - T",
)
@click.option("--units", type=click.IntRange(0), default=5, show_default=True, help="To show of either kind")
@click.option("--words", type=click.IntRange(0), default=5, show_default=True, help="To show of each unit and side")
@click.option(
    "--min-times", type=click.IntRange(1), default=5, show_default=True, help="How often a word must be in the sample"
)
@click.option("-o", "--output", help="Write the numbers of all units as CSV")
@force_option
@reports_errors
@takes(GatesRequest)
def gates(request: GatesRequest) -> None:
    """Report what the gates of each unit of the network MODEL do over phrases of PHRASE_TABLE."""
    request = in_either_order(request)
    check_inputs(request.model, request.phrase_table)
    from moses_rnn.analysis.gates import GateConfig, as_csv, as_text, measure_gates
    from moses_rnn.files.outputs import NoOutput, OutputFile

    config = GateConfig(request.network, request.threshold, request.units, request.words, request.min_times)
    output, inputs = request.output, (request.phrase_table,)
    with OutputFile(output, force=request.force, inputs=inputs) if output else NoOutput() as file:
        checkpoint = open_phrase_network(request.model).checkpoint
        pairs = _pairs(checkpoint, request)
        report = measure_gates(checkpoint, pairs, config, progress_of("phrases", 2 * len(pairs)))
        file.commit(as_csv(report).encode())
    put("\n".join(as_text(report)))


def _pairs(checkpoint: Checkpoint, request: GatesRequest) -> list[Pair]:
    """What the network runs over; an encoder writes nothing."""
    from moses_rnn.analysis.phrase_samples import Pair, sample_pairs, sample_phrases

    blocks, inverse = model_blocks(request.phrase_table, checkpoint), is_inverse(checkpoint)
    if request.network == "decoder":
        return sample_pairs(blocks, request.phrases, request.seed, inverse=inverse)
    return [Pair(phrase, b"") for phrase in sample_phrases(blocks, request.phrases, request.seed, inverse=inverse)]


@dataclass(frozen=True, kw_only=True)
class MapOptions:
    """What `map_options` ask for."""

    outputs: tuple[str, ...]
    method: str
    perplexity: float
    seed: int
    zooms: int
    zoom_points: int
    force: bool


def map_options(command: Callable[..., None], method: str = "tsne", *, required: bool = True) -> Callable[..., None]:
    """The options of every map.

    Args:
        command: that has them.
        method: by which it lays points out unless it is told otherwise.
        required: whether there must be a map.
    """
    options = (
        click.option(
            "-o",
            "--output",
            "outputs",
            multiple=True,
            required=required,
            help="Picture (.svg, .png) or coordinates (.csv, .json); may be repeated",
        ),
        click.option("--method", type=click.Choice(METHODS), default=method, show_default=True),
        click.option("--perplexity", type=click.FloatRange(1), default=30, show_default=True, help="Of t-SNE"),
        click.option("--seed", type=Seed(32), default=1, show_default=True),
        click.option("--zooms", type=click.IntRange(0), default=4, show_default=True, help="Parts to enlarge"),
        click.option(
            "--zoom-points", type=click.IntRange(3), default=24, show_default=True, help="About as many in each"
        ),
        force_option,
    )
    for option in reversed(options):  # --help shows the one that is applied last first
        command = option(command)
    return command


WORDS_EPILOG = """\b
Example:
  moses-rnn-analyse words phrase-table.rnn-model -o words.svg -o words.csv
All source words with their numbers, as moses-rnn-train --source-embeddings reads them:
  moses-rnn-analyse words phrase-table.rnn-model --export source.vec
"""


@dataclass(frozen=True, kw_only=True)
class WordsRequest(MapOptions):
    """What the command line asks for."""

    model: Path
    side: str
    max_points: int
    export: str | None


@click.command(cls=Program, context_settings=CONTEXT, epilog=WORDS_EPILOG)
@model_argument
@click.option(
    "--side", type=click.Choice(["source", "target"]), default="source", show_default=True, help="Whose words"
)
@click.option("--max-points", type=click.IntRange(1), default=2000, show_default=True, help="The most frequent words")
@click.option("--export", metavar="FILE", help="Write all embeddings in word2vec's text, with or without a map")
@partial(map_options, required=False)
@reports_errors
@takes(WordsRequest)
def words(request: WordsRequest) -> None:
    """Draw a map of the word embeddings of the network MODEL (the paper's Figure 4), or export them."""
    if not request.outputs and not request.export:
        raise click.UsageError("Missing option '-o' / '--output', or --export.")
    check_inputs(request.model)
    from moses_rnn.analysis.maps import draw_map, word_points

    if request.export:
        _export(request, request.export)
    if not request.outputs:
        return

    def draw(config: MapConfig) -> Map:
        labels, vectors = word_points(open_writer(request.model).checkpoint, request.side, request.max_points)
        if not labels:
            raise InputError(f"{request.model}: expected a {request.side} shortlist with words, found none")
        return draw_map(f"{request.side} words, {config.method}", labels, vectors, config)

    draw_files(draw, request)


def _export(request: WordsRequest, output: str) -> None:
    from moses_rnn.analysis.maps import all_embeddings
    from moses_rnn.cli.files import output_to
    from moses_rnn.formats.embeddings import embedding_lines
    from moses_rnn.producers.open import open_model

    names, rows = all_embeddings(open_model(request.model), request.side)
    with output_to(output, request.force, ()) as file:
        file.append(b"".join(embedding_lines(names, rows.tolist(), rows.shape[1])))
        file.commit()


PHRASES_EPILOG = f"""\b
Example:
  moses-rnn-analyse phrases phrase-table.rnn-model phrase-table.gz -o phrases.svg

{EITHER_ORDER}
"""


@dataclass(frozen=True, kw_only=True)
class PhrasesRequest(MapOptions, ModelAndTable):
    """What the command line asks for."""

    min_words: int
    max_points: int


@click.command(cls=Program, context_settings=CONTEXT, epilog=PHRASES_EPILOG)
@model_argument
@click.argument("phrase_table")
@click.option("--min-words", type=click.IntRange(1), default=4, show_default=True, help="The least length of a phrase")
@click.option("--max-points", type=click.IntRange(1), default=2000, show_default=True, help="To sample from the table")
@map_options
@reports_errors
@takes(PhrasesRequest)
def phrases(request: PhrasesRequest) -> None:
    """Draw a map of PHRASE_TABLE's phrases by their summaries c in the network MODEL (the paper's Figure 5)."""
    request = in_either_order(request)
    check_inputs(request.model, request.phrase_table)
    from moses_rnn.analysis.maps import draw_map, phrase_points
    from moses_rnn.analysis.phrase_samples import sample_phrases

    def draw(config: MapConfig) -> Map:
        checkpoint = open_phrase_network(request.model).checkpoint
        blocks, inverse = model_blocks(request.phrase_table, checkpoint), is_inverse(checkpoint)
        sample = sample_phrases(blocks, request.max_points, config.seed, inverse=inverse, min_words=request.min_words)
        side = "target" if inverse else "source"
        return draw_map(f"{side} phrases, {config.method}", *phrase_points(checkpoint, sample), config)

    draw_files(draw, request, (request.phrase_table,))


def draw_files(draw: Callable[[MapConfig], Map], options: MapOptions, inputs: tuple[str, ...] = ()) -> None:
    """Draw a map and write it, as each output's suffix says; what is missing is noticed before the long work."""
    from moses_rnn.analysis.maps import MapConfig, as_csv, as_json, as_text, check_method
    from moses_rnn.analysis.plots import check_matplotlib, map_image
    from moses_rnn.files.outputs import OutputFile, commit_all, refuse_equal

    kinds = [_kind_of(output) for output in options.outputs]
    refuse_equal(options.outputs)
    check_method(options.method)
    if set(kinds) & set(PICTURES):
        check_matplotlib()
    config = MapConfig(options.method, options.perplexity, options.seed, options.zooms, options.zoom_points)
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(name, force=options.force, inputs=inputs)) for name in options.outputs]
        map_ = draw(config)
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


MODEL_COMMANDS = (gates, words, phrases)
