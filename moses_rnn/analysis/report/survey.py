"""What a report counts, samples and picks out while a scored table streams by once."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from moses_rnn.analysis.correlation import Floats
from moses_rnn.analysis.lookup import Lookup, Option
from moses_rnn.analysis.phrase_samples import Pair, PhraseSample
from moses_rnn.analysis.report.options import ReportOptions
from moses_rnn.analysis.scored_table import ScoredTable, length
from moses_rnn.analysis.targets import Limits
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import TableLine, log_of
from moses_rnn.networks.vocabulary import UNKNOWN
from moses_rnn.translation.proposals import Reading

LEXICAL_COLUMN = 3  # lex(target | source), as phrase-extract writes its scores
MAP_WORDS = 4  # of a phrase of Figure 5
FREQUENT = Limits(min_words=2, min_targets=5, min_count=10)  # sources of which a pair is explained


@dataclass
class Coverage:
    """Lines, and what of them is ``<unk>`` to the network; words are running words, counted line by line."""

    lines: int = 0
    sources: int = 0
    source_words: int = 0
    source_unknown: int = 0
    target_words: int = 0
    target_unknown: int = 0
    pairs_unknown: int = 0  # with one on either side
    source_words_unknown: Counter[bytes] = field(default_factory=Counter)
    target_words_unknown: Counter[bytes] = field(default_factory=Counter)


@dataclass
class Literalness:
    """Where both disagree on the best target: whose words are likelier translations, one by one.

    The measure is log lex(target | source) for each word of the target, so that short targets gain nothing.
    """

    sources: int = 0
    rnn_more: int = 0
    rnn_less: int = 0


@dataclass
class Disagreement:
    """The pair that is the first choice of one and ranks lowest with the other; 1 is the best rank."""

    by: str  # whose first choice it is: table or RNN
    rank: int = 1  # with the other
    frequency: float = 0.0  # of the source
    chosen: int = 0
    lines: Sequence[TableLine] = ()

    def offer(self, favourite: Floats, other: Floats, lines: Sequence[TableLine]) -> None:
        """Look at the scores of a source's targets, by which one is chosen and by which it is ranked."""
        chosen = int(favourite.argmax())
        if (favourite == favourite[chosen]).sum() > 1:  # no choice at all
            return
        rank, frequency = 1 + int((other > other[chosen]).sum()), lines[0].counts.source
        if rank > 1 and (rank, frequency) > (self.rank, self.frequency):
            self.rank, self.frequency, self.chosen, self.lines = rank, frequency, chosen, lines

    def lookup(self, table: ScoredTable, others: Sequence[bytes]) -> Lookup:
        """For `explain`."""
        options = [Option.of(line, table.form) for line in self.lines]
        source = b" ".join(words(self.lines[0].source))
        target, _, read = options[self.chosen]
        return Lookup(source, target, read, options, self.chosen, list(others))


class Survey:
    """Watches a table whose source phrases a network reads."""

    def __init__(self, table: ScoredTable, reading: Reading, options: ReportOptions) -> None:
        self._table, self._reading = table, reading
        self.coverage, self.literalness = Coverage(), Literalness()
        self.disagreements = Disagreement("table"), Disagreement("RNN")
        self.target_lengths = array("q")  # of all lines, in the network's words
        self._phrases = PhraseSample(options.phrases, options.seed)
        self._long = PhraseSample(options.points, options.seed)
        self._pairs = PhraseSample(options.phrases, options.seed)

    def watch(self, sources: Iterable[Sequence[TableLine]]) -> Iterator[Sequence[TableLine]]:
        """Hand sources on, and look at each."""
        for lines in sources:
            self._look(lines)
            yield lines

    def phrases(self) -> list[Pair]:
        """A sample of the distinct source phrases, for the gates of an encoder."""
        return [Pair(phrase, b"") for (phrase,) in self._phrases.items()]

    def pairs(self) -> list[Pair]:
        """A sample of the distinct pairs."""
        return [Pair(*pair) for pair in self._pairs.items()]

    def long_phrases(self) -> list[bytes]:
        """A sample of those of MAP_WORDS words or more."""
        return [phrase for (phrase,) in self._long.items()]

    def _look(self, lines: Sequence[TableLine]) -> None:
        pairs = [self._reading.pair(line) for line in lines]
        self._count(lines, pairs)
        for pair in pairs:
            self._pairs.add(*pair)
        for phrase in dict.fromkeys(source for source, _ in pairs):  # rules of one source may have other gaps
            self._phrases.add(phrase)
            if length(phrase) >= MAP_WORDS:
                self._long.add(phrase)
        if len(lines) > 1:
            self._compare(lines, np.array([self._table.log_probs(line) for line in lines]))

    def _count(self, lines: Sequence[TableLine], pairs: Sequence[tuple[bytes, bytes]]) -> None:
        total = self.coverage
        total.lines += len(pairs)
        total.sources += 1
        for line, (source, target) in zip(lines, pairs, strict=True):
            read, written = words(source), words(target)
            unread, unwritten = self._reading.unknown(source), written.count(UNKNOWN)
            total.source_words += len(read)
            total.source_unknown += len(unread)
            total.source_words_unknown.update(unread)
            total.target_words_unknown.update(self._reading.unwritten(line) if unwritten else ())
            total.target_words += len(written)
            self.target_lengths.append(len(written))
            total.target_unknown += unwritten
            total.pairs_unknown += bool(unread or unwritten)

    def _compare(self, lines: Sequence[TableLine], logs: Floats) -> None:
        by_table, by_rnn = logs.T
        best_table, best_rnn = by_table == by_table.max(), by_rnn == by_rnn.max()
        if not (best_table & best_rnn).any():
            literal = np.array([_lexical(line) for line in lines])
            self._weigh(float(literal[best_rnn].mean() - literal[best_table].mean()))
        if FREQUENT.admit(lines):
            self.disagreements[0].offer(by_table, by_rnn, lines)
            self.disagreements[1].offer(by_rnn, by_table, lines)

    def _weigh(self, difference: float) -> None:
        self.literalness.sources += 1
        self.literalness.rnn_more += difference > 0
        self.literalness.rnn_less += difference < 0


def _lexical(line: TableLine) -> float:
    return log_of(float(words(line.scores)[LEXICAL_COLUMN])) / max(length(line.target), 1)
