"""Sums over the words of sentences."""

import numpy as np

from moses_rnn.models.language_models import sums


def test_sums_of_sentences_are_of_their_own_values_alone():
    """A running sum would lose the small values behind the large one."""
    values = np.array([1e17, 1.0, 0.25, 0.5, 0.125])
    assert sums(values, [b"le", b"", b"le"]).tolist() == [1e17 + 1.0, 0.25, 0.625]
    assert sums(np.zeros(0), []).shape == (0,)
