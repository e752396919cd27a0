"""Phrases in a fixed number of slots, for networks that read all words at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any

import numpy as np
import torch

from moses_rnn.errors import PairError
from moses_rnn.networks.batches import Values
from moses_rnn.networks.network import for_scoring
from moses_rnn.networks.tries import IdPhrases, take_phrases
from moses_rnn.options import Option

Slots = Annotated[int, Option(min=1, max=64)]
ADVICE = "In phrase tables and n-best lists, --long floor gives them a score of -87."


def check_length(longest: int, slots: int) -> None:
    """Raise PairError if the longest phrase has more words than there are slots."""
    if longest > slots:
        expected = f"phrases of at most {slots} words, the network's slots"
        raise PairError(f"expected {expected}, found {longest}", advice=ADVICE)


# -- scoring: longer phrases are an error or score a floor


class SlottedPairs(ABC):
    """A network of slots, prepared to score phrase pairs; see `PairNetwork` and `NetworkStepper`.

    `floor` is the score of a pair with a phrase longer than the slots; None: such a pair is an error.
    """

    _model: Any  # a copy on the device

    def __init__(
        self,
        model: Any,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        floor: float | None = None,
    ) -> None:
        self.device = torch.device(device)
        self._slots, self._floor = model.config.slots, floor
        self._product_dtype = dtype
        self._model, self._dtype = for_scoring(model, self.device, dtype)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Prepare the weights."""

    @torch.inference_mode()
    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """See `PairNetwork`."""
        longest = np.maximum(sources[1], targets[1])
        if self._floor is None:
            check_length(int(longest.max()), self._slots)
        values = np.full(len(longest), np.nan if self._floor is None else self._floor)
        short = np.flatnonzero(longest <= self._slots)
        if len(short):
            values[short] = self._score_short(take_phrases(*sources, short), take_phrases(*targets, short))
        return values

    @abstractmethod
    def _score_short(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """Score pairs of phrases that fit the slots."""
