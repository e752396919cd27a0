"""How a hypothesis of an n-best list is scored: as a whole, with its alignment or without, or by its phrase pairs."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from moses_rnn.errors import FormatError, ScoreError
from moses_rnn.formats.alignments import broken, check_links, format_links
from moses_rnn.formats.nbest import NBestLine, alignment_of, segmentation_of
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.text_phrases import AlignedPhrases
from moses_rnn.producers.base import Phrases, ScoreProducer, Scores

Pair = tuple[bytes, bytes]


class KnownWords(NamedTuple):
    """Tells of a word whether a model knows it; None for a side that the model does not read or write."""

    source: Callable[[bytes], bool] | None = None
    target: Callable[[bytes], bool] | None = None


class Feature(ABC):
    """Values of hypotheses.

    `of_sources` is whether their source sentences count, all of which must then be the list's.
    """

    of_sources = True
    known = KnownWords()

    @abstractmethod
    def scores(self, lines: Sequence[NBestLine], sources: Phrases) -> Scores:
        """Natural logarithms; lines × num_scores.

        Args:
            lines: of the list, of whole sentences.
            sources: of each line the source sentence.
        """


class WholeHypothesis(Feature):
    """Scores hypotheses as whole sentences: a language model, a word penalty, a network that has read sentences."""

    def __init__(self, producer: ScoreProducer, *, of_sources: bool = False) -> None:
        self.producer = producer
        self.of_sources = of_sources

    def scores(self, lines: Sequence[NBestLine], sources: Phrases) -> Scores:
        """Natural logarithms; lines × num_scores. Equal pairs of source and hypothesis are scored once."""
        return _distinct(
            [(source, line.hypothesis) for source, line in zip(sources, lines, strict=True)], self.producer
        )


class AlignedHypothesis(Feature):
    """Scores hypotheses as whole sentences by a network whose rare words are annotated by their alignments.

    A score depends on source, hypothesis and alignment.
    """

    def __init__(self, producer: ScoreProducer, name: str) -> None:
        self.producer = producer
        self._name = name  # of the list, for messages

    def scores(self, lines: Sequence[NBestLine], sources: Phrases) -> Scores:
        """Natural logarithms; lines × num_scores. Equal ones are scored once.

        Raises:
            FormatError: a line has no alignment, or one of other words.
        """
        if not lines:
            return np.zeros((0, self.producer.num_scores))
        given = [
            (source, line.hypothesis, self._alignment(line, source))
            for line, source in zip(lines, sources, strict=True)
        ]
        distinct = sorted(set(given))
        place = {one: i for i, one in enumerate(distinct)}
        read, written, links = ([*side] for side in zip(*distinct, strict=True))
        with _row(lambda row: given.index(distinct[row])):
            scores = self.producer.log_probs(AlignedPhrases(read, lambda: links), written)
        return scores[[place[one] for one in given]]

    def _alignment(self, line: NBestLine, source: bytes) -> bytes:
        links = alignment_of(line, self._name)
        try:
            check_links(links, len(words(source)), len(words(line.hypothesis)))
        except ValueError as error:
            raise broken(self._name, line.number, error) from error
        return format_links(links)


class PhraseSum(Feature):
    """Scores the phrase pairs that a hypothesis is made of, and adds them up, as the decoder does.

    Words that the decoder copied because no phrase has them are pairs too: their score is the same in all hypotheses.
    """

    def __init__(self, producer: ScoreProducer, name: str) -> None:
        self.producer = producer
        self._name = name  # of the list, for messages

    def scores(self, lines: Sequence[NBestLine], sources: Phrases) -> Scores:
        """Natural logarithms; lines × num_scores. Equal phrase pairs are scored once.

        Raises:
            FormatError: a line has no segmentation, or one that does not fit.
        """
        pairs = [self._pairs(line, source) for line, source in zip(lines, sources, strict=True)]
        rows = np.repeat(np.arange(len(lines)), [len(of_line) for of_line in pairs])
        with _row(lambda row: int(rows[row])):
            values = _distinct([pair for of_line in pairs for pair in of_line], self.producer)
        totals = np.zeros((len(lines), self.producer.num_scores))
        # No differences of running sums: their rounding would depend on the lines before.
        np.add.at(totals, rows, values)
        return totals

    def _pairs(self, line: NBestLine, source: bytes) -> list[Pair]:
        read, written = words(source), words(line.hypothesis)
        segments = segmentation_of(line, self._name)
        if segments is None:
            if not written:
                return []
            advice = "Make the list with -include-segmentation-in-n-best, or score whole sentences with --whole."
            raise FormatError(self._name, line.number, "a segmentation", "none", advice)
        return [
            (b" ".join(read[first : last + 1]), b" ".join(written[begin:end])) for first, last, begin, end in segments
        ]


@contextlib.contextmanager
def _row(of: Callable[[int], int]) -> Iterator[None]:
    """Translate the row of what cannot be scored."""
    try:
        yield
    except ScoreError as error:
        error.row = of(error.row)
        raise


def _distinct(pairs: Sequence[Pair], producer: ScoreProducer) -> Scores:
    """Scores of pairs, each distinct one scored once, in an order that does not depend on the list's."""
    if not pairs:
        return np.zeros((0, producer.num_scores))
    distinct = sorted(set(pairs))
    place = {pair: i for i, pair in enumerate(distinct)}
    with _row(lambda row: pairs.index(distinct[row])):
        scores = producer.log_probs([source for source, _ in distinct], [target for _, target in distinct])
    return scores[[place[pair] for pair in pairs]]
