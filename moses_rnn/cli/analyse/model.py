"""moses-rnn-analyse, the commands that look inside a network: gates, words, phrases."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.analysis.grids import PICTURES
from moses_rnn.cli.analyse.options import (
    force_option,
    is_inverse,
    model_argument,
    model_blocks,
    progress_of,
    seed_option,
)
from moses_rnn.cli.command import CONTEXT, Program, Seed, put, reports_errors
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.analysis.maps import Map, MapConfig

DATA = ("csv", "json")

GATES_EPILOG = """\b
Example: which units of a network remember and which forget, the numbers of all units in a file
  moses-rnn-analyse gates phrase-table.rnn-model phrase-table.gz -o gates.csv

z near 1: the unit keeps its state (long-term); r near 0: it forgets it (short-term); section 2.3 of the paper.
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=GATES_EPILOG)
@model_argument
@click.argument("phrase_table")
@click.option(
    "--network", type=click.Choice(["encoder", "decoder"]), default="encoder", show_default=True, help="Whose gates"
)
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
def gates(
    model: Path, phrase_table: str, phrases: int, seed: int, output: str | None, *, force: bool, **options: Any
) -> None:
    """Report what the gates of each unit of the network MODEL do over phrases of PHRASE_TABLE."""
    from moses_rnn.analysis.gates import GateConfig, as_csv, as_text, gate_report
    from moses_rnn.analysis.phrase_samples import Pair, sampled_pairs, sampled_phrases
    from moses_rnn.files.outputs import NoOutput, OutputFile
    from moses_rnn.models.checkpoint import load_checkpoint

    config = GateConfig(**options)
    with OutputFile(output, force=force, inputs=(phrase_table,)) if output else NoOutput() as file:
        checkpoint = load_checkpoint(model)
        blocks, inverse = model_blocks(phrase_table, checkpoint), is_inverse(checkpoint)
        if config.network == "decoder":
            pairs = sampled_pairs(blocks, phrases, seed, inverse=inverse)
        else:
            pairs = [Pair(phrase, b"") for phrase in sampled_phrases(blocks, phrases, seed, inverse=inverse)]
        found = gate_report(checkpoint, pairs, config, progress_of("phrases", 2 * len(pairs)))
        file.commit(as_csv(found).encode())
    put("\n".join(as_text(found)))


def _map_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of both maps."""
    for option in (
        click.option(
            "-o",
            "--output",
            "outputs",
            multiple=True,
            required=True,
            help="Picture (.svg, .png) or coordinates (.csv, .json); may be repeated",
        ),
        click.option("--method", type=click.Choice(["tsne", "pca"]), default="tsne", show_default=True),
        click.option("--perplexity", type=click.FloatRange(1), default=30, show_default=True, help="Of t-SNE"),
        click.option("--seed", type=Seed(32), default=1, show_default=True),
        click.option("--zooms", type=click.IntRange(0), default=4, show_default=True, help="Parts to enlarge"),
        click.option(
            "--zoom-points", type=click.IntRange(3), default=24, show_default=True, help="About as many in each"
        ),
        force_option,
    ):
        command = option(command)
    return command


WORDS_EPILOG = """\b
Example:
  moses-rnn-analyse words phrase-table.rnn-model -o words.svg -o words.csv
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=WORDS_EPILOG)
@model_argument
@click.option(
    "--side", type=click.Choice(["source", "target"]), default="source", show_default=True, help="Whose words"
)
@click.option("--max-points", type=click.IntRange(1), default=2000, show_default=True, help="The most frequent words")
@_map_options
@reports_errors
def words(model: Path, side: str, max_points: int, outputs: tuple[str, ...], *, force: bool, **options: Any) -> None:
    """Draw a map of the word embeddings of the network MODEL (the paper's Figure 4)."""
    from moses_rnn.analysis.maps import MapConfig, drawn_map, word_points
    from moses_rnn.models.checkpoint import load_checkpoint

    config = MapConfig(**options)

    def drawn() -> Map:
        labels, vectors = word_points(load_checkpoint(model), side, max_points)
        if not labels:
            raise InputError(f"{model}: expected a {side} shortlist with words, found none")
        return drawn_map(f"{side} words, {config.method}", labels, vectors, config)

    _draw(drawn, config, outputs, (), force=force)


PHRASES_EPILOG = """\b
Example:
  moses-rnn-analyse phrases phrase-table.rnn-model phrase-table.gz -o phrases.svg
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=PHRASES_EPILOG)
@model_argument
@click.argument("phrase_table")
@click.option("--min-words", type=click.IntRange(1), default=4, show_default=True, help="The least length of a phrase")
@click.option("--max-points", type=click.IntRange(1), default=2000, show_default=True, help="To sample from the table")
@_map_options
@reports_errors
def phrases(
    model: Path,
    phrase_table: str,
    min_words: int,
    max_points: int,
    outputs: tuple[str, ...],
    *,
    force: bool,
    **options: Any,
) -> None:
    """Draw a map of PHRASE_TABLE's phrases by their summaries c in the network MODEL (the paper's Figure 5)."""
    from moses_rnn.analysis.maps import MapConfig, drawn_map, phrase_points
    from moses_rnn.analysis.phrase_samples import sampled_phrases
    from moses_rnn.models.checkpoint import load_checkpoint

    config = MapConfig(**options)

    def drawn() -> Map:
        checkpoint = load_checkpoint(model)
        blocks, inverse = model_blocks(phrase_table, checkpoint), is_inverse(checkpoint)
        found = sampled_phrases(blocks, max_points, config.seed, inverse=inverse, min_words=min_words)
        side = "target" if inverse else "source"
        return drawn_map(f"{side} phrases, {config.method}", *phrase_points(checkpoint, found), config)

    _draw(drawn, config, outputs, (phrase_table,), force=force)


def _draw(
    drawn: Callable[[], Map], config: MapConfig, outputs: tuple[str, ...], inputs: tuple[str, ...], *, force: bool
) -> None:
    """Make a map and write it, as each output's suffix says; what is missing is found before the long work."""
    from moses_rnn.analysis.maps import as_csv, as_json, as_text, check_method
    from moses_rnn.analysis.plots import check_matplotlib, map_image
    from moses_rnn.files.outputs import OutputFile, refuse_equal

    kinds = [_kind_of(output) for output in outputs]
    refuse_equal(outputs)
    check_method(config.method)
    if set(kinds) & set(PICTURES):
        check_matplotlib()
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(output, force=force, inputs=inputs)) for output in outputs]
        found = drawn()
        texts = {"csv": as_csv, "json": as_json}
        for file, kind in zip(files, kinds, strict=True):
            file.commit(texts[kind](found).encode() if kind in texts else map_image(found, kind))
    put("\n".join(as_text(found)))


def _kind_of(output: str) -> str:
    kind = Path(output).suffix.removeprefix(".").lower()
    if kind not in PICTURES + DATA:
        raise click.UsageError(f"--output {output}: expected a name that ends with .svg, .png, .csv or .json")
    return kind


MODEL_COMMANDS = (gates, words, phrases)
