"""Phrases in a fixed number of slots, for networks that read all words at once."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import PairError
from moses_rnn.models.batches import Lengths
from moses_rnn.models.config import Limits
from moses_rnn.models.vocabulary import Ids

Slots = Annotated[int, Limits(1, 64)]
Slotted = npt.NDArray[np.int64]


def check_length(longest: int, slots: int) -> None:
    """Refuse phrases that do not fit.

    Raises:
        PairError: the longest has more words than there are slots.
    """
    if longest > slots:
        expected = f"phrases of at most {slots} words, for which the network has slots"
        raise PairError(f"expected {expected}, found {longest}", advice="--long floor gives them the smallest score.")


def in_slots(flat: Ids, lengths: Lengths, slots: int, otherwise: int) -> Slotted:
    """Phrases with a column for each slot; phrases × slots.

    Args:
        flat: ids of all phrases end to end, without end symbols.
        lengths: words of each phrase, none of more than there are slots.
        slots: how many.
        otherwise: stands where a phrase has no word.
    """
    table = np.full((len(lengths), slots), otherwise, np.int64)
    table[np.arange(slots)[None, :] < lengths[:, None]] = flat
    return table
