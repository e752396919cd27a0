"""Networks that learned rare words by annotation: what they are to score is annotated first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moses_rnn.errors import InputError, PairError
from moses_rnn.formats.alignments import Links, check_links, parse_links, transposed
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.rare_words import RareWords, Shortlists
from moses_rnn.formats.text_phrases import AlignedPhrases
from moses_rnn.models.vocabulary import Vocabulary
from moses_rnn.producers.base import Phrases, ScoreProducer, Scores, Tally, check_lengths, is_unbounded

if TYPE_CHECKING:
    from moses_rnn.producers.ensembles import Writer

Texts = tuple[list[bytes], list[bytes]]  # what is read, and what is written


def shortlists_of(model: Writer, rare: RareWords) -> Shortlists:
    """The words that a network does not know by tokens."""
    read, written = model.source_vocabulary, model.target_vocabulary
    return Shortlists(_without(read, rare.read_tokens), _without(written, rare.written_tokens))


def _without(vocabulary: Vocabulary, tokens: Sequence[bytes]) -> frozenset[bytes]:
    return frozenset(vocabulary.words[2:]) - set(tokens)


class AnnotatedProducer:
    """A producer of pairs, whose rare words are annotated by the pairs' alignments.

    A score depends on the pair and its links alone.

    Args:
        producer: of what is annotated.
        model: the network's words.
        rare: how it learned them.
    """

    num_scores = 1

    def __init__(self, producer: ScoreProducer, model: Writer, rare: RareWords) -> None:
        self.name = producer.name
        self.meaning = annotated_meaning(producer.meaning, rare)
        self.unbounded = is_unbounded(producer)
        self._producer = producer
        self._inverse = model.inverse
        self._rare = rare
        self._shortlists = shortlists_of(model, rare)

    def log_probs(self, sources: Phrases, targets: Phrases, tally: Tally | None = None) -> Scores:
        """Natural logarithms; pairs × 1.

        Args:
            sources: of the pairs, with their alignments if these are needed.
            targets: as many.
            tally: is added to.

        Raises:
            InputError: there are no alignments.
            PairError: one is no alignment, or of other words.
            ValueError: there are not as many targets as sources.
        """
        check_lengths(sources, targets)
        tally = tally or Tally()
        inner = Tally()
        (read, written), unknown = self._annotated(sources, targets)
        scores = self._producer.log_probs(*((written, read) if self._inverse else (read, written)), inner)
        tally.unknown += unknown
        tally.halvings += inner.halvings
        return scores

    def _annotated(self, sources: Phrases, targets: Phrases) -> tuple[Texts, int]:
        """What is read and written of each pair, and how many have a word outside the shortlists."""
        texts: Texts = ([], [])
        unknown = 0
        for source, target, text in zip(sources, targets, self._alignments(sources), strict=True):
            read, written = words(source), words(target)
            links = _links(text, len(read), len(written))
            if self._inverse:
                read, written, links = written, read, transposed(links)
            unknown += not self._knows(read, written)
            tokens = self._rare.annotate(read, written, links, self._shortlists)
            for of_side, annotated in zip(texts, tokens, strict=True):
                of_side.append(b" ".join(annotated))
        return texts, unknown

    def _knows(self, read: list[bytes], written: list[bytes]) -> bool:
        return self._shortlists.read.issuperset(read) and self._shortlists.written.issuperset(written)

    def _alignments(self, sources: Phrases) -> Sequence[bytes]:
        if not self._rare.needs_links:
            return [b""] * len(sources)
        if not isinstance(sources, AlignedPhrases):
            raise InputError(
                f"{self.name}: expected pairs with word alignments, by which this model's rare words are annotated "
                f"({self._rare.kind}), found pairs alone"
            )
        return sources.alignments()


def _links(text: bytes, sources: int, targets: int) -> Links:
    try:
        links = parse_links(text)
        check_links(links, sources, targets)
    except ValueError as error:
        raise PairError(str(error)) from error
    return links


def annotated_meaning(meaning: str, rare: RareWords) -> str:
    """What a score is whose rare words are told apart."""
    return f"{meaning}; rare words by {rare.kind}, window {rare.window}"
