"""What sampling and search share: targets are written word by word, for many sources together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from moses_rnn.errors import ScoreError
from moses_rnn.networks.steps import Columns, Prefixes, SomeTerms, Stepper, Terms
from moses_rnn.networks.vocabulary import END_ID, Phrase

MAX_WORDS = 50  # a phrase of a table has seven; what a network writes without end is no phrase
PREFIXES_AT_ONCE = 8192  # whose states are in memory


@dataclass(frozen=True)
class Hypothesis:
    """A target phrase that a network wrote, or as much of it as the length limit allows.

    `log_prob` is the model's own log p(words, ``</s>`` | source), natural. Of a phrase that has not `ended` it is that
    of the words alone, which no phrase that begins with them exceeds.
    """

    words: tuple[int, ...]  # ids without </s>
    log_prob: float
    ended: bool


@torch.inference_mode()
def read_sources(stepper: Stepper[SomeTerms, Any], sources: Sequence[Phrase]) -> SomeTerms:
    """The terms of each source; equal ones are read once."""
    ids = np.array([i for source in sources for i in source], dtype=np.int64)
    terms, term_of = stepper.read(ids, np.array([len(source) for source in sources], dtype=np.int64))
    return terms.take(torch.from_numpy(term_of).to(stepper.device))


class Writer(ABC):
    """Writes targets of sources with a network, whose type of products decides the precision.

    `prefixes_of_each` is how many prefixes of a source are live at once.
    """

    def __init__(self, stepper: Stepper[Any, Any], prefixes_of_each: int) -> None:
        self._stepper = stepper
        self._words = stepper.vocabulary_size
        self._prefixes_of_each = prefixes_of_each

    def __call__(self, sources: Sequence[Phrase]) -> list[list[Hypothesis]]:
        """The targets of each source, which are ids without end symbols.

        Raises:
            ScoreError: the network gives no log p of the words that may follow.
        """
        written: list[list[Hypothesis]] = []
        count = max(PREFIXES_AT_ONCE // self._prefixes_of_each, 1)
        for first in range(0, len(sources), count):
            try:
                written += self.together(sources[first : first + count])
            except ScoreError as error:
                error.row += first
                raise
        return written

    @abstractmethod
    def together(self, sources: Sequence[Phrase]) -> list[list[Hypothesis]]:
        """The targets of sources that are few enough to be written together."""

    def _next_log_probs(self, terms: Terms, prefixes: Prefixes, columns: Columns | None = None) -> Tensor:
        """See `Stepper`; some may be minus infinity, which no target has."""
        log_probs = self._stepper.next_log_probs(terms, prefixes, columns)
        wrong = log_probs[:, END_ID].isnan()  # as are all words of a prefix if one is: they were normalised together
        if wrong.any():
            row = int(prefixes.sources[wrong][0])
            raise ScoreError("expected a log-probability of every word that may follow, found nan", row)
        return log_probs
