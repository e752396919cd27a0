"""A whole extension: a phrase table in, the same lines and new ones among them out.

The table is read once for its columns, its words' links and the phrases that it lacks. Then two readers go through it
side by side: one chooses sources, for which the network proposes targets; the other is merged with the new lines, which
come in the table's order. So memory does not grow with the table.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from moses_rnn.errors import CheckpointError, FormatError, InputError, MisfitError
from moses_rnn.files.outputs import NoOutput, OutputFile, commit_all, refuse_equal
from moses_rnn.files.streams import Advanced, Meter, change_stamp, find_input, read_lines, sort_command
from moses_rnn.moses.alignments import format_links
from moses_rnn.networks.hardware import Compute
from moses_rnn.networks.vocabulary import END, UNKNOWN
from moses_rnn.scorers.base import Scorer
from moses_rnn.scorers.open import Model, model_files
from moses_rnn.table.line_warnings import LineWarnings
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.phrase_table import (
    DEFAULT_FLOOR,
    DIRECT_COLUMN,
    SEPARATOR,
    Shape,
    TableLine,
    parse_line,
    parse_table,
    read_first_line,
)
from moses_rnn.table.signatures import changed_signature, recorded_columns, records_of
from moses_rnn.table.table_blocks import Pairs
from moses_rnn.translation.lexical_weights import LexicalWeights, LinkCounts
from moses_rnn.translation.options import ExtensionRequest
from moses_rnn.translation.proposals import Proposal, Proposer, Reading
from moses_rnn.translation.search import BeamConfig, BeamSearch

BEAM = 12  # prefixes of a source
MOST_WORDS = 10  # of a target
LINES_BETWEEN_LOOKS = 1000
WRITTEN_AT_ONCE = 1 << 20  # bytes
ROUNDING = 0.01  # by which the search and the scorer, which has the last word, may differ in log p

MakeIni = Callable[[Shape, int], bytes]  # of a table and of how many columns are added
Stage = Callable[[str], AbstractContextManager[Advanced]]  # shows a stage's progress, of what is counted in that unit
Models = Sequence[Model]  # what writes, and perhaps one of the inverse direction
Signature = Mapping[str, Any] | None  # of the table, if it has one that is of this very file

PARTED = b" " + SEPARATOR + b" "
ALIGNMENT, COUNTS = 4, 5  # fields, from 1
PROPOSED, OTHERS = b"2.718281828", b"1"  # exp(1) and exp(0), as phrase-extract writes what is so and what is not
SOURCES_AT_ONCE = 2048

NETWORK, INVERSE = "network", "inverse-network"  # p(target | source) of the network, p(source | target) of the other
LEXICAL, INVERSE_LEXICAL = "lexical", "inverse-lexical"  # weights by the table's word links
LOWEST = "lowest"  # value above 0 that the table has there
ColumnValue = str | float  # one of these, or a value
# As phrase-extract writes them: p(s | t), lex(s | t), p(t | s), lex(t | s). Of a pair that was never extracted, and
# without an inverse network, nothing but the words says what p(s | t) is.
STANDARD = {0: INVERSE_LEXICAL, 1: INVERSE_LEXICAL, DIRECT_COLUMN: NETWORK, 3: LEXICAL}
WORD_PENALTY = "WordPenalty"  # of words outside the shortlist, of which a proposal has none
PROVENANCE = "Proposed"
PROVENANCE_MEANING = "1 for a pair that a network proposed, 0 for any other"
LEAST = math.exp(DEFAULT_FLOOR)  # that float32 holds with full precision


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


def _wanted(request: ExtensionRequest, survey: Survey, known: frozenset[bytes], extended: Extended) -> Iterator[Wanted]:
    """The sources to be extended, in the order of their keys; those of the table that are not known are counted."""

    def is_readable(source: Wanted) -> bool:
        of_source = words(source.source)
        is_known = known.issuperset(of_source)
        extended.unknown_sources += not is_known
        return is_known and len(of_source) <= request.longest

    few = sources_of_few(_lines(request.table), request.fewer_than, survey.apart) if request.fewer_than else iter(())
    lacking = sorted(map(Wanted, survey.lacking), key=lambda source: source.key)
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


def normalised(phrase: bytes) -> bytes:
    """The words of a phrase between single blanks."""
    return b" ".join(words(phrase))


def is_regular(line: TableLine) -> bool:
    """Whether a line begins with its source between single blanks, so that all such lines of it stand together."""
    return normalised(line.source) == line.source and line.line.startswith(line.source + PARTED)


def key_of(line: TableLine) -> bytes:
    """What a line is sorted by: its bytes before the scores."""
    return line.line[: line.spans.scores_end - len(line.scores)]


@dataclass
class Survey:
    """What the lines of a table are like, and what they say of words; `shape` and `fields` are the first line's."""

    shape: Shape
    fields: int
    lowest: list[float]  # value above 0, of each column
    highest: list[float]
    lacking: set[bytes]  # source phrases
    lines: int = 0
    links: LinkCounts = field(default_factory=LinkCounts)
    apart: dict[bytes, set[bytes]] = field(default_factory=dict)  # targets on lines that stand elsewhere, by source

    def add(self, line: TableLine) -> None:
        """Count a line in."""
        self.lines += 1
        for column, score in enumerate(map(float, words(line.scores))):
            if 0 < score < self.lowest[column]:
                self.lowest[column] = score
            self.highest[column] = max(self.highest[column], score)
        self.links.add(line)
        if not is_regular(line):
            self.apart.setdefault(normalised(line.source), set()).add(normalised(line.target))
        if self.lacking:
            self.lacking.discard(normalised(line.source))

    @property
    def columns(self) -> list[tuple[float, float]]:
        """The lowest value of each column that has a logarithm, and the highest one."""
        least = (lowest if lowest < math.inf else LEAST for lowest in self.lowest)
        return list(zip(least, self.highest, strict=True))


def look_over(table: str, lines: Iterable[TableLine], phrases: Iterable[bytes]) -> Survey:
    """Look at all lines of a table, which must be in the order of their bytes, and for phrases that it lacks."""
    survey, key_before = None, b""
    for line in lines:
        if survey is None:
            shape, fields = Shape.of(line), line.line.count(SEPARATOR) + 1
            survey = Survey(shape, fields, [math.inf] * shape.columns, [-math.inf] * shape.columns, set(phrases))
        key = key_of(line)
        if key < key_before:
            expected, found = "the order of LC_ALL=C sort", "a line that belongs before the one above it"
            raise FormatError(
                table, line.number, f"{expected}, into which new lines are put", found, sort_command(table)
            )
        key_before = key
        survey.add(line)
    if survey is None:
        raise FormatError(table, None, "at least one line", "none")
    return survey


@dataclass(frozen=True)
class Wanted:
    """A source phrase to be extended: its words between single blanks, its targets likewise, and how often it occurs.

    `count` is the table's, as field 5 has it; 0 of one that the table lacks.
    """

    source: bytes
    targets: frozenset[bytes] = frozenset()
    count: bytes = b"0"

    @property
    def key(self) -> bytes:
        """With what its lines begin."""
        return self.source + PARTED


def sources_of_few(
    lines: Iterable[TableLine], fewer_than: int, apart: Mapping[bytes, Collection[bytes]]
) -> Iterator[Wanted]:
    """The sources of a table that have fewer targets, in their order.

    `apart` has targets on lines that do not stand with the others of their source.
    """
    for source, of_source in itertools.groupby(filter(is_regular, lines), lambda line: line.source):
        first = next(of_source)
        targets = {normalised(first.target), *apart.get(source, ())}
        while len(targets) < fewer_than and (line := next(of_source, None)):
            targets.add(normalised(line.target))
        if source and len(targets) < fewer_than:
            yield Wanted(source, frozenset(targets), b"%.9g" % first.counts.source)


@dataclass
class TextPhrases:
    """The phrases of a text that a network can read.

    `phrases` are all of up to a number of words, each of which the network knows; `unknown` are the other words of the
    text, and `words` is how many different words it has.
    """

    phrases: set[bytes] = field(default_factory=set)
    unknown: set[bytes] = field(default_factory=set)
    words: int = 0


def phrases_of_text(lines: Iterable[bytes], longest: int, known: Collection[bytes]) -> TextPhrases:
    """All phrases of a text, up to `longest` words, all of them known to the network."""
    text, every = TextPhrases(), set[bytes]()
    for line in lines:
        sentence = words(line.rstrip(b"\r\n"))
        every.update(sentence)
        for is_known, run in itertools.groupby(sentence, lambda word: word in known):
            if is_known:
                text.phrases.update(_n_grams(list(run), longest))
    text.unknown = every.difference(known)
    text.words = len(every)
    return text


def _n_grams(sentence: list[bytes], longest: int) -> Iterator[bytes]:
    for first in range(len(sentence)):
        for last in range(first + 1, min(first + longest, len(sentence)) + 1):
            yield b" ".join(sentence[first:last])


def choose_fills(
    columns: Sequence[tuple[float, float]], added: Mapping[int, str], networks: Mapping[str, ColumnValue]
) -> list[ColumnValue]:
    """What stands in each column of a new line.

    `columns` have their least and highest values; `added` names those that the table did not have at first, from 0;
    `networks` says what stands in columns that have the names of the networks' scores.
    """
    fills: list[ColumnValue] = [least if least == highest else LOWEST for least, highest in columns]
    if min([*added, len(columns)]) >= len(STANDARD):
        for i, fill in STANDARD.items():
            fills[i] = INVERSE if i == 0 and INVERSE in networks.values() else fill
    known = {WORD_PENALTY: 1.0, PROVENANCE: math.e, **networks}  # exp(1): of an earlier extension
    for column, name in added.items():
        if name in known:
            fills[column] = known[name]
    return fills


def _probability(log_prob: float | None) -> float:
    return math.exp(min(max(log_prob or 0.0, DEFAULT_FLOOR), 0.0))


@dataclass(frozen=True)
class LineForm:
    """What a new line is made of.

    It has as many `fields` as the table's first line, three at least; `fills` are of its columns, none of them LOWEST;
    `weights` are of words, which align and weigh; `marked` is whether a column says that the line is new.
    """

    fields: int
    fills: Sequence[ColumnValue]
    weights: LexicalWeights
    marked: bool

    def line(self, source: Wanted, target: bytes, network: float, inverse: float | None) -> tuple[bytes, bytes]:
        """A line of the table behind its key; what was never extracted has counts of 0, and the target's is not known.

        `network` is log p(target | source), `inverse` is log p(source | target) of another network, if there is one.
        """
        sides = words(source.source), words(target)
        links = self.weights.align(*sides)
        inverse_lexical, lexical = self.weights.weigh(*sides, links)
        values = {
            NETWORK: _probability(network),
            INVERSE: _probability(inverse),
            INVERSE_LEXICAL: max(inverse_lexical, LEAST),
            LEXICAL: max(lexical, LEAST),
        }
        scores = [b"%.9g" % (values[fill] if isinstance(fill, str) else fill) for fill in self.fills]
        further = [
            b" ||| " + format_links(links),
            b" ||| 0 %b 0" % source.count,
            *[b" " + SEPARATOR] * (self.fields - COUNTS),
        ]
        key = source.key + target + PARTED
        line = key + b" ".join([*scores, *[PROPOSED] * self.marked])
        line += b"".join(further[: max(self.fields - ALIGNMENT + 1, 0)]) + b"\n"
        parse_line(line, "a proposal", 1)
        return key, line


@dataclass
class Counts:
    """What came of source phrases and of the targets that the network wrote for them."""

    few: int = 0  # sources that have few targets
    lacking: int = 0  # sources that the table lacks
    likely: int = 0  # targets of no less than the least log p
    there: int = 0  # of those, in the table
    empty: int = 0
    surplus: int = 0  # behind as many better ones as are wanted
    lines: int = 0  # new
    extended: int = 0  # of the few, sources with a new line
    made: int = 0  # of the lacking, sources with a line now


@dataclass
class LineMaker:
    """Makes lines for source phrases: of each at most `top`, whose log p is at least `least`.

    `proposer` has the network write; `inverse` scores p(source | target), if there is such a network.
    """

    proposer: Proposer
    inverse: Scorer | None
    form: LineForm
    top: int
    least: float
    counts: Counts = field(default_factory=Counts)

    def __call__(self, wanted: Iterable[Wanted]) -> Iterator[tuple[bytes, bytes]]:
        """The lines of all sources behind their keys; sources come in the order of their keys, and so do the lines."""
        rest = iter(wanted)
        while sources := list(itertools.islice(rest, SOURCES_AT_ONCE)):
            pairs = [
                (source, proposal)
                for source, proposals in zip(sources, self.proposer([source.source for source in sources]), strict=True)
                for proposal in self._chosen(source, proposals.best)
            ]
            yield from sorted(
                self.form.line(source, proposal.target, proposal.log_prob, inverse)
                for (source, proposal), inverse in zip(pairs, self._inverse_log_probs(pairs), strict=True)
            )

    def _chosen(self, source: Wanted, best: Sequence[Proposal]) -> list[Proposal]:
        """The proposals that become lines, counted."""
        counts = self.counts
        likely = [proposal for proposal in best if proposal.log_prob >= self.least]
        there = [proposal for proposal in likely if proposal.target in source.targets]
        new = [proposal for proposal in likely if proposal.target and proposal.target not in source.targets]
        chosen = new[: self.top]
        counts.likely += len(likely)
        counts.there += len(there)
        counts.empty += len(likely) - len(there) - len(new)
        counts.surplus += len(new) - len(chosen)
        counts.lines += len(chosen)
        if source.targets:
            counts.few += 1
            counts.extended += bool(chosen)
        else:
            counts.lacking += 1
            counts.made += bool(chosen)
        return chosen

    def _inverse_log_probs(self, pairs: Sequence[tuple[Wanted, Proposal]]) -> Sequence[float | None]:
        if self.inverse is None or not pairs:
            return [None] * len(pairs)
        written = Pairs.of((source.source, proposal.target) for source, proposal in pairs)
        values: list[float] = self.inverse.log_probs(written)[:, 0].tolist()
        return values


def merge(old: Iterable[TableLine], new: Iterable[tuple[bytes, bytes]], *, marked: bool) -> Iterator[bytes]:
    """All lines in the order of their keys, as old and new ones are; of equal keys the old one first.

    If the table is `marked`, the old lines get the column that says that they are not new.
    """
    before = b"\n"
    keyed = ((key_of(line), line.with_scores(OTHERS) if marked else line.line) for line in old)
    for _, line in heapq.merge(keyed, new, key=itemgetter(0)):
        yield line if before.endswith(b"\n") else b"\n" + line
        before = line
