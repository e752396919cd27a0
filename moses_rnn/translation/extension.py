"""What `moses-rnn extend` is asked for, and the new lines: their sources, their fields, their places among the others.

Nothing here needs torch.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from moses_rnn.errors import FormatError
from moses_rnn.files.streams import find_input, sort_command, without_compression_suffix
from moses_rnn.moses.alignments import format_links
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.phrase_table import DEFAULT_FLOOR, DIRECT_COLUMN, SEPARATOR, Shape, TableLine, parse_line
from moses_rnn.translation.lexical_weights import LexicalWeights, LinkCounts

if TYPE_CHECKING:
    from moses_rnn.scorers.base import Scorer
    from moses_rnn.translation.proposals import Proposal, Proposer

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


@dataclass(frozen=True, kw_only=True)
class ExtensionRequest:
    """A table to extend, by which networks, and what to write."""

    phrase_table: str
    model: Path
    output: str | None
    fewer_than: int | None  # targets of sources of the table that are extended; None: such are not
    text: str | None
    longest: int  # words of a source
    top: int  # new targets of a source, at most
    min_log_prob: float
    inverse_model: Path | None
    provenance: str
    moses_ini: str | None
    allow_misfit: bool
    device: str
    threads: int | None
    force: bool
    quiet: bool

    @property
    def table(self) -> str:
        """The table's file."""
        return find_input(self.phrase_table)

    @property
    def new_table(self) -> str:
        """Where the new table goes."""
        stem = without_compression_suffix(self.table)
        return self.output or str(stem.with_name(stem.name + ".extended.gz"))

    @property
    def new_ini(self) -> str | None:
        """Where the new ini goes, if one is made."""
        return self.moses_ini and str(Path(self.new_table).parent / (Path(self.moses_ini).stem + ".extended.ini"))

    @property
    def marks(self) -> bool:
        """Whether a column says which lines are new."""
        return self.provenance == "column"


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
        from moses_rnn.table.table_blocks import Pairs  # noqa: PLC0415, numpy, which --help does not need

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
