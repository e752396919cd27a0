"""Table 3 of the paper: target phrases that the network proposes, ranked by score, compared with the table's.

A network of the inverse direction reads target phrases and writes source phrases. In this module, the network always
reads sources and writes targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from moses_rnn.errors import FormatError, InputError, number_of, placing, shown
from moses_rnn.models.base import Scorer
from moses_rnn.models.ensembles import AnyModel
from moses_rnn.networks.vocabulary import UNKNOWN, Phrase
from moses_rnn.table.phrase_table import SEPARATOR, TableLine
from moses_rnn.table.phrases import PhraseForm, has_gaps, normalised, words
from moses_rnn.table.table_blocks import Pairs, Phrases
from moses_rnn.translation.search import TargetGenerator

Known = Mapping[bytes, Collection[bytes]]  # targets by source

Side = TypeVar("Side")

SHOWN = 5  # phrases in a warning


class Converter:
    """Converts a table's phrases to a network's words: its direction, factors and shortlists."""

    def __init__(self, model: AnyModel) -> None:
        self.inverse, self.form = model.inverse, model.models[0].form
        self.source_vocabulary, self.target_vocabulary = model.source_vocabulary, model.target_vocabulary

    def source(self, phrase: bytes) -> bytes:
        """Convert a table's source phrase to words that the network reads, in single blanks."""
        return self._read(*self.swap_if_inverse(phrase, b""), b"")[0]

    def pair(self, line: TableLine) -> tuple[bytes, bytes]:
        """Return source and target of a line, with ``<unk>`` for unknown target words, as the network writes."""
        source, target = self._read(line.source, line.target, line.alignment)
        known = self.target_vocabulary
        return source, b" ".join(word if word in known else UNKNOWN for word in words(target))

    def _read(self, source: bytes, target: bytes, alignment: bytes) -> tuple[bytes, bytes]:
        source, target = map(normalised, self.form.read(source, target, alignment))
        return self.swap_if_inverse(source, target)

    def swap_if_inverse(self, first: Side, second: Side) -> tuple[Side, Side]:
        """Convert the table's order of source and target to the network's, or back."""
        return (second, first) if self.inverse else (first, second)

    def unknown(self, source: bytes) -> list[bytes]:
        """Return the words of a source that the network reads as ``<unk>``."""
        known = self.source_vocabulary
        return [word for word in words(source) if word not in known]

    def target(self, ids: Phrase) -> bytes:
        """Convert the network's output ids to a target phrase."""
        return b" ".join(self.target_vocabulary.spell(ids))

    def check_form(self, table: str, form: PhraseForm) -> None:
        """Raise an error if a table's phrases differ in form from those that the network learned from."""
        if form != self.form:
            raise InputError(f"{table}: expected phrases like those the model learned from ({self.form}), found {form}")


def parse_sources(lines: Iterable[bytes], name: str, converter: Converter) -> Iterator[bytes]:
    """Yield source phrases, one per line, in the network's words; reject other lines and unnumbered gaps."""
    for number, line in enumerate(lines, start=1):
        phrase = line.rstrip(b"\r\n")
        if not words(phrase):
            raise FormatError(name, number, "a source phrase", "a blank line")
        if SEPARATOR in phrase or b"\n" in phrase:
            advice = "A table's source phrases: zcat phrase-table.gz | sed 's/ *|||.*//' | uniq"
            raise FormatError(name, number, "only a source phrase", shown(phrase), advice)
        try:
            source = converter.source(phrase)
        except IndexError as error:
            raise FormatError(name, number, "the network's source factor in every word", shown(phrase)) from error
        if converter.form.hierarchical and has_gaps(source):
            advice = "The network reads non-terminals as numbered words: [X][X]1, [X][X]2."
            raise FormatError(name, number, "numbered non-terminals", shown(phrase), advice)
        yield source


def known_targets(
    lines: Iterable[TableLine], sources: Collection[bytes], converter: Converter
) -> dict[bytes, set[bytes]]:
    """Return a table's targets of the given sources, in the network's words, without sources that it lacks."""
    wanted = frozenset(sources)
    known: dict[bytes, set[bytes]] = {}
    for line in lines:
        source, target = converter.pair(line)
        if source in wanted:
            known.setdefault(source, set()).add(target)
    return known


@dataclass(frozen=True)
class Proposal:
    """A target that the network wrote.

    `log_prob` is the scorer's natural log p(target | source), with the end symbols of both sides. `in_table` tells
    whether the table has it for this source; None without a table, or if the table lacks the source.
    """

    target: bytes
    log_prob: float
    times: int
    in_table: bool | None


@dataclass(frozen=True)
class Proposals:
    """All distinct targets that the network wrote for a source, best first.

    `without_end` counts those cut off by the length limit, which are not in `best`; `unknown` are the source's words
    that were read as ``<unk>``; `is_lacking` tells whether there is a table that lacks the source.
    """

    source: bytes
    best: list[Proposal]
    without_end: int
    unknown: list[bytes]
    is_lacking: bool


@dataclass(frozen=True)
class Proposer:
    """Generates targets of sources, given in the network's words, and scores them by the scorer's first column.

    `known` are the table's targets; None without a table.
    """

    converter: Converter
    generator: TargetGenerator
    scorer: Scorer
    known: Known | None = None

    def __call__(self, sources: Phrases) -> Iterator[Proposals]:
        """Yield the targets of each source."""
        for first in range(0, len(sources), self.generator.at_once):
            yield from self._propose(sources[first : first + self.generator.at_once])

    def _propose(self, sources: Phrases) -> Iterator[Proposals]:
        converter = self.converter
        with placing(lambda row: shown(sources[row])):
            written = self.generator([converter.source_vocabulary.ids(words(source)) for source in sources])
        times = [Counter(converter.target(h.words) for h in of_source if h.ended) for of_source in written]
        pairs = [(source, target) for source, targets in zip(sources, times, strict=True) for target in targets]
        sides = [source for source, _ in pairs], [target for _, target in pairs]
        log_probs = iter(self.scorer.log_probs(Pairs(*converter.swap_if_inverse(*sides))).tolist())
        for source, of_source, targets in zip(sources, written, times, strict=True):
            known = None if self.known is None else self.known.get(source)
            proposals = [
                Proposal(target, next(log_probs), count, None if known is None else target in known)
                for target, count in targets.items()
            ]
            best = sorted(proposals, key=lambda proposal: (-proposal.log_prob, proposal.target))
            without_end = sum(not hypothesis.ended for hypothesis in of_source)
            is_lacking = self.known is not None and known is None
            yield Proposals(source, best, without_end, converter.unknown(source), is_lacking)


@dataclass
class Totals:
    """Totals over several sources; shares are relative to the sources in the table."""

    sources: int = 0
    written: int = 0  # complete targets
    distinct: int = 0
    judged: int = 0  # of those, compared with a table
    judged_distinct: int = 0
    new: int = 0  # of those, not in the table
    new_distinct: int = 0
    without_end: int = 0
    lacking: dict[bytes, None] = field(default_factory=dict)  # sources, in order
    with_unknown: int = 0  # sources
    unknown: dict[bytes, None] = field(default_factory=dict)  # words, in order

    def add(self, proposals: Proposals) -> Totals:
        """Add a source."""
        judged = [proposal for proposal in proposals.best if proposal.in_table is not None]
        new = [proposal for proposal in judged if not proposal.in_table]
        self.sources += 1
        self.written += sum(proposal.times for proposal in proposals.best)
        self.distinct += len(proposals.best)
        self.judged += sum(proposal.times for proposal in judged)
        self.judged_distinct += len(judged)
        self.new += sum(proposal.times for proposal in new)
        self.new_distinct += len(new)
        self.without_end += proposals.without_end
        if proposals.is_lacking:
            self.lacking[proposals.source] = None
        self.with_unknown += bool(proposals.unknown)
        self.unknown |= dict.fromkeys(proposals.unknown)
        return self

    def summary(self, unit: str) -> str:
        """Return the number of targets, and the share that is not in the table."""
        parts = [f"{self.written + self.without_end:,} {unit}"]
        if self.without_end:
            parts.append(f"{self.without_end:,} without an end")
        if self.distinct < self.written:
            parts.append(f"{self.distinct:,} distinct")
        if self.judged:
            of_distinct = f" ({self.new_distinct / self.judged_distinct:.1%} of the distinct ones)"
            distinct = of_distinct if self.distinct < self.written else ""
            parts.append(f"{self.new / self.judged:.1%}{distinct} not in the table")
        return ", ".join(parts)

    def warnings(self, max_words: int) -> Iterator[str]:
        """Yield warnings about unknown words, missing sources and the like."""
        if self.lacking:
            yield f"the table lacks {len(self.lacking):,} of the sources: {_some(self.lacking)}"
        if self.with_unknown:
            these = (
                f"{self.with_unknown:,} of {number_of(self.sources, 'source')} "
                f"{'has' if self.with_unknown == 1 else 'have'} words outside the shortlist"
            )
            yield f"{these}, which are read as <unk>: {_some(self.unknown)}"
        if self.without_end:
            yield (
                f"{self.without_end:,} had no end within {number_of(max_words, 'word')} and "
                f"{'was' if self.without_end == 1 else 'were'} left out"
            )


def _some(phrases: Collection[bytes]) -> str:
    more = f" and {len(phrases) - SHOWN:,} more" if len(phrases) > SHOWN else ""
    return ", ".join([shown(phrase) for phrase in phrases][:SHOWN]) + more
