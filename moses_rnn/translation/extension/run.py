"""A whole extension: a phrase table in, the same lines and new ones among them out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moses_rnn.errors import CheckpointError, InputError, MisfitError
from moses_rnn.files.metered import Advanced, Meter
from moses_rnn.files.outputs import NoOutput, OutputFile, commit_all, refuse_equal
from moses_rnn.files.streams import read_lines, stamp_of
from moses_rnn.formats.census import Census
from moses_rnn.formats.dictionaries import Shape
from moses_rnn.formats.phrase_table import TableLine, first_look, parse_table
from moses_rnn.formats.signatures import ColumnSettings, extended_signature, recorded_columns, records_of
from moses_rnn.models.vocabulary import END, UNKNOWN
from moses_rnn.producers.base import Compute, ScoreProducer, Wanted
from moses_rnn.producers.open import OpenModel, model_files
from moses_rnn.translation.beam_search import BeamSearch
from moses_rnn.translation.extension.columns import (
    INVERSE,
    NETWORK,
    PROVENANCE,
    PROVENANCE_MEANING,
    ColumnWriter,
    Fill,
    Names,
    choose_fills,
)
from moses_rnn.translation.extension.merging import FewTargets, Merger
from moses_rnn.translation.extension.new_lines import LineForm, LineMaker
from moses_rnn.translation.extension.request import Extended, ExtensionRequest
from moses_rnn.translation.extension.sources import TextPhrases, phrases_of_text
from moses_rnn.translation.extension.survey import Survey
from moses_rnn.translation.proposals import Proposer, Reading

LINES_BETWEEN_LOOKS = 10_000
WRITTEN_AT_ONCE = 1 << 20  # bytes
ROUNDING = 0.01  # by which the search and the producer, which has the last word, may differ in log p

MakeIni = Callable[[Shape, int], bytes]  # of a table and of how many columns are added
Stage = Callable[[str], Advanced]  # shows the progress of one of several works, of what is counted in that unit


def extend(request: ExtensionRequest, make_ini: MakeIni, stage: Stage) -> Extended:
    """Extend a phrase table, which is read twice.

    Args:
        request: all choices.
        make_ini: the content of the new ini, if one is wanted; it may raise.
        stage: called at the beginning of each reading.

    Raises:
        InputError: the table, the text, a model or the ini was rejected; nothing appears under an output's name.
        OutputError: an output cannot be written, exists, or is an input.
    """
    reading = _check_models(request)
    _check_table(request.table)
    stamp = stamp_of(request.table)
    with _outputs(request) as (table, signature, ini):
        text = _read_text(request, reading)
        census = Census(request.table, strict=request.strict)
        survey = Survey(request.table, set(text.phrases))
        survey.read(_surveyed(request, census, stage("lines looked at")))
        fills = _choose_fills(request, survey)
        new_ini = make_ini(survey.shape, int(request.provenance))  # refused now rather than after hours
        few = FewTargets(request.fewer_than, request.longest, survey.apart, _known_words(reading))
        maker = _line_maker(request, reading, survey, fills)
        merger = Merger(few, survey.lacking, maker, provenance=request.provenance)
        _write(table, merger, request, stage("lines"))
        if stamp_of(request.table) != stamp:
            raise InputError(f"{request.table}: was changed while it was read; nothing was written")
        warnings = tuple(census.warnings())
        extended = Extended(survey.lines, maker.counts, few.unknown, text, tuple(fills), warnings)
        signature.append(_signature(request, extended, table.digest()))
        ini.complete(new_ini)
        commit_all([table, signature, ini])
    return extended


def _check_models(request: ExtensionRequest) -> Reading:
    """Refuse networks of other phrases than plain words, or with words that stand for rare ones."""
    for model in filter(None, (request.model, request.inverse)):
        if not model.form.is_plain or model.rare is not None:
            found = f"one of {model.form}" if model.rare is None else "one that learned annotated rare words"
            raise CheckpointError(f"{model.folder}: expected a model of plain words, found {found}")
    return Reading(request.model.checkpoint)


def _check_table(table: str) -> None:
    """Refuse what cannot be read twice, and phrases of other than plain words."""
    if not Path(table).is_file():
        raise InputError(f"{table}: expected a file, which can be read twice, found a pipe")
    _, form = first_look(table)
    if not form.is_plain:
        raise InputError(f"{table}: expected a table of plain words, found {form}")


def _known_words(reading: Reading) -> frozenset[bytes]:
    """The words that a network reads, without the special ones."""
    return frozenset(reading.source_vocabulary.words) - {UNKNOWN, END}


@contextlib.contextmanager
def _outputs(request: ExtensionRequest) -> Iterator[tuple[OutputFile, OutputFile, OutputFile | NoOutput]]:
    """The files of a run, held against other runs."""
    models = [model.folder for model in (request.model, request.inverse) if model]
    files = (name for folder in models for name in model_files(folder))
    inputs = (request.table, *files, *request.ini_inputs, *([request.text] if request.text else []))
    refuse_equal(name for name in (request.output, f"{request.output}.json", request.ini) if name)

    def open_one(path: str) -> OutputFile:
        return OutputFile(path, force=request.force, inputs=inputs)

    with (
        open_one(request.output) as table,
        open_one(f"{request.output}.json") as signature,
        open_one(request.ini) if request.ini else NoOutput() as ini,
    ):
        yield table, signature, ini


def _read_text(request: ExtensionRequest, reading: Reading) -> TextPhrases:
    """The phrases of the text; none without a text."""
    if request.text is None:
        return TextPhrases()
    return phrases_of_text(read_lines(request.text), request.longest, _known_words(reading))


def _surveyed(request: ExtensionRequest, census: Census, advanced: Advanced) -> Iterator[TableLine]:
    """The lines of the table for its first reading, which counts what is odd about them."""
    meter = Meter()
    for line in census.passing(_lines(request, meter)):
        if line.number % LINES_BETWEEN_LOOKS == 0:
            advanced(line.number, meter.share)
        yield line


def _lines(request: ExtensionRequest, meter: Meter) -> Iterator[TableLine]:
    lines = read_lines(request.table, max_line_bytes=request.max_line_bytes, meter=meter)
    return parse_table(lines, request.table)


def _choose_fills(request: ExtensionRequest, survey: Survey) -> list[Fill]:
    """What stands in the columns; those that the table has of a network are of this very one."""
    names = Names(request.model.name, request.inverse.name if request.inverse else None, request.signature)
    fills = choose_fills(request.table, survey.columns, names, request.fills)
    for model, fill in ((request.model, NETWORK), (request.inverse, INVERSE)):
        columns = names.columns(model.name, len(fills)) if model else []
        for column in columns:
            if model and fills[column] == fill and column + 1 not in request.fills:
                _check_scored_by(request, model, column, fill, alone=len(columns) == 1)
    return fills


def _check_scored_by(request: ExtensionRequest, model: OpenModel, column: int, fill: str, *, alone: bool) -> None:
    """Refuse a network that is not the one which a column of the table is of, as far as its signature says."""
    signature = request.signature or {}
    recorded = [record.get("sha256") for record in records_of(signature, "models")]
    meaning = str(recorded_columns(signature)[column].get("meaning"))
    is_mean = meaning.startswith("mean of ")  # of several models, see producers/ensembles
    found = "one of several whose mean it is" if is_mean else "another" if alone else "one of several of that name"
    if is_mean or not alone or (recorded and dict(model.checkpoint.hashes) not in recorded):
        raise MisfitError(
            f"{model.folder}: expected the model whose score is column {column + 1} of {request.table}, by the "
            f"signature beside it, found {found}",
            advice=f"Name that one; --column {column + 1}={fill} fills the column by this model all the same.",
        )


def _line_maker(request: ExtensionRequest, reading: Reading, survey: Survey, fills: Sequence[Fill]) -> LineMaker:
    """What makes new lines: the network, searched by torch in float32 and judged as moses-rnn-score judges."""
    least = request.limits.least_log_prob - ROUNDING
    search = BeamSearch(request.model.make_stepper(Compute(request.device)), request.beam_config, least_log_prob=least)
    form = LineForm(
        survey.fields,
        ColumnWriter(fills, survey.columns, survey.lines),
        survey.links.weights(),
        request.provenance,
    )
    proposer = Proposer(reading, search, _producer(request.model, request.device))
    inverse = _producer(request.inverse, request.device) if request.inverse else None
    return LineMaker(proposer, inverse, form, request.limits)


def _producer(model: OpenModel, device: str) -> ScoreProducer:
    return model.make_producer(model.choose_compute(Wanted(device), long=False))


def _write(table: OutputFile, merger: Merger, request: ExtensionRequest, advanced: Advanced) -> None:
    """Write the whole table, some bytes at a time."""
    meter, waiting = Meter(), bytearray()
    for read, text in merger(_lines(request, meter)):
        waiting += text
        advanced(read, meter.share and meter.share * read / meter.lines_read)
        if len(waiting) >= WRITTEN_AT_ONCE:
            table.append(bytes(waiting))
            waiting.clear()
    table.append(bytes(waiting))


def _signature(request: ExtensionRequest, extended: Extended, digest: Mapping[str, Any]) -> bytes:
    files = {"input": Path(request.table).name, "output": Path(request.output).name, "file": digest}
    models = [model for model in (request.model, request.inverse) if model]
    how = {
        **request.as_record(),
        "models": [{"direction": m.checkpoint.direction, "sha256": dict(m.checkpoint.hashes)} for m in models],
        "fills": list(extended.fills),
        "lines_before": extended.lines_before,
        **asdict(extended.counts),
    }
    added = [ColumnSettings(PROVENANCE, PROVENANCE_MEANING)] * request.provenance
    shape = extended.lines, len(extended.fills) + len(added)
    return extended_signature(request.signature, files, shape, added, how)
