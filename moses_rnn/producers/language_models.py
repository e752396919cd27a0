"""Language models of the target side: log p of every word of a sentence and of its end, natural logarithms.

``<s>`` stands before a sentence and is never predicted; ``</s>`` is. A word that is spelled as one of them is unknown.
All of the models are score producers too: the score of a sentence is the sum.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from moses_rnn.formats.phrase_forms import words
from moses_rnn.producers.base import Phrases, Scores

if TYPE_CHECKING:
    pass

Values = npt.NDArray[np.float64]
LN_10 = math.log(10)
BEGIN, END, UNKNOWN = b"<s>", b"</s>", b"<unk>"


class LanguageModel(Protocol):
    """What gives every word of a sentence a probability."""

    def word_log_probs(self, sentences: Phrases) -> Values:
        """log p of all words and end symbols, sentences end to end: (words + 1 each)."""


def sums(values: Values, sentences: Phrases) -> Scores:
    """The sum of each sentence's values; sentences × 1."""
    tokens = np.array([len(words(sentence)) + 1 for sentence in sentences], np.int64)
    totals = np.zeros(len(tokens))
    # No differences of running sums: their rounding would depend on the sentences before.
    np.add.at(totals, np.repeat(np.arange(len(tokens)), tokens), values)
    return totals[:, None]


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
