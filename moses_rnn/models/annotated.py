"""Score with networks trained on annotated rare words: annotate the pairs first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moses_rnn.errors import FormatError, InputError, PairError
from moses_rnn.models.base import Scorer, Tally
from moses_rnn.models.phrases import PairModel, PhraseScorer
from moses_rnn.models.rare_words import RareWords, Shortlists
from moses_rnn.moses.alignments import Links, check_links, parse_links, transposed
from moses_rnn.networks.batches import Values
from moses_rnn.networks.tries import PairNetwork
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import Pairs, Phrases


def shortlists_of(model: PairModel, rare: RareWords) -> Shortlists:
    """Return the words of a network's vocabularies without its rare-word tokens."""
    sides = (model.source_vocabulary, rare.read_tokens), (model.target_vocabulary, rare.written_tokens)
    return Shortlists(*(frozenset(vocabulary.words[2:]) - {*tokens} for vocabulary, tokens in sides))


def source_reader(model: PairModel) -> Callable[[Sequence[bytes]], list[int]]:
    """Return a function from the words of a source to the ids that a network reads, rare words as it learned them."""
    ids_of, rare = model.source_vocabulary.ids, model.rare
    if rare is None:
        return ids_of
    known = shortlists_of(model, rare).read
    return lambda source: ids_of(rare.annotate_source(source, known))


def make_pair_scorer(model: PairModel, network: PairNetwork) -> Scorer:
    """Make the scorer of a model of pairs, given its network prepared for scoring."""
    scorer = PhraseScorer(model, network)
    return AnnotatedScorer(scorer, model, model.rare) if model.rare else scorer


class AnnotatedScorer:
    """Annotates rare words by the pairs' alignments, and scores the annotated pairs with `scorer`."""

    def __init__(self, scorer: Scorer, model: PairModel, rare: RareWords) -> None:
        self.name, self.meaning, self.unbounded = scorer.name, scorer.meaning, scorer.unbounded
        self._scorer, self._inverse = scorer, model.inverse
        self._rare, self._shortlists = rare, shortlists_of(model, rare)

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Return one natural log score per pair; raise PairError if an alignment is invalid or out of range."""
        tally = tally or Tally()
        inner = Tally()
        annotated, unknown = self._annotated(pairs)
        scores = self._scorer.log_probs(annotated, inner)
        tally.unknown += unknown
        tally.oom_splits += inner.oom_splits
        return scores

    def _annotated(self, pairs: Pairs) -> tuple[Pairs, int]:
        """Annotate the pairs' rare words; return them and the number of pairs with a word outside the shortlists."""
        annotated = []
        unknown = 0
        for source, target, text in zip(pairs.sources, pairs.targets, self._alignments(pairs), strict=True):
            read, written = words(source), words(target)
            links = _links(text, len(read), len(written))
            if self._inverse:
                read, written, links = written, read, transposed(links)
            unknown += not (self._shortlists.read.issuperset(read) and self._shortlists.written.issuperset(written))
            tokens = self._rare.annotate(read, written, links, self._shortlists)
            annotated.append((b" ".join(tokens[0]), b" ".join(tokens[1])))
        read_and_written = Pairs.of(annotated)
        return Pairs(*read_and_written.sides(inverse=self._inverse)), unknown

    def _alignments(self, pairs: Pairs) -> Phrases:
        if not self._rare.needs_links:
            return [b""] * len(pairs)
        if pairs.alignments is None:
            raise InputError(
                f"{self.name}: expected pairs with word alignments, which this model needs to annotate rare words "
                f"({self._rare.kind}), found pairs without"
            )
        return pairs.alignments


def _links(text: bytes, sources: int, targets: int) -> Links:
    try:
        links = parse_links(text)
        check_links(links, sources, targets)
    except FormatError as error:
        raise PairError(f"expected {error.expected}, found {error.finding}") from error
    return links
