"""Language models of the target side: natural log p of every word of a sentence and of its end.

``<s>`` precedes a sentence and is never predicted; ``</s>`` is. A word spelt like either is unknown. All are scorers
too: the score of a sentence is the sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import ScoreError, shown
from moses_rnn.models.base import LARGEST_SCORE, ROUNDING, Tally
from moses_rnn.networks.batches import Lengths, Values
from moses_rnn.networks.subwords import Subwords
from moses_rnn.networks.vocabulary import END, END_ID, UNKNOWN, UNKNOWN_ID, Ids, Vocabulary
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import Pairs, Phrases

Marks = npt.NDArray[np.bool_]
LN_10 = math.log(10)
BEGIN = b"<s>"
CUT = "words are cut into subwords, in one way each"  # of the meaning of a score


class LanguageModel(Protocol):
    """A model that gives every word of a sentence a probability; `meaning` says what it gives a whole one."""

    meaning: str

    def word_log_probs(self, sentences: Phrases) -> Values:
        """Return log p of all words and end symbols, concatenated (words + 1 each); ScoreError if a word has none."""

    def unknown(self, sentences: Phrases) -> Marks:
        """Return a mask of unknown words, in the layout of `word_log_probs`."""


class WordNetwork(Protocol):
    """A network that reads only targets, prepared for scoring."""

    def log_probs(self, ids: Ids, lengths: Lengths) -> Values:
        """Return natural log p of all words and end symbols, sentences concatenated (words + 1 each).

        `ids` has the words of at least one sentence, concatenated without end symbols; sum of `lengths`.
        """


class Shares(Protocol):
    """The shares of words outside the shortlist in the probability of ``<unk>``."""

    description: str  # of the shares, for a score's meaning

    def log_shares(self, sentences: Phrases, unknown: Marks) -> Values:
        """Return the log shares of the words marked in `unknown`, a mask by `LanguageModel.unknown`; n."""


class SentenceScorer(ABC):
    """A scorer of target sentences by their words."""

    unbounded = False

    @abstractmethod
    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""

    def log_probs(self, pairs: Pairs, _tally: Tally | None = None) -> Values:
        """Return one natural log score per target."""
        return sums(self.word_log_probs(pairs.targets), pairs.targets)


class NetworkLanguageModel(SentenceScorer):
    """A network as a language model: words outside its shortlist count as ``<unk>`` or divide it by `shares`.

    With subwords, log p of a word is the sum over its pieces, and no `shares` are allowed.
    """

    def __init__(
        self, network: WordNetwork, vocabulary: Vocabulary, name: str, title: str, shares: Shares | None = None
    ) -> None:
        self.name = name
        self._network = network
        self._ids_of = vocabulary.reader()
        self._subwords = vocabulary if isinstance(vocabulary, Subwords) else None
        self._shares = shares
        self.meaning = meaning_of_targets(title, shares, of_subwords=self._subwords is not None)

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        if not sentences:
            return np.zeros(0)
        ids, lengths = self._ids_of(sentences)
        values = self._score_ids(ids, lengths)
        if self._shares:
            unknown = _unknown(ids, lengths)
            values[unknown] += self._shares.log_shares(sentences, unknown)
        if self._subwords:
            values = np.add.reduceat(values, _begins(self._subwords, sentences))
        check_words(self.name, values, sentences)
        return values

    def unknown(self, sentences: Phrases) -> Marks:
        """Return a mask of words outside the shortlist, in the layout of `word_log_probs`."""
        if not sentences:
            return np.zeros(0, np.bool_)
        unknown = _unknown(*self._ids_of(sentences))
        return unknown[_begins(self._subwords, sentences)] if self._subwords else unknown

    def _score_ids(self, ids: Ids, lengths: Lengths) -> Values:
        return self._network.log_probs(ids, lengths)


def meaning_of_targets(title: str, shares: Shares | None = None, *, of_subwords: bool = False) -> str:
    """Describe the score of a network that reads only targets."""
    rest = f"words outside the shortlist {shares.description if shares else 'counted as <unk>'}"
    return f"log p(target) of the {title}, natural, </s> included; {CUT if of_subwords else rest}"


def _begins(subwords: Subwords, sentences: Phrases) -> Ids:
    """Return the places of each word's first piece and of each end symbol, among those of all sentences."""
    pieces = [count for sentence in sentences for count in [*(len(subwords.ids([w])) for w in words(sentence)), 1]]
    return np.cumsum([0, *pieces[:-1]])


def _unknown(ids: Ids, lengths: Lengths) -> Marks:
    """Return a mask of the sentences' words and end symbols that are outside the shortlist."""
    unknown: Marks = np.insert(ids, np.cumsum(lengths), END_ID) == UNKNOWN_ID
    return unknown


def check_words(model: str, values: Values, sentences: Phrases) -> None:
    """Raise ScoreError, naming the word and its sentence, if a value is not a log-probability."""
    good = (values > -LARGEST_SCORE) & (values < ROUNDING)
    if not good.all():
        place = int(np.argmin(good))
        every = [(row, word) for row, sentence in enumerate(sentences) for word in [*words(sentence), END]]
        row, word = every[place]
        found = f"{values[place]} for {shown(word)} in {shown(sentences[row])}"
        advice = "The model is damaged, its training diverged, or it gives that word no probability."
        raise ScoreError(f"{model}: expected a log-probability, found {found}", row, advice)


def sums(values: Values, sentences: Phrases) -> Values:
    """Return the sum of each sentence's values."""
    tokens = np.array([len(words(sentence)) + 1 for sentence in sentences], np.int64)
    totals = np.zeros(len(tokens))
    # Not differences of running sums: their rounding would depend on earlier sentences.
    np.add.at(totals, np.repeat(np.arange(len(tokens)), tokens), values)
    return totals


def words_of(sentence: bytes) -> list[bytes]:
    """Split a sentence into words; one spelt like a boundary becomes ``<unk>``, as in a CSLM."""
    return [UNKNOWN if word in (BEGIN, END) else word for word in words(sentence)]


def text(word: bytes) -> str:
    """Decode a word for kenlm; one that kenlm cannot take (no UTF-8, or with a NUL) becomes ``<unk>``."""
    try:
        decoded = word.decode("utf-8")
    except UnicodeDecodeError:
        return UNKNOWN.decode()
    return UNKNOWN.decode() if "\0" in decoded else decoded
