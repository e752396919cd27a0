"""A whole extension: a phrase table in, the same lines and new ones among them out.

The table is read once for its columns, its words' links and the phrases that it lacks. Then two readers go through it
side by side: one chooses sources, for which the network proposes targets; the other is merged with the new lines, which
come in the table's order. So memory does not grow with the table.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moses_rnn.errors import CheckpointError, InputError, MisfitError
from moses_rnn.files.outputs import NoOutput, OutputFile, commit_all, refuse_equal
from moses_rnn.files.streams import Advanced, Meter, change_stamp, find_input, read_lines
from moses_rnn.networks.hardware import Compute
from moses_rnn.networks.vocabulary import END, UNKNOWN
from moses_rnn.scorers.open import Model, model_files
from moses_rnn.table.line_warnings import LineWarnings
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.phrase_table import Shape, TableLine, parse_table, read_first_line
from moses_rnn.table.signatures import changed_signature, recorded_columns, records_of
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from moses_rnn.translation.extension import (
    INVERSE,
    LOWEST,
    NETWORK,
    PROVENANCE,
    PROVENANCE_MEANING,
    ColumnValue,
    Counts,
    ExtensionRequest,
    LineForm,
    LineMaker,
    Survey,
    TextPhrases,
    choose_fills,
    look_over,
    merge,
    phrases_of_text,
    sources_of_few,
)
from moses_rnn.translation.extension import Wanted as WantedSource
from moses_rnn.translation.proposals import Proposer, Reading

BEAM = 12  # prefixes of a source
MOST_WORDS = 10  # of a target
LINES_BETWEEN_LOOKS = 1000
WRITTEN_AT_ONCE = 1 << 20  # bytes
ROUNDING = 0.01  # by which the search and the scorer, which has the last word, may differ in log p

MakeIni = Callable[[Shape, int], bytes]  # of a table and of how many columns are added
Stage = Callable[[str], AbstractContextManager[Advanced]]  # shows a stage's progress, of what is counted in that unit
Models = Sequence[Model]  # what writes, and perhaps one of the inverse direction
Signature = Mapping[str, Any] | None  # of the table, if it has one that is of this very file


@dataclass
class Extended:
    """What came of a table.

    `unknown_sources` have few targets and a word that the network does not know; `fills` say what stands in each column
    of the new lines; `warnings` are what the user should know.
    """

    lines_before: int
    text: TextPhrases
    fills: list[ColumnValue]
    counts: Counts
    unknown_sources: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def lines(self) -> int:
        """Of the new table."""
        return self.lines_before + self.counts.lines


def extend(request: ExtensionRequest, models: Models, before: Signature, make_ini: MakeIni, stage: Stage) -> Extended:
    """Extend a phrase table.

    Args:
        request: all choices.
        models: what writes, and perhaps one of the inverse direction.
        before: the table's signature, if it has one that is of this very file.
        make_ini: the content of the new ini, if one is wanted; it may raise.
        stage: called at the beginning of each reading.

    Raises:
        InputError: the table, the text, a model or the ini was rejected; nothing appears under an output's name.
        OutputError: an output cannot be written, exists, or is an input.
    """
    table = request.table
    _check(table, models)
    stamp = change_stamp(table)
    with _outputs(request, models) as (new_table, signature, ini):
        known = frozenset(models[0].source_vocabulary.words) - {UNKNOWN, END}
        text = TextPhrases()
        if request.text is not None:
            text = phrases_of_text(read_lines(find_input(request.text)), request.longest, known)
        odd = LineWarnings(table)
        with stage("lines looked at") as advanced:
            survey = look_over(table, odd.passing(_lines(table, advanced)), text.phrases)
        fills = _choose_fills(table, survey, models, before or {})
        new_ini = make_ini(survey.shape, int(request.marks))  # refused now rather than after hours
        maker = _line_maker(request, models, survey, fills)
        extended = Extended(survey.lines, text, fills, maker.counts, warnings=tuple(odd.messages()))
        new_lines = maker(_wanted(request, survey, known, extended))
        with stage("lines") as advanced:
            _write(new_table, merge(_lines(table, advanced), new_lines, marked=request.marks))
        if change_stamp(table) != stamp:
            raise InputError(f"{table}: was changed while it was read; nothing was written")
        signature.append(_signature(request, models, before, extended, new_table.digest()))
        ini.complete(new_ini)
        commit_all([new_table, signature, ini])
    return extended


def _check(table: str, models: Models) -> None:
    """Refuse phrases of other than plain words, words that stand for rare ones, and a table that can be read once."""
    for model in models:
        if not model.form.is_plain or model.rare is not None:
            found = f"one of {model.form}" if model.rare is None else "one that learned annotated rare words"
            raise CheckpointError(f"{model.folder}: expected a model of plain words, found {found}")
    if not Path(table).is_file():
        raise InputError(f"{table}: expected a file, which can be read twice, found a pipe")
    _, form = read_first_line(table)
    if not form.is_plain:
        raise InputError(f"{table}: expected a table of plain words, found {form}")


@contextlib.contextmanager
def _outputs(
    request: ExtensionRequest, models: Models
) -> Iterator[tuple[OutputFile, OutputFile, OutputFile | NoOutput]]:
    """The files of a run, held against other runs."""
    new, ini = request.new_table, request.new_ini
    read = (find_input(path) for path in (request.text, request.moses_ini) if path)
    inputs = (request.table, *(name for model in models for name in model_files(model.folder)), *read)
    refuse_equal(name for name in (new, f"{new}.json", ini) if name)

    def open_one(path: str) -> OutputFile:
        return OutputFile(path, force=request.force, inputs=inputs)

    with open_one(new) as table, open_one(f"{new}.json") as signature, open_one(ini) if ini else NoOutput() as new_ini:
        yield table, signature, new_ini


def _lines(table: str, advanced: Advanced | None = None) -> Iterator[TableLine]:
    """The lines of a table, of which it is said now and then how many were read."""
    meter = Meter()
    for line in parse_table(read_lines(table, meter=meter), table):
        if advanced and line.number % LINES_BETWEEN_LOOKS == 0:
            advanced(line.number, meter.share)
        yield line


def _choose_fills(table: str, survey: Survey, models: Models, signature: Mapping[str, Any]) -> list[ColumnValue]:
    """What stands in the columns; refuses a column of another network, as far as the table's signature tells."""
    added = {i: column for i, column in recorded_columns(signature).items() if i < len(survey.columns)}
    names = {i: str(column["name"]) for i, column in added.items()}
    recorded = [record.get("sha256") for record in records_of(signature, "models")]
    for column, name in names.items():
        for model in models:
            alone = list(names.values()).count(name) == 1
            is_mean = str(added[column].get("meaning")).startswith("mean of ")  # of several, see scorers/ensembles
            other = recorded and dict(model.hashes) not in recorded
            if model.name == name and (is_mean or not alone or other):
                found = "another" if alone else "one of several of that name"
                raise MisfitError(
                    f"{model.folder}: expected the model whose score is column {column + 1} of {table}, by the "
                    f"signature beside it, found {'one of several whose mean it is' if is_mean else found}",
                    advice="Name that model, or extend the table before it is scored.",
                )
    networks = zip((model.name for model in models), (NETWORK, INVERSE), strict=False)
    return choose_fills(survey.columns, names, dict(networks))


def _line_maker(request: ExtensionRequest, models: Models, survey: Survey, fills: list[ColumnValue]) -> LineMaker:
    """What makes new lines: the network, searched by torch in float32 and judged as moses-rnn-score judges."""
    best = _best(request)
    search = BeamSearch(
        models[0].make_stepper(Compute(request.device)),
        BeamConfig(max(BEAM, best), best, MOST_WORDS, allow_unknown=False),
        least_log_prob=request.min_log_prob - ROUNDING,
    )
    scorer, *inverse = (model.make_scorer(model.choose_compute(request.device)) for model in models)
    proposer = Proposer(Reading(models[0]), search, scorer)
    settled = [least if fill == LOWEST else fill for fill, (least, _) in zip(fills, survey.columns, strict=True)]
    form = LineForm(survey.fields, settled, survey.links.weights(), request.marks)
    return LineMaker(proposer, inverse[0] if inverse else None, form, request.top, request.min_log_prob)


def _best(request: ExtensionRequest) -> int:
    """Targets to search for: as many as are wanted if all that the table has are among them."""
    return request.top + (request.fewer_than or 1) - 1


def _wanted(
    request: ExtensionRequest, survey: Survey, known: frozenset[bytes], extended: Extended
) -> Iterator[WantedSource]:
    """The sources to be extended, in the order of their keys; those of the table that are not known are counted."""

    def is_readable(source: WantedSource) -> bool:
        of_source = words(source.source)
        is_known = known.issuperset(of_source)
        extended.unknown_sources += not is_known
        return is_known and len(of_source) <= request.longest

    few = sources_of_few(_lines(request.table), request.fewer_than, survey.apart) if request.fewer_than else iter(())
    lacking = sorted(map(WantedSource, survey.lacking), key=lambda source: source.key)
    return heapq.merge(filter(is_readable, few), lacking, key=lambda source: source.key)


def _write(table: OutputFile, lines: Iterator[bytes]) -> None:
    """Write the whole table, some bytes at a time."""
    waiting = bytearray()
    for line in lines:
        waiting += line
        if len(waiting) >= WRITTEN_AT_ONCE:
            table.append(bytes(waiting))
            waiting.clear()
    table.append(bytes(waiting))


def _signature(
    request: ExtensionRequest, models: Models, before: Signature, extended: Extended, digest: Mapping[str, Any]
) -> bytes:
    files = {"input": Path(request.table).name, "output": Path(request.new_table).name, "file": digest}
    how = {
        "fewer_than": request.fewer_than or 0,
        "text": request.text is not None,
        "longest": request.longest,
        "beam": max(BEAM, _best(request)),
        "top": request.top,
        "min_log_prob": request.min_log_prob,
        "max_words": MOST_WORDS,
        "models": [{"direction": model.direction, "sha256": dict(model.hashes)} for model in models],
        "fills": extended.fills,
        "lines_before": extended.lines_before,
        **asdict(extended.counts),
    }
    added = [(PROVENANCE, PROVENANCE_MEANING)] * request.marks
    shape = {"lines": extended.lines, "columns": len(extended.fills) + len(added)}
    return changed_signature(before, {**files, **shape}, "extended", how, added)
