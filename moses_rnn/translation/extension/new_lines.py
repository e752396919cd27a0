"""New lines of a phrase table: what a network proposes for source phrases, with every field filled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moses_rnn.formats.alignments import Links, format_links
from moses_rnn.formats.lexical_weights import LexicalWeights
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import SEPARATOR, parse_line
from moses_rnn.producers.base import ScoreProducer
from moses_rnn.translation.extension.columns import ColumnWriter, Estimates
from moses_rnn.translation.extension.sources import PARTED, Wanted
from moses_rnn.translation.proposals import Proposal, Proposer

ALIGNMENT, COUNTS = 4, 5  # fields, from 1
PROPOSED, OTHERS = b"2.718281828", b"1"  # exp(1) and exp(0), as phrase-extract writes what is so and what is not


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
class Limits:
    """Which of the proposals become lines: at most `top` of each source, of no less than `least_log_prob`."""

    top: int
    least_log_prob: float


@dataclass(frozen=True)
class LineForm:
    """What a line is made of.

    Args:
        fields: as many as the table's first line has; three at least.
        columns: writes the scores.
        weights: of words, which align and weigh.
        provenance: whether a column says that the line is new.
    """

    fields: int
    columns: ColumnWriter
    weights: LexicalWeights
    provenance: bool

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
        scores = self.columns(Estimates(network, inverse, self.weights.weigh(*sides, links)))
        key = b"%b%b%b" % (source.key, target, PARTED)
        if self.provenance:
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


class LineMaker:
    """Makes lines for source phrases.

    Args:
        proposer: has the network write.
        inverse: producer of log p(source | target), if there is one.
        form: of the lines.
        limits: to the proposals.
    """

    def __init__(self, proposer: Proposer, inverse: ScoreProducer | None, form: LineForm, limits: Limits) -> None:
        self._proposer, self._inverse, self._form, self._limits = proposer, inverse, form, limits
        self.counts = Counts()

    def __call__(self, sources: Sequence[Wanted]) -> list[NewLine]:
        """The lines of all sources, in the order of their bytes."""
        pairs = [
            (source, proposal)
            for source, proposals in zip(sources, self._proposer([source.source for source in sources]), strict=True)
            for proposal in self._chosen(source, proposals.best)
        ]
        inverse = self._inverse_log_probs(pairs)
        return sorted(
            self._form.line(source, proposal.target, proposal.log_prob, log_prob)
            for (source, proposal), log_prob in zip(pairs, inverse, strict=True)
        )

    def _chosen(self, source: Wanted, best: Sequence[Proposal]) -> list[Proposal]:
        """The proposals that become lines, counted."""
        new = list(self._new(source, best))
        chosen = new[: self._limits.top]
        counts = self.counts
        counts.surplus += len(new) - len(chosen)
        counts.lines += len(chosen)
        if source.targets:
            counts.few += 1
            counts.extended += bool(chosen)
        else:
            counts.lacking += 1
            counts.made += bool(chosen)
        return chosen

    def _new(self, source: Wanted, best: Sequence[Proposal]) -> Iterator[Proposal]:
        for proposal in best:
            if proposal.log_prob < self._limits.least_log_prob:
                continue
            self.counts.likely += 1
            if proposal.target in source.targets:
                self.counts.there += 1
            elif not proposal.target:
                self.counts.empty += 1
            else:
                yield proposal

    def _inverse_log_probs(self, pairs: Sequence[tuple[Wanted, Proposal]]) -> Sequence[float | None]:
        if self._inverse is None or not pairs:
            return [None] * len(pairs)
        sources, targets = zip(*((source.source, proposal.target) for source, proposal in pairs), strict=True)
        values: list[float] = self._inverse.log_probs(sources, targets)[:, 0].tolist()
        return values
