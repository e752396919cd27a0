"""Sharing out what a language model gives to ``<unk>`` among the words that it stands for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from moses_rnn.models.vocabulary import END, UNKNOWN, Vocabulary
from moses_rnn.producers.base import Phrases
from moses_rnn.producers.language_models import BEGIN, Values, words_of

NOT_SHARING = UNKNOWN, END, BEGIN


class EvenShares:
    """All words outside the shortlist have as much (Mikolov et al. 2010, equation 7).

    Args:
        words: how many there are; none are taken for one.
    """

    def __init__(self, words: int) -> None:
        self.words = max(words, 1)
        self.description = f"with an even share of <unk>, one of {self.words:,}"

    def log_shares(self, _sentences: Phrases, unknown: Sequence[int] | Any) -> Values:
        """See `Shares`."""
        return np.full(len(unknown), -math.log(self.words))


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
