"""Extend a phrase table: write its lines with new ones among them.

A first pass over the table collects its columns, word links and missing phrases. A second one merges it with the new
lines, which are in the table's order. So memory does not grow with the table.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from moses_rnn.errors import CheckpointError, FormatError, InputError, MisfitError
from moses_rnn.files.outputs import OutputFile, output_files
from moses_rnn.files.streams import (
    Advanced,
    Meter,
    check_unchanged,
    find_input,
    fingerprint,
    read_lines,
    read_text,
    regular_file,
)
from moses_rnn.models.base import Scorer
from moses_rnn.models.model import Model
from moses_rnn.models.open import model_files
from moses_rnn.moses.alignments import format_links
from moses_rnn.moses.ini_editing import NewIni, ini_of
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.vocabulary import END, UNKNOWN
from moses_rnn.table.line_warnings import LineWarnings
from moses_rnn.table.phrase_table import CEILING, SEPARATOR, TableLine, parse_line, parse_table, read_first_line
from moses_rnn.table.phrases import words
from moses_rnn.table.signatures import Signature, own_columns, without_number
from moses_rnn.table.table_blocks import Pairs
from moses_rnn.translation.lexical_weights import LexicalWeights
from moses_rnn.translation.proposals import Converter, Proposal, Proposer
from moses_rnn.translation.requests import BEAM, ExtensionRequest
from moses_rnn.translation.search import BeamConfig, BeamSearch
from moses_rnn.translation.survey import LEAST, PARTED, Survey, find_phrases, key_of

MOST_TARGET_WORDS = 10  # of a target
LINES_BETWEEN_LOOKS = 1000
SOURCES_AT_ONCE = 2048
WRITTEN_AT_ONCE = 1 << 20  # bytes
ROUNDING = 0.01  # difference in log p allowed between the search and the scorer, which decides

ALIGNMENT, COUNTS = 4, 5  # fields, from 1

NETWORK, INVERSE = "network", "inverse-network"  # p(target | source) and p(source | target) of the networks
LEXICAL, INVERSE_LEXICAL = "lexical", "inverse-lexical"  # weights by the table's word links
LOWEST = "lowest"  # lowest positive value of the table's column
ColumnValue = str | float  # one of these names, or a value
# In phrase-extract's order: p(s | t), lex(s | t), p(t | s), lex(t | s). For a pair that was never extracted, without an
# inverse network, only the words tell p(s | t).
STANDARD = INVERSE_LEXICAL, INVERSE_LEXICAL, NETWORK, LEXICAL
WORD_PENALTY = "WordPenalty"  # counts words outside the shortlist; a proposal has none

Stage = Callable[[str], AbstractContextManager[Advanced]]  # shows a stage's progress, given its unit
Models = Sequence[Model]  # the model that writes, and perhaps one of the inverse direction


@dataclass
class Counts:
    """Counts of source phrases and of the targets that the network wrote for them."""

    lacking: int = 0  # sources that the table lacks
    likely: int = 0  # targets with at least the minimum log p
    empty: int = 0  # of those
    impossible: int = 0  # with a word that no table can hold, on either side
    surplus: int = 0  # beyond the number wanted per source
    lines: int = 0  # new lines
    made: int = 0  # of the lacking, sources with a new line


@dataclass
class Extended:
    """The result of an extension.

    `phrases` are the text's phrases that the network can read; `fills` are the columns of the new lines. Without an
    edited ini, `ini` has the lines that one needs.
    """

    lines_before: int
    phrases: int
    text_words: int  # different ones
    unknown_words: int  # of these
    fills: list[ColumnValue]
    counts: Counts
    ini: NewIni
    warnings: tuple[str, ...] = ()

    @property
    def lines(self) -> int:
        """Number of lines of the new table."""
        return self.lines_before + self.counts.lines


def extend(request: ExtensionRequest, models: Models, before: Signature, stage: Stage) -> Extended:
    """Extend a phrase table, given its signature `before`; outputs appear once all are complete."""
    table = request.table
    identity = fingerprint(table)
    first = _check(table, models)
    of_models = (name for model in models for name in model_files(model.folder))
    others = (find_input(path) for path in (request.text, request.moses_ini) if path)
    inputs = (table, f"{table}.json", *of_models, *others)
    outputs = [path for path in (request.new_table, f"{request.new_table}.json", request.new_ini) if path]
    with output_files(outputs, force=request.force, inputs=inputs) as files:
        known = frozenset(models[0].source_vocabulary.words) - {UNKNOWN, END}
        phrases, text_words = find_phrases(read_text(find_input(request.text)), request.longest, known)
        odd = LineWarnings(table)
        with stage("lines looked at") as advanced:
            survey = Survey(table, first, phrases)
            for line in odd.passing(_lines(table, advanced)):
                survey.add(line)
        fills = choose_fills(table, survey.columns, models, before)
        # fails now, not after hours
        ini = ini_of(request.new_table, table, survey.shape, 0, request.moses_ini)
        floors = [before.floor(column) for column in range(len(fills))]
        maker = _line_maker(request, models, survey, fills, floors)
        of_text = len(phrases), len(text_words), len(text_words - known)
        extended = Extended(survey.lines, *of_text, fills, maker.counts, ini, warnings=tuple(odd.messages()))
        new_lines = maker(sorted(survey.lacking, key=lambda source: source + PARTED))
        with stage("lines") as advanced:
            _write(files[0], merge(_lines(table, advanced), new_lines))
        check_unchanged(table, identity)
        signature = _signature(request, models, before, extended, files[0].digest())
        for file, content in zip(files[1:], (signature, ini.content), strict=False):
            file.append(content)
    return extended


def _check(table: str, models: Models) -> TableLine:
    """Reject all but plain words, and a table that can be read only once; return its first line."""
    for model in models:
        if not model.form.is_plain or model.rare is not None or model.of_subwords:
            found = f"one of {'subwords' if model.of_subwords else model.form}"
            found = found if model.rare is None else "one that learned annotated rare words"
            raise CheckpointError(f"{model.folder}: expected a model of plain words, found {found}")
    first, form = read_first_line(regular_file(table))
    if not form.is_plain:
        raise InputError(f"{table}: expected a table of plain words, found {form}")
    return first


def _lines(table: str, advanced: Advanced | None = None) -> Iterator[TableLine]:
    meter = Meter()
    for line in parse_table(read_lines(table, meter=meter), table):
        if advanced and line.number % LINES_BETWEEN_LOOKS == 0:
            advanced(line.number, meter.share)
        yield line


def _write(table: OutputFile, lines: Iterator[bytes]) -> None:
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
    changes = {
        "input": Path(request.table).name,
        "output": Path(request.new_table).name,
        "file": digest,
        "lines": extended.lines,
        "columns": len(extended.fills),
    }
    how = {
        "longest": request.longest,
        "beam": max(BEAM, _best(request)),
        "top": request.top,
        "min_log_prob": request.min_log_prob,
        "max_words": MOST_TARGET_WORDS,
        "models": [{"direction": model.direction, "sha256": dict(model.hashes)} for model in models],
        "fills": extended.fills,
        "lines_before": extended.lines_before,
        **asdict(extended.counts),
    }
    return before.changed(changes, "extended", how).as_file()


# --- columns of new lines -------------------------------------------------------------------------------------------


def choose_fills(
    table: str, columns: Sequence[tuple[float, float]], models: Models, signature: Signature
) -> list[ColumnValue]:
    """Choose each column's fill in new lines, given its range; reject another network's columns."""
    fills: list[ColumnValue] = [least if least == highest else LOWEST for least, highest in columns]
    added = [column for column in signature.columns.values() if column.index < len(columns)]
    if own_columns(len(columns), signature.columns) >= len(STANDARD):
        fills[: len(STANDARD)] = STANDARD
        if any(not model.unbounded for model in models[1:]):
            fills[0] = INVERSE
    known: dict[str, ColumnValue] = {WORD_PENALTY: 1.0}
    known |= zip((model.name for model in models), (NETWORK, INVERSE), strict=False)
    names = [without_number(column.name) for column in added]
    for column, name in zip(added, names, strict=True):
        is_mean = column.meaning.startswith("mean of ")  # of several, see models/ensembles
        if is_mean or name not in known:
            raise MisfitError(
                f"{table}: expected the network of score {column.index + 1}, {column.name}, to fill it in new lines, "
                f"found {'a mean of several' if is_mean else 'none'}",
                advice="Extend the table before you score it."
                if is_mean
                else "Name it with --model or --inverse-model, or extend the table before you score it.",
            )
        fills[column.index] = known[name]
        for model in models:
            alone = names.count(name) == 1
            other = signature.models and not signature.names_model(model.hashes)
            if model.name == name and (not alone or other):
                found = "another" if alone else f"several scores named {name}"
                raise MisfitError(
                    f"{model.folder}: expected the model that gave score {column.index + 1} of {table} according to "
                    f"the signature beside it, found {found}",
                    advice="Name that model, or extend the table before you score it."
                    if alone
                    else "Extend the table before you score it.",
                )
    return fills


# --- the new lines --------------------------------------------------------------------------------------------------


def _best(request: ExtensionRequest) -> int:
    """Return the number of targets to search for: enough even if the empty one is among them."""
    return request.top + 1


def _line_maker(
    request: ExtensionRequest, models: Models, survey: Survey, fills: list[ColumnValue], floors: Sequence[float]
) -> LineMaker:
    """Make the maker of new lines: torch searches in float32, and scores are those of moses-rnn-score."""
    best = _best(request)
    search = BeamSearch(
        models[0].make_stepper(Compute(request.device)),
        BeamConfig(max(BEAM, best), best, MOST_TARGET_WORDS, allow_unknown=False),
        least_log_prob=request.min_log_prob - ROUNDING,
    )
    # A network with slots gives the floor to targets that are longer
    scorer, *inverse = (
        model.make_scorer(model.choose_compute(request.device, floors_long=model.inverse)) for model in models
    )
    proposer = Proposer(Converter(models[0]), search, scorer)
    settled = [least if fill == LOWEST else fill for fill, (least, _) in zip(fills, survey.columns, strict=True)]
    return LineMaker(request, proposer, inverse[0] if inverse else None, survey.weights, settled, floors, survey.fields)


@dataclass
class LineMaker:
    """Makes lines for source phrases, from each one's `top` likeliest targets above the minimum log p.

    `proposer` generates targets; `inverse` scores p(source | target), if there is such a network; `weights` align and
    weigh words; `fills` are the columns, none of them LOWEST, and `floors` their least log p. A line has as many
    `fields` as the table's first line, at least three.
    """

    request: ExtensionRequest
    proposer: Proposer
    inverse: Scorer | None
    weights: LexicalWeights
    fills: Sequence[ColumnValue]
    floors: Sequence[float]
    fields: int
    counts: Counts = field(default_factory=Counts)

    def __call__(self, lacking: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and lines of all sources, both in the order of keys; sources must be in that order."""
        for first in range(0, len(lacking), SOURCES_AT_ONCE):
            sources = lacking[first : first + SOURCES_AT_ONCE]
            proposed = self.proposer(sources)
            pairs = [
                (source, proposal)
                for source, proposals in zip(sources, proposed, strict=True)
                for proposal in self._chosen(source, proposals.best)
            ]
            inverse = [0.0] * len(pairs)
            if self.inverse and pairs:
                written = Pairs.of((source, proposal.target) for source, proposal in pairs)
                inverse = self.inverse.log_probs(written).tolist()
            yield from sorted(
                self.line(source, proposal.target, proposal.log_prob, log_prob)
                for (source, proposal), log_prob in zip(pairs, inverse, strict=True)
            )

    def _chosen(self, source: bytes, best: Sequence[Proposal]) -> list[Proposal]:
        """Choose and count the proposals that become lines."""
        counts = self.counts
        likely = [proposal for proposal in best if proposal.log_prob >= self.request.min_log_prob]
        full = [proposal for proposal in likely if proposal.target]
        possible = [proposal for proposal in full if _is_possible(_key(source, proposal.target))]
        chosen = possible[: self.request.top]
        counts.lacking += 1
        counts.likely += len(likely)
        counts.empty += len(likely) - len(full)
        counts.impossible += len(full) - len(possible)
        counts.surplus += len(possible) - len(chosen)
        counts.lines += len(chosen)
        counts.made += bool(chosen)
        return chosen

    def line(self, source: bytes, target: bytes, network: float, inverse: float) -> tuple[bytes, bytes]:
        """Return key and line, given log p(target | source), and log p(source | target) of an inverse network.

        Counts are 0 for pairs that were never extracted.
        """
        sides = words(source), words(target)
        links = self.weights.align(*sides)
        inverse_lexical, lexical = self.weights.weigh(*sides, links)
        logs = {NETWORK: network, INVERSE: inverse}
        weights = {INVERSE_LEXICAL: max(inverse_lexical, LEAST), LEXICAL: max(lexical, LEAST)}

        ceilings = {NETWORK: 0.0, INVERSE: CEILING if self.inverse and self.inverse.unbounded else 0.0}

        def score(fill: ColumnValue, floor: float) -> float:
            if not isinstance(fill, str):
                return fill
            return weights[fill] if fill in weights else math.exp(min(max(logs[fill], floor), ceilings[fill]))

        scores = [b"%.9g" % score(fill, floor) for fill, floor in zip(self.fills, self.floors, strict=True)]
        further = [
            b" ||| " + format_links(links),
            b" ||| 0 0 0",
            *[b" " + SEPARATOR] * (self.fields - COUNTS),
        ]
        key = _key(source, target)
        line = key + b" ".join(scores) + b"".join(further[: max(self.fields - ALIGNMENT + 1, 0)]) + b"\n"
        parse_line(line, "a proposal", 1)
        return key, line


def _key(source: bytes, target: bytes) -> bytes:
    return source + PARTED + target + PARTED


def _is_possible(key: bytes) -> bool:
    """Whether a table can hold a pair, given its key; models of sentences know words such as [w] and a|b."""
    try:
        parse_line(key + b"1\n", "a proposal", 1)
    except FormatError:
        return False
    return True


def merge(old: Iterable[TableLine], new: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Merge old and new lines, both sorted by key; for equal keys, the old line comes first."""
    before = b"\n"
    keyed = ((key_of(line), line.line) for line in old)
    for _, line in heapq.merge(keyed, new, key=itemgetter(0)):
        yield line if before.endswith(b"\n") else b"\n" + line
        before = line
