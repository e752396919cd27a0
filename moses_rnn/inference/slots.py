"""Networks of a fixed number of slots, arranged for scoring: longer phrases are refused, or score a floor."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
import torch

from moses_rnn.inference.trie_scoring import IdPhrases, Values
from moses_rnn.inference.tries import take_phrases
from moses_rnn.models.slots import Slotted, check_length


class SlottedPairs(ABC):
    """See `PairNetwork`.

    Args:
        device: where to compute.
        slots: words of a phrase at most.
        floor: what a pair scores that has a longer phrase; None: it is refused.
    """

    def __init__(self, device: torch.device | str, slots: int, floor: float | None) -> None:
        self.device = torch.device(device)
        self._slots, self._floor = slots, floor

    @torch.inference_mode()
    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """See `PairNetwork`.

        Raises:
            PairError: a phrase is longer than there are slots, and nothing stands for its score.
        """
        longest = np.maximum(sources[1], targets[1])
        if self._floor is None:
            check_length(int(longest.max()), self._slots)
        values = np.full(len(longest), np.nan if self._floor is None else self._floor)
        short = np.flatnonzero(longest <= self._slots)
        if len(short):
            values[short] = self._of_short(take_phrases(*sources, short), take_phrases(*targets, short))
        return values

    @abstractmethod
    def _of_short(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """Scores of pairs whose phrases have their slots."""


def distinct_rows(table: Slotted) -> tuple[Slotted, npt.NDArray[np.int64]]:
    """The distinct phrases among those in slots, and the row of each phrase among them."""
    distinct, row_of = np.unique(table, axis=0, return_inverse=True)
    return distinct, row_of.ravel()
