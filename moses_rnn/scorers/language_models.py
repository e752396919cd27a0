"""Language models of the target side: log p of every word of a sentence and of its end, natural logarithms.

``<s>`` stands before a sentence and is never predicted; ``</s>`` is. A word that is spelled as one of them is unknown.
All of the models are score scorers too: the score of a sentence is the sum.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import ScoreError, shown
from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Ids, Vocabulary
from moses_rnn.scorers.base import LARGEST, ROUNDING, Tally
from moses_rnn.table.phrase_table import words
from moses_rnn.table.table_blocks import Pairs, PhraseIds, Phrases

Values = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]
LN_10 = math.log(10)
BEGIN, END, UNKNOWN = b"<s>", b"</s>", b"<unk>"


class LanguageModel(Protocol):
    """What gives every word of a sentence a probability."""

    def word_log_probs(self, sentences: Phrases) -> Values:
        """log p of all words and end symbols, sentences end to end: (words + 1 each); ScoreError: a word has none."""

    def unknown(self, sentences: Phrases) -> Marks:
        """Which words the model does not know; as `word_log_probs`."""


class WordNetwork(Protocol):
    """A network of targets alone, arranged for scoring."""

    def log_probs(self, ids: Ids, lengths: Lengths) -> Values:
        """log p of all words and end symbols, natural, sentences end to end: (words + 1 each).

        `ids` are those of all sentences end to end, without end symbols; sum of `lengths`; one at least.
        """


class Shares(Protocol):
    """What a word outside the shortlist gets of the probability of ``<unk>``."""

    description: str  # of words outside, for the meaning of a score

    def log_shares(self, sentences: Phrases, unknown: Marks) -> Values:
        """The logarithms of the shares of the words that are marked, as `LanguageModel.unknown` marks them; n."""


class NetworkLanguageModel:
    """A network as a language model: words outside its shortlist count as ``<unk>``, or `shares` share that out."""

    unbounded = False

    def __init__(
        self, network: WordNetwork, vocabulary: Vocabulary, name: str, title: str, shares: Shares | None = None
    ) -> None:
        self.name = name
        self._network = network
        self._ids_of = PhraseIds(vocabulary.id_of())
        self._shares = shares
        self.meaning = meaning_of_targets(title, shares)

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        if not sentences:
            return np.zeros(0)
        ids, lengths = self._ids_of(sentences)
        values = self._score_ids(ids, lengths)
        if self._shares:
            unknown = _unknown(ids, lengths)
            values[unknown] += self._shares.log_shares(sentences, unknown)
        check_words(self.name, values, sentences)
        return values

    def log_probs(self, pairs: Pairs, _tally: Tally | None = None) -> Values:
        """Natural logarithms, one of each target."""
        return sums(self.word_log_probs(pairs.targets), pairs.targets)

    def unknown(self, sentences: Phrases) -> Marks:
        """Which words are outside the shortlist; as `word_log_probs`."""
        return _unknown(*self._ids_of(sentences)) if sentences else np.zeros(0, np.bool_)

    def _score_ids(self, ids: Ids, lengths: Lengths) -> Values:
        return self._network.log_probs(ids, lengths)


def meaning_of_targets(title: str, shares: Shares | None = None) -> str:
    """What the score of a network of targets alone is."""
    rest = shares.description if shares else "counted as <unk>"
    return f"log p(target) of the {title}, natural, </s> included; words outside the shortlist {rest}"


def _unknown(ids: Ids, lengths: Lengths) -> Marks:
    """Which words and end symbols of sentences are outside the shortlist."""
    unknown: Marks = np.insert(ids, np.cumsum(lengths), END_ID) == UNKNOWN_ID
    return unknown


def check_words(model: str, values: Values, sentences: Phrases) -> None:
    """Refuse values of words that are no log-probabilities; the ScoreError names the word and its sentence."""
    good = (values > -LARGEST) & (values < ROUNDING)
    if not good.all():
        place = int(np.argmin(good))
        every = [(row, word) for row, sentence in enumerate(sentences) for word in [*words(sentence), END]]
        row, word = every[place]
        found = f"{values[place]} for {shown(word)} in {shown(sentences[row])}"
        advice = "The model is damaged, its training diverged, or it gives that word no probability."
        raise ScoreError(f"{model}: expected a log-probability, found {found}", row, advice)


def sums(values: Values, sentences: Phrases) -> Values:
    """The sum of each sentence's values."""
    tokens = np.array([len(words(sentence)) + 1 for sentence in sentences], np.int64)
    totals = np.zeros(len(tokens))
    # No differences of running sums: their rounding would depend on the sentences before.
    np.add.at(totals, np.repeat(np.arange(len(tokens)), tokens), values)
    return totals


def words_of(sentence: bytes) -> list[bytes]:
    """Words of a sentence; those that are spelled as a boundary are unknown ones, as they are to a CSLM."""
    return [UNKNOWN if word in (BEGIN, END) else word for word in words(sentence)]


def text(word: bytes) -> str:
    """A word as kenlm takes it; one that it cannot be asked for (no UTF-8, or a NUL, where it stops) is unknown."""
    try:
        decoded = word.decode("utf-8")
    except UnicodeDecodeError:
        return UNKNOWN.decode()
    return UNKNOWN.decode() if "\0" in decoded else decoded
