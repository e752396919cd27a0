"""moses-rnn analyse map: what is inside a network."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from moses_rnn.analysis.extras import check_library
from moses_rnn.analysis.grids import LAYOUTS, PICTURES, Grid, as_csv
from moses_rnn.cli.analyse_options import Layout, kind_of, open_phrase_network, optional_output, progress, suffix_of
from moses_rnn.cli.command import CONTEXT, ProgramGroup, check_inputs, command, inputs_of, print_out
from moses_rnn.cli.inputs import choose_model, output_to, parallel_texts, text_of, warn_of_unit
from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.outputs import writing
from moses_rnn.options import Argument, Force, ModelBeside, ModelFolder, Option

if TYPE_CHECKING:
    from moses_rnn.analysis.scored_table import Floats
    from moses_rnn.models.model import Model

    Points = tuple[str, list[str], Floats]  # their name, labels and vectors

MAX_POINTS, MAX_SENTENCES = 2000, 1000  # the most frequent words, a sample of phrases; the first sentences
MAX_PHRASES = 100_000  # a sample, in which the nearest ones are sought

Drawn = Annotated[
    tuple[str, ...], Option("Picture (.svg, .png) or data (.csv, .json); repeat it for several", "-o --output")
]
Method = Annotated[Literal["tsne", "pca"], Option("Layout method")]
Side = Annotated[
    Literal["source", "target"] | None, Option("Whose words [default: source; of a language model: target]")
]

EPILOG = """\b
Examples: words (Figure 4 of the paper), phrases of a table by their summaries c (Figure 5), attention in line 3:
  moses-rnn analyse map words --model phrase-table.rnn-model -o words.svg
  moses-rnn analyse map phrases phrase-table.gz -o phrases.svg
  moses-rnn analyse map alignments test.en --model search --line 3
"""


@click.group("map", cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def map_() -> None:
    """Show what a network learned: words, phrases, sentences, alignments or gates."""


WORDS_EPILOG = """\b
Examples: a map, as a picture and as data; all source words, as moses-rnn-train --source-embeddings reads them:
  moses-rnn analyse map words --model phrase-table.rnn-model -o words.svg -o words.csv
  moses-rnn analyse map words --model phrase-table.rnn-model --export source.vec
"""


@command(WORDS_EPILOG)
def words(
    *,
    model: ModelFolder,
    side: Side = None,
    method: Method = "tsne",
    outputs: Drawn = (),
    export: Annotated[
        str | None, Option("Write the embeddings of all words in word2vec's text format", metavar="FILE")
    ] = None,
    force: Force = False,
) -> None:
    """Draw the most frequent words by their embeddings (Figure 4)."""
    if not outputs and not export:
        raise click.UsageError("Missing option '-o' / '--output', or --export.")
    if export and any(os.path.realpath(export) == os.path.realpath(output) for output in outputs):
        raise click.UsageError(f"--export and --output are both {export}")
    check_inputs(model)
    if export:
        _export(model, side, export, force)
    if outputs:
        _draw(lambda: _words(model, side), method, outputs, inputs_of(model), force)


def _open_side(folder: Path, side: str | None) -> tuple[Model, str]:
    """Open a model, and choose whose words to show: by default the first side that it has."""
    from moses_rnn.models.open import open_model

    model = open_model(folder, of_pairs=False)
    return model, side or model.architecture.sides[0]


def _export(folder: Path, side: str | None, output: str, force: bool) -> None:
    from moses_rnn.analysis.maps import all_embeddings
    from moses_rnn.training.embeddings import embedding_lines

    names, rows = all_embeddings(*_open_side(folder, side))
    with output_to(output, force, inputs_of(folder)) as file:
        file.commit(b"".join(embedding_lines(names, rows.tolist(), rows.shape[1])))


def _words(folder: Path, side: str | None) -> Points:
    from moses_rnn.analysis.maps import word_points

    model, side = _open_side(folder, side)
    labels, vectors = word_points(model, side, MAX_POINTS)
    if not labels:
        raise InputError(f"{folder}: expected a {side} shortlist with words, found none")
    of_table = {"source": "target", "target": "source"}[side] if model.inverse else side
    return f"{of_table} words", labels, vectors


PHRASES_EPILOG = """\b
Example:
  moses-rnn analyse map phrases phrase-table.gz -o phrases.svg
"""


@command(PHRASES_EPILOG)
def phrases(
    phrase_table: str,
    *,
    model: ModelBeside = None,
    min_words: Annotated[int, Option("Minimum words per phrase", min=1)] = 4,
    method: Method = "tsne",
    outputs: Drawn,
    force: Force = False,
) -> None:
    """Draw phrases of a table by their summaries c (Figure 5)."""
    folder = choose_model(model, phrase_table)
    check_inputs(folder, phrase_table)

    def points() -> Points:
        from moses_rnn.analysis.maps import phrase_points

        network = open_phrase_network(folder)
        sampled = [phrase for (phrase,) in _sample(network, phrase_table, min_words=min_words)]
        return f"{'target' if network.inverse else 'source'} phrases", *phrase_points(network, sampled)

    _draw(points, method, outputs, inputs_of(phrase_table, folder), force)


def _sample(model: Model, table: str, *, whole: bool = False, min_words: int = 1) -> list[tuple[bytes, ...]]:
    from moses_rnn.analysis.phrase_samples import sample_table

    with progress() as advanced:
        return sample_table(model, table, MAX_POINTS, whole=whole, min_words=min_words, advanced=advanced)


SENTENCES_EPILOG = """\b
Example:
  moses-rnn analyse map sentences test.en --model search -o sentences.svg

Each sentence appears as the vector that the decoder starts from: for a deep LSTM, h of all layers after the last word;
for RNNsearch, s_0; for an RNN Encoder-Decoder, c. Of sentences that differ only in unknown words, only the first is
shown.
"""


@command(SENTENCES_EPILOG)
def sentences(text: str, *, model: ModelFolder, method: Method = "pca", outputs: Drawn, force: Force = False) -> None:
    """Draw the first sentences of a text, as the decoder sees them."""
    check_inputs(model, text)

    def points() -> Points:
        from moses_rnn.analysis.maps import phrase_points
        from moses_rnn.models.open import open_model

        network = open_model(model)
        warn_of_unit(network)
        labels, vectors = phrase_points(network, _sentences(text))
        if len(labels) < 2:
            expected = "expected two sentences that the network can tell apart"
            raise InputError(f"{text}: {expected}, found {len(labels)}")
        return "sentences", labels, vectors

    _draw(points, method, outputs, inputs_of(text, model), force)


def _sentences(text: str) -> list[bytes]:
    """Read the first lines of a text, each of which must have words."""
    from moses_rnn.files.streams import find_input, read_text
    from moses_rnn.table.phrases import words

    name = find_input(text)
    lines = [line.rstrip(b"\r\n") for line in islice(read_text(name), MAX_SENTENCES)]
    for number, line in enumerate(lines, start=1):
        if not words(line):
            raise FormatError(name, number, "a sentence", "a blank line")
    return lines


def _draw(
    points: Callable[[], Points], method: str, outputs: Sequence[str], inputs: tuple[str, ...], force: bool
) -> None:
    """Lay points out and write them, as each output's suffix says; check for missing libraries before the long work."""
    kinds = [kind_of(name, (*PICTURES, "csv", "json"), ".csv and .json do not need it") for name in outputs]
    if method == "tsne":
        check_library("scikit-learn", "t-SNE", "--method pca does not need it")
    from moses_rnn.analysis.maps import as_grid, as_json, as_text, draw_map
    from moses_rnn.files.outputs import output_files

    with output_files(outputs, force=force, inputs=inputs) as files:
        title, labels, vectors = points()
        drawn = draw_map(f"{title}, {method}", labels, vectors, method)
        for file, kind in zip(files, kinds, strict=True):
            if kind in PICTURES:
                from moses_rnn.analysis.plots import map_figure, picture

                file.append(picture(map_figure, drawn, kind=kind))
            else:
                file.append((as_json(drawn) if kind == "json" else f"{as_csv(as_grid(drawn))}\n").encode())
    print_out("\n".join(as_text(drawn)))


ALIGNMENTS_EPILOG = """\b
Examples: where a network looks while it translates lines 3 and 7; the same for a given translation, as text:
  moses-rnn analyse map alignments test.en --model search --line 3 --line 7 -o maps
  moses-rnn analyse map alignments test.en test.fr --model search --line 3

SOURCE is the text that the network reads, TARGET its translation, line by line. Without TARGET, the network translates
with a beam of width 12. The source runs across and the target down, both with </s>. Each row shows the attention
weights α for one target word and sums to 1; white is 0, black is 1. Words that are <unk> to the network are grey.
"""


@command(ALIGNMENTS_EPILOG)
def alignments(
    source: str,
    target: str | None = None,
    *,
    model: ModelFolder,
    lines: Annotated[tuple[int, ...], Option("Line to align, from 1; repeat it for several", "--line", min=1)],
    output: Annotated[
        str | None, Option("Picture (.svg, .png), records (.json), or a folder for the lines' pictures", "-o --output")
    ] = None,
    force: Force = False,
) -> None:
    """Show where a network with attention looks."""
    check_inputs(model, source, target)
    names = _alignment_files(output, lines) if output else []
    from moses_rnn.analysis.alignment_maps import as_text, map_alignments
    from moses_rnn.files.outputs import output_files
    from moses_rnn.files.streams import find_input
    from moses_rnn.models.open import open_model
    from moses_rnn.translation.translate import format_alignment

    otherwise = "a .json, and text without --output, do not need it"
    kind = kind_of(names[0], (*PICTURES, "json"), otherwise) if names else "text"
    network = open_model(model)
    warn_of_unit(network)
    sources, targets = parallel_texts(source, target) if target is not None else (text_of(source), None)
    maps = map_alignments(network, sources, find_input(source), lines, targets)
    if not names:
        print_out("\n\n".join(map(as_text, maps)))
        return
    if kind == "json":
        drawn = [b"".join(format_alignment(one.line, one.source, one.target, one.alpha) for one in maps)]
    else:
        from moses_rnn.analysis.plots import alignment_figure, picture

        drawn = [picture(alignment_figure, one, kind=kind) for one in maps]
    with writing(Path(names[0]).parent):
        Path(names[0]).parent.mkdir(exist_ok=True)
    with output_files(names, force=force, inputs=inputs_of(source, target, model)) as files:
        for file, data in zip(files, drawn, strict=True):
            file.append(data)


def _alignment_files(output: str, lines: Sequence[int]) -> list[str]:
    """Return the names of the lines' pictures, or of the file of records."""
    numbers = sorted(set(lines))
    if not suffix_of(output) or Path(output).is_dir():
        return [str(Path(output, f"line-{number}.svg")) for number in numbers]
    if len(numbers) > 1 and suffix_of(output) in PICTURES:
        raise click.UsageError(
            f"--output {output}: expected a folder for {len(numbers)} pictures, found the name of a picture"
        )
    return [output]


GATES_EPILOG = """\b
Example: which units of an encoder remember and which forget in phrases of a table; a file lists all units:
  moses-rnn analyse map gates phrase-table.gz -o gates.csv

A unit with z near 1 keeps its state (long-term); one with r near 0 forgets it (short-term); see section 2.3 of the
paper. An update gate is active if z is above 0.5, a reset gate if r is below 0.5. Words that occur at least five times
in the sampled phrases are shown.
"""


@command(GATES_EPILOG)
def gates(
    phrase_table: str,
    *,
    model: ModelBeside = None,
    side: Annotated[Literal["source", "target"], Option("Show the encoder's gates, or the decoder's")] = "source",
    output: Annotated[str | None, Option("Numbers of all units (.csv)", "-o --output")] = None,
    force: Force = False,
) -> None:
    """Show which units remember and which forget."""
    folder = choose_model(model, phrase_table)
    check_inputs(folder, phrase_table)
    if output:
        kind_of(output, ("csv",), "")
    from moses_rnn.analysis.gates import as_grid, as_text, measure_gates

    with optional_output(output, *inputs_of(phrase_table, folder), force=force) as file:
        network = open_phrase_network(folder)
        report = measure_gates(network, *zip(*_sample(network, phrase_table, whole=side == "target"), strict=True))
        if file:
            file.commit(f"{as_csv(as_grid(report))}\n".encode())
    print_out("\n".join(as_text(report)))


NEIGHBOURS_EPILOG = """\b
Examples: words; phrases of a table:
  moses-rnn analyse neighbours phrase-table.rnn-model dog red
  moses-rnn analyse neighbours phrase-table.rnn-model "far from the" --table phrase-table.gz

The cosine is of embeddings or, for phrases, of the vectors from which the decoder starts, as in map phrases.
"""


@command(NEIGHBOURS_EPILOG)
def neighbours(
    model: Path,
    given: Annotated[tuple[str, ...], Argument("WORD...")],
    *,
    side: Side = None,
    table: Annotated[str | None, Option(f"Phrase table: compare up to {MAX_PHRASES:,} of its phrases")] = None,
    count: Annotated[int, Option("Neighbours of each word or phrase", min=1)] = 10,
    layout: Layout = "text",
) -> None:
    """List the nearest words or phrases in a network."""
    if table and side:
        raise click.UsageError("--side is for words; with --table, phrases are compared")
    check_inputs(model, table)
    from moses_rnn.analysis.neighbours import nearest_phrases, nearest_words
    from moses_rnn.analysis.phrase_samples import sample_table
    from moses_rnn.models.open import open_model
    from moses_rnn.translation.proposals import Converter, parse_sources

    texts = list(map(os.fsencode, given))
    network = open_model(model, of_pairs=table is not None)
    if table:
        texts = list(parse_sources(texts, "WORD", Converter(network)))
        among = [phrase for (phrase,) in sample_table(network, table, MAX_PHRASES)]
        found = nearest_phrases(network, texts, among, count)
    else:
        found = nearest_words(network, texts, side or network.architecture.sides[0], count)
    rows = [(text, *neighbour) for text, nearest in zip(texts, found, strict=True) for neighbour in nearest]
    print_out(LAYOUTS[layout](Grid("", ("nearest to", "neighbour", "cosine"), rows, group_columns=1)))


for subcommand in (words, phrases, sentences, alignments, gates):
    map_.add_command(subcommand)
