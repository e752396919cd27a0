"""New lines of a phrase table: what a network proposes, with every field filled, at its place among the old ones."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from moses_rnn.formats.alignments import Links, format_links
from moses_rnn.formats.lexical_weights import LexicalWeights
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import SEPARATOR, TableLine, parse_line
from moses_rnn.producers.base import ScoreProducer
from moses_rnn.translation.extension.columns import Fill, write_scores
from moses_rnn.translation.extension.sources import PARTED, Wanted
from moses_rnn.translation.extension.survey import key_of
from moses_rnn.translation.proposals import Proposal, Proposer

ALIGNMENT, COUNTS = 4, 5  # fields, from 1
PROPOSED, OTHERS = b"2.718281828", b"1"  # exp(1) and exp(0), as phrase-extract writes what is so and what is not
SOURCES_AT_ONCE = 2048


class NewLine(NamedTuple):
    """A line that is new, and what it is sorted by: its bytes before the scores."""

    key: bytes
    line: bytes


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


@dataclass(frozen=True)
class LineForm:
    """What a new line is made of.

    Args:
        fields: as many as the table's first line has; three at least.
        fills: of its columns.
        weights: of words, which align and weigh.
        marked: whether a column says that the line is new.
    """

    fields: int
    fills: Sequence[Fill]
    weights: LexicalWeights
    marked: bool

    def line(self, source: Wanted, target: bytes, network: float, inverse: float | None) -> NewLine:
        """A line of the table.

        Args:
            source: phrase.
            target: phrase, its words between single blanks.
            network: log p(target | source).
            inverse: log p(source | target) of another network, if there is one.

        Raises:
            FormatError: the network's words are not those of a table.
        """
        sides = words(source.source), words(target)
        links = self.weights.align(*sides)
        scores = write_scores(self.fills, network, inverse, self.weights.weigh(*sides, links))
        key = b"%b%b%b" % (source.key, target, PARTED)
        if self.marked:
            scores += b" " + PROPOSED
        line = key + scores + self._further(source, links) + b"\n"
        parse_line(line, "a proposal", 1)
        return NewLine(key, line)

    def _further(self, source: Wanted, links: Links) -> bytes:
        """The fields behind the scores; what was never extracted has counts of 0, and the target's is not known."""
        further = [
            b" ||| " + format_links(links),
            b" ||| 0 %b 0" % source.count,
            *[b" " + SEPARATOR] * (self.fields - COUNTS),
        ]
        return b"".join(further[: max(self.fields - ALIGNMENT + 1, 0)])


@dataclass
class LineMaker:
    """Makes lines for source phrases.

    Args:
        proposer: has the network write.
        inverse: producer of log p(source | target), if there is one.
        form: of the lines.
        top: lines of a source, at most.
        least: log p of a target that becomes a line.
    """

    proposer: Proposer
    inverse: ScoreProducer | None
    form: LineForm
    top: int
    least: float
    counts: Counts = field(default_factory=Counts)

    def __call__(self, wanted: Iterable[Wanted]) -> Iterator[NewLine]:
        """The lines of all sources, which come in the order of their keys; so do the lines."""
        rest = iter(wanted)
        while sources := list(islice(rest, SOURCES_AT_ONCE)):
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
        sources, targets = zip(*((source.source, proposal.target) for source, proposal in pairs), strict=True)
        values: list[float] = self.inverse.log_probs(sources, targets)[:, 0].tolist()
        return values


def merge(old: Iterable[TableLine], new: Iterable[NewLine], *, marked: bool) -> Iterator[bytes]:
    """All lines in the order of their keys, of equal keys the old one first.

    Args:
        old: lines of a table, in the order of their keys.
        new: lines, too.
        marked: whether the old ones get the column that says that they are not new.
    """
    before = b"\n"
    keyed = ((key_of(line), line.with_scores(OTHERS) if marked else line.line) for line in old)
    for _, line in heapq.merge(keyed, new, key=itemgetter(0)):
        yield line if before.endswith(b"\n") else b"\n" + line
        before = line
