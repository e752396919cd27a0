import math

import pytest

from moses_rnn.errors import FormatError
from moses_rnn.tuning.lists import choose
from moses_rnn.tuning.weights import format_ini
from tests.tuning.lists import LINES, NAMES, SPARSE, nbest, read


def test_lists_become_numbers():
    points = read()
    assert points.names == NAMES
    assert points.features.tolist() == [[[-4, -1.5, -0.002], [-5, 0, -1]], [[-3, -1, 0], [0, 0, 0]]]
    assert points.present.tolist() == [[True, True], [True, False]]
    assert points.totals.tolist() == [[-4.5, -5.25], [-3.5, 0]]
    assert points.missing == points.constant == ()
    of_sentences = [
        [[4, 4, 3, 2, 1, 0, 4, 3, 2, 1], [4, 4, 4, 3, 2, 1, 4, 3, 2, 1]],
        [[2, 3, 2, 1, 0, 0, 2, 1, 0, 0], [0] * 10],
    ]
    assert points.statistics.tolist() == of_sentences


def test_a_sentence_without_a_line_counts_as_an_empty_translation():
    points = read([LINES[1]])
    assert points.missing == (0,)
    assert points.statistics[0].tolist() == [[0, 4, 0, 0, 0, 0, 0, 0, 0, 0]]
    assert choose(points, [1, 1, 1]).tolist() == [0, 0]


def test_sparse_features_with_weights_are_one_feature():
    weights = {"LM0_a": 0.5, "TM0_x|y": 3.0}
    points = read(SPARSE, sparse_weights=weights)
    assert points.names == ("LM0_0", "Sparse_0")
    assert points.features[0].tolist() == [[-4, 0.5 * 2 + 3 * -1], [-5, 0.5 * 1 + 0.5 * 3]]
    assert read(SPARSE, sparse_weights={"LM0_a": 0.5}).features[0].tolist() == [[-4, 1], [-5, 2]]
    assert read(SPARSE, sparse_weights={}).names == ("LM0_0",)
    assert format_ini(points.names, [0.5, 0.25], weights) == b"[weight]\nLM0= 0.5\nLM0_a= 0.125\nTM0_x|y= 0.75\n"


@pytest.mark.parametrize(
    ("features", "weight"),
    [(b"A= 1 A_b= 1", math.nan), (b"A= 1 A_b= 1 2", 1.0)],
)
def test_a_sparse_feature_has_one_value_and_one_weight(features, weight):
    with pytest.raises(FormatError, match="n:1: expected "):
        read([nbest(features)], sparse_weights={"A_b": weight})
