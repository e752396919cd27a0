"""Long phrases among those of a network with slots."""

import numpy as np
import pytest

from moses_rnn.errors import PairError
from moses_rnn.inference.slots import SlottedPairs, distinct_rows
from tests.inference.id_pairs import flat


class WordsOfBoth(SlottedPairs):
    """Scores a pair by its words."""

    def _of_short(self, sources, targets):
        return (sources[1] + targets[1]).astype(float)


def score(network, pairs):
    return network.log_probs(*(flat([pair[side] for pair in pairs]) for side in (0, 1))).tolist()


PAIRS = [([2], [3, 3]), ([2, 2, 2], [3]), ([2], [3, 3, 3]), ([], [3])]


def test_long_phrases_are_refused_or_score_the_floor():
    assert score(WordsOfBoth("cpu", 3, None), PAIRS) == [3, 4, 4, 1]
    assert score(WordsOfBoth("cpu", 2, -87.0), PAIRS) == [3, -87, -87, 1]
    assert score(WordsOfBoth("cpu", 2, -87.0), PAIRS[1:3]) == [-87, -87]
    with pytest.raises(PairError, match="at most 2 words, for which the network has slots, found 3"):
        score(WordsOfBoth("cpu", 2, None), PAIRS)


def test_distinct_rows_are_where_each_phrase_is():
    table = np.array([[2, 3], [1, 1], [2, 3]])
    distinct, row_of = distinct_rows(table)
    assert len(distinct) == 2
    assert np.array_equal(distinct[row_of], table)
