"""Phrases in slots."""

import numpy as np
import pytest

from moses_rnn.errors import PairError
from moses_rnn.models.slots import check_length, in_slots


def test_phrases_stand_from_the_left_and_the_rest_is_filled():
    flat, lengths = np.array([5, 6, 7, 8, 9]), np.array([2, 0, 3])
    assert in_slots(flat, lengths, 3, -1).tolist() == [[5, 6, -1], [-1, -1, -1], [7, 8, 9]]


def test_what_has_no_slot_is_refused():
    check_length(3, 3)
    with pytest.raises(
        PairError, match="expected phrases of at most 3 words, for which the network has slots, found 4"
    ):
        check_length(4, 3)
