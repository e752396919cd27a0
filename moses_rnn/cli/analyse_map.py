"""moses-rnn analyse map: what is inside a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from moses_rnn.analysis.extras import check_library
from moses_rnn.analysis.grids import PICTURES, as_csv
from moses_rnn.cli.analyse_options import kind_of, open_phrase_network, progress, suffix_of
from moses_rnn.cli.command import check_inputs, command, given_options, inputs_of, print_out
from moses_rnn.cli.inputs import choose_model, output_to, parallel_texts, text_of, warn_of_unit
from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.outputs import writing
from moses_rnn.options import Force, Option

if TYPE_CHECKING:
    from moses_rnn.analysis.scored_table import Floats
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.models.model import Model

MAX_POINTS, MAX_SENTENCES = 2000, 1000  # the most frequent words, a sample of phrases; the first sentences
# the options of each kind of map
OPTIONS = {
    "words": {"side", "method", "export"},
    "phrases": {"min_words", "method"},
    "sentences": {"method"},
    "alignments": {"lines"},
    "gates": {"side"},
}
OF_TABLES, OF_POINTS = ("phrases", "gates"), ("words", "phrases", "sentences")
MAP_EPILOG = """\b
Examples: words (Figure 4 of the paper), phrases of a table by their summaries c (Figure 5), lines of a text:
  moses-rnn analyse map words --model phrase-table.rnn-model -o words.svg -o words.csv
  moses-rnn analyse map phrases phrase-table.gz -o phrases.svg
  moses-rnn analyse map sentences test.en --model search -o sentences.svg
All source words with their embeddings, as moses-rnn-train --source-embeddings reads them:
  moses-rnn analyse map words --model phrase-table.rnn-model --export source.vec
Where a network looks while it translates lines 3 and 7; the same for a given translation, as text:
  moses-rnn analyse map alignments test.en --model search --line 3 --line 7 -o maps
  moses-rnn analyse map alignments test.en test.fr --model search --line 3
Which units of an encoder remember and which forget in phrases of a table; a file lists all units:
  moses-rnn analyse map gates phrase-table.gz -o gates.csv

sentences: each sentence appears as the vector that the decoder starts from: for a deep LSTM, h of all layers after the
last word; for RNNsearch, s_0; for an RNN Encoder-Decoder, c. Of sentences that differ only in unknown words, only the
first is shown.

alignments: the source runs across and the target down, both with </s>. Each row shows the attention weights α for one
target word and sums to 1; white is 0, black is 1. Words that are <unk> to the network are grey. FILE is the text that
the network reads, TARGET its translation, line by line. Without TARGET, the network translates with a beam of width 12.

gates: a unit with z near 1 keeps its state (long-term); one with r near 0 forgets it (short-term); see section 2.3 of
the paper. An update gate is active if z is above 0.5, a reset gate if r is below 0.5. Words that occur at least five
times in the sampled phrases are shown. --side target shows the decoder's gates.
"""


@dataclass(frozen=True, kw_only=True)
class MapRequest:
    """The command line; the defaults of `method` and `model` depend on the kind of map."""

    what: Literal["words", "phrases", "sentences", "alignments", "gates"]
    file: str | None = None
    target: str | None = None
    model: Annotated[
        Path | None,
        Option("Model folder [default for phrases and gates: the one beside the table]", "--model", metavar="FOLDER"),
    ] = None
    outputs: Annotated[
        tuple[str, ...],
        Option(
            "Picture (.svg, .png) or data (.csv, .json); repeat it for several. For alignments only one: a picture, a "
            ".json or a folder of pictures; for gates only .csv",
            "-o --output",
        ),
    ] = ()
    method: Annotated[
        Literal["tsne", "pca"] | None, Option("Layout method [default: pca for sentences, else tsne]")
    ] = None
    side: Annotated[
        Literal["source", "target"] | None,
        Option("Side of the words or gates [default: source; for a language model: target]"),
    ] = None
    min_words: Annotated[int, Option("Minimum words per phrase", min=1)] = 4
    export: Annotated[
        str | None, Option("Write the embeddings of all words in word2vec's text format", metavar="FILE")
    ] = None
    lines: Annotated[tuple[int, ...], Option("Line to align, from 1; repeat it for several", "--line", min=1)] = ()
    force: Force = False

    @property
    def folder(self) -> Path:
        """The model's folder: the named one, or the one beside the table."""
        if self.model is None and self.what not in OF_TABLES:
            raise click.UsageError("Missing option '--model'.")
        return choose_model(self.model, str(self.file))


@command(MAP_EPILOG, "map")
def map_(request: MapRequest) -> None:
    """Draw words, phrases, sentences, alignments or gates.

    FILE is a phrase table (phrases, gates), a text (sentences, alignments) or absent (words).
    """
    _check_options(request)
    _check_files(request)
    check_inputs(request.folder, request.file, request.target)
    if request.export:
        _export(request, request.export)
    if request.what == "alignments":
        _draw_alignments(request)
    elif request.what == "gates":
        _report_gates(request)
    elif request.outputs:
        _draw_points(request)


def _check_options(request: MapRequest) -> None:
    given = given_options()
    for name in sorted(given.keys() & (set().union(*OPTIONS.values()) - OPTIONS[request.what])):
        kinds = " and ".join(what for what, own in OPTIONS.items() if name in own)
        raise click.UsageError(f"{given[name]} applies to {kinds}, not to {request.what}")


def _check_files(request: MapRequest) -> None:
    what = request.what
    if what == "alignments" and not request.lines:
        raise click.UsageError("Missing option '--line'.")
    if what in OF_POINTS and not request.outputs and not request.export:
        raise click.UsageError("Missing option '-o' / '--output'" + (", or --export." if what == "words" else "."))
    if (request.file is None) != (what == "words"):
        raise click.UsageError("map words takes no FILE" if request.file else "Missing argument 'FILE'.")
    if request.export in request.outputs:
        raise click.UsageError(f"--export and --output are both {request.export}")
    if request.target is not None and what != "alignments":
        raise click.UsageError(f"TARGET applies to alignments, not to {what}")


def _export(request: MapRequest, output: str) -> None:
    from moses_rnn.analysis.maps import all_embeddings
    from moses_rnn.training.embeddings import embedding_lines

    names, rows = all_embeddings(*_model_and_side(request))
    with output_to(output, request.force, inputs_of(request.folder)) as file:
        file.commit(b"".join(embedding_lines(names, rows.tolist(), rows.shape[1])))


def _outputs(request: MapRequest, names: Sequence[str]) -> AbstractContextManager[list[OutputFile]]:
    """Open files that appear together, none in place of what is read."""
    from moses_rnn.files.outputs import output_files

    inputs = inputs_of(request.file, request.target, request.folder)
    return output_files(names, force=request.force, inputs=inputs)


def _draw_points(request: MapRequest) -> None:
    """Draw points and write them, as each output's suffix says; check for missing libraries before the long work."""
    kinds = [kind_of(name, (*PICTURES, "csv", "json"), ".csv and .json do not need it") for name in request.outputs]
    method = request.method or ("pca" if request.what == "sentences" else "tsne")
    if method == "tsne":
        check_library("scikit-learn", "t-SNE", "--method pca does not need it")
    from moses_rnn.analysis.maps import as_grid, as_json, as_text, draw_map

    with _outputs(request, request.outputs) as files:
        title, labels, vectors = _points(request)
        map_ = draw_map(f"{title}, {method}", labels, vectors, method)
        for file, kind in zip(files, kinds, strict=True):
            if kind in PICTURES:
                from moses_rnn.analysis.plots import map_figure, picture

                file.append(picture(map_figure, map_, kind=kind))
            else:
                file.append((as_json(map_) if kind == "json" else f"{as_csv(as_grid(map_))}\n").encode())
    print_out("\n".join(as_text(map_)))


def _points(request: MapRequest) -> tuple[str, list[str], Floats]:
    """Return the name, labels and vectors of the points."""
    from moses_rnn.analysis.maps import phrase_points, word_points
    from moses_rnn.models.open import open_model

    if request.what == "words":
        model, side = _model_and_side(request)
        labels, vectors = word_points(model, side, MAX_POINTS)
        if not labels:
            raise InputError(f"{request.folder}: expected a {side} shortlist with words, found none")
        of_table = {"source": "target", "target": "source"}[side] if model.inverse else side
        return f"{of_table} words", labels, vectors
    if request.what == "phrases":
        model = open_phrase_network(request.folder)
        phrases = [phrase for (phrase,) in _sample(model, request, min_words=request.min_words)]
        return f"{'target' if model.inverse else 'source'} phrases", *phrase_points(model, phrases)
    model = open_model(request.folder)
    warn_of_unit(model)
    labels, vectors = phrase_points(model, list(_sentences(request)))
    if len(labels) < 2:
        expected = "expected two sentences that the network can tell apart"
        raise InputError(f"{request.file}: {expected}, found {len(labels)}")
    return "sentences", labels, vectors


def _model_and_side(request: MapRequest) -> tuple[Model, str]:
    """Of the words: of a language model, those that it predicts."""
    from moses_rnn.models.open import open_model

    model = open_model(request.folder, of_pairs=False)
    return model, request.side or model.architecture.sides[0]


def _sample(model: Model, request: MapRequest, *, whole: bool = False, min_words: int = 1) -> list[tuple[bytes, ...]]:
    from moses_rnn.analysis.phrase_samples import sample_table

    with progress() as advanced:
        return sample_table(model, str(request.file), MAX_POINTS, whole=whole, min_words=min_words, advanced=advanced)


def _sentences(request: MapRequest) -> Iterator[bytes]:
    """Yield the first lines of a text, each of which must have words."""
    from moses_rnn.files.streams import find_input, read_text
    from moses_rnn.table.phrases import words

    name = find_input(str(request.file))
    for number, line in enumerate(islice(read_text(name), MAX_SENTENCES), start=1):
        if not words(line.rstrip(b"\r\n")):
            raise FormatError(name, number, "a sentence", "a blank line")
        yield line.rstrip(b"\r\n")


def _draw_alignments(request: MapRequest) -> None:
    """Print alpha, or write it as pictures or records."""
    names = _alignment_files(request)
    from moses_rnn.analysis.alignment_maps import as_text, map_alignments
    from moses_rnn.files.streams import find_input
    from moses_rnn.models.open import open_model
    from moses_rnn.translation.translate import format_alignment

    otherwise = "a .json, and text without --output, do not need it"
    kind = kind_of(names[0], (*PICTURES, "json"), otherwise) if names else "text"
    model, file = open_model(request.folder), str(request.file)
    warn_of_unit(model)
    sources, targets = parallel_texts(file, request.target) if request.target is not None else (text_of(file), None)
    maps = map_alignments(model, sources, find_input(file), request.lines, targets)
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
    with _outputs(request, names) as files:
        for output, data in zip(files, drawn, strict=True):
            output.append(data)


def _alignment_files(request: MapRequest) -> list[str]:
    """Return the name of each line's picture, or of a file of records; none if they are printed."""
    if not request.outputs:
        return []
    numbers, output = sorted(set(request.lines)), request.outputs[0]
    if len(request.outputs) > 1:
        raise click.UsageError(
            f"--output: expected one picture, .json or folder for alignments, found {len(request.outputs)}"
        )
    if not suffix_of(output) or Path(output).is_dir():
        return [str(Path(output, f"line-{number}.svg")) for number in numbers]
    if len(numbers) > 1 and suffix_of(output) in PICTURES:
        raise click.UsageError(
            f"--output {output}: expected a folder for {len(numbers)} pictures, found the name of a picture"
        )
    return [output]


def _report_gates(request: MapRequest) -> None:
    """Print what the gates do over a sample of phrases, and write the numbers of all units."""
    for name in request.outputs:
        kind_of(name, ("csv",), "")
    from moses_rnn.analysis.gates import as_grid, as_text, measure_gates

    with _outputs(request, request.outputs) as files:
        model = open_phrase_network(request.folder)
        report = measure_gates(model, *zip(*_sample(model, request, whole=request.side == "target"), strict=True))
        for file in files:
            file.append(f"{as_csv(as_grid(report))}\n".encode())
    print_out("\n".join(as_text(report)))
