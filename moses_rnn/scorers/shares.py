"""Sharing out what a language model gives to ``<unk>`` among the words that it stands for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from moses_rnn.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_rnn.scorers.kenlm import KenlmScorer
from moses_rnn.scorers.language_models import BEGIN, LanguageModel, Marks, Values, words_of
from moses_rnn.table.table_blocks import Phrases

NOT_SHARING = UNKNOWN, END, BEGIN


class EvenShares:
    """All words outside the shortlist have as much (Mikolov et al. 2010, equation 7).

    Args:
        count: of these words; 0 is taken for 1.
    """

    def __init__(self, count: int) -> None:
        self.count = max(count, 1)
        self.description = f"with an even share of <unk>, one of {self.count:,}"

    def log_shares(self, _sentences: Phrases, unknown: Sequence[int] | Any) -> Values:
        """See `Shares`."""
        return np.full(len(unknown), -math.log(self.count))


def types_of(lines: Iterable[bytes]) -> set[bytes]:
    """The different words of a text."""
    return {word for line in lines for word in words_of(line.rstrip(b"\r\n"))}


def even_shares(types: Iterable[bytes], vocabulary: Vocabulary, *, with_unknown: bool = False) -> EvenShares:
    """Even shares of the words that are outside a shortlist.

    Args:
        types: words, each once or more often.
        vocabulary: the shortlist.
        with_unknown: one more share is for all words that are not among `types` either, as an n-gram model has it.
    """
    return EvenShares(len(set(types) - set(vocabulary.words) - set(NOT_SHARING)) + with_unknown)


class ClosedVocabulary:
    """The words of shortlists and of an n-gram model together: over them models with a ``<unk>`` become comparable.

    Words of the shortlists that the n-gram model does not know, and one more for all words that no one knows, share
    evenly what is given to the n-gram model's ``<unk>``; or each would have all of it.

    Args:
        vocabularies: the shortlists.
        n_grams: the n-gram model.
    """

    def __init__(self, vocabularies: Sequence[Vocabulary], n_grams: KenlmScorer) -> None:
        words = sorted({word for vocabulary in vocabularies for word in vocabulary.words} - set(NOT_SHARING))
        unknown = n_grams.unknown(words)[::2]  # each a sentence, its end symbol apart
        self._n_grams = n_grams
        self.strange = {word for word, is_unknown in zip(words, unknown, strict=True) if is_unknown}

    def compare(self, model: LanguageModel, vocabulary: Vocabulary | None = None) -> LanguageModel:
        """The model as a distribution over this vocabulary.

        Args:
            model: an n-gram model, or one that backs off to it.
            vocabulary: its shortlist; None: it has none.
        """
        strange = self.strange - set(vocabulary.words if vocabulary else ())
        return _Sharing(model, self._n_grams, len(strange) + 1) if strange else model


class _Sharing:
    """A model of which so many words that neither it nor an n-gram model knows have an even share each of ``<unk>``."""

    def __init__(self, model: LanguageModel, n_grams: KenlmScorer, count: int) -> None:
        self._model, self._n_grams, self._count = model, n_grams, count

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        values = self._model.word_log_probs(sentences)
        values[self._model.unknown(sentences) & self._n_grams.unknown(sentences)] -= math.log(self._count)
        return values

    def unknown(self, sentences: Phrases) -> Marks:
        """See `LanguageModel`."""
        return self._model.unknown(sentences)
