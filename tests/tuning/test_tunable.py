import math

import numpy as np
import pytest

from moses_rnn.tuning.line_search import search_line
from moses_rnn.tuning.lists import bleu_of, choose, model_scores
from moses_rnn.tuning.mert import search_weights
from moses_rnn.tuning.reranking import find_oracle
from tests.tuning.lists import BAD, GOOD, listed, random_list


def test_padding_changes_nothing():
    points = random_list(1)
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((4, 2, 3)) * 100
    padded = listed(
        np.concatenate([points.features, noise], 1),
        np.concatenate([points.statistics, np.full((4, 2, 10), 7)], 1),
        np.arange(7) < np.full((4, 1), 5),
    )
    for weights, direction in rng.standard_normal((10, 2, 3)):
        assert search_line(padded, weights, direction) == search_line(points, weights, direction)
        assert choose(padded, weights).tolist() == choose(points, weights).tolist()
    assert (
        search_weights(padded, [1, 0, 0], seed=1, restarts=2).bleu
        == search_weights(points, [1, 0, 0], seed=1, restarts=2).bleu
    )
    assert find_oracle(padded).tolist() == find_oracle(points).tolist()


def test_the_first_of_equals_is_chosen():
    features = [[(1.0, 0.0), (2.0, 0.0), (2.0, 0.0)], [(0.0, 5.0), (0.0, 1.0), (0.0, 3.0)]]
    points = listed(features, [[GOOD] * 3] * 2)
    assert choose(points, [1, 0]).tolist() == [1, 0]
    assert choose(points, [-1, -1]).tolist() == [0, 1]
    assert choose(points, [0, 0]).tolist() == [0, 0]


def test_equal_hypotheses_score_equally_wherever_they_stand():
    rng = np.random.default_rng(1)
    points = listed(np.tile(rng.standard_normal((50, 1, 15)), (1, 101, 1)), np.tile(GOOD, (50, 101, 1)))
    scores = model_scores(points, rng.standard_normal(15))
    assert (scores == scores[:, :1]).all()


def test_a_sentence_without_hypotheses_is_translated_by_nothing():
    empty = [0, 4, 0, 0, 0, 0, 0, 0, 0, 0]
    points = listed([[(1.0,), (2.0,)], [(0.0,), (0.0,)]], [[BAD, GOOD], [empty, [0] * 10]], [[1, 1], [0, 0]])
    assert points.missing == (1,)
    assert choose(points, [1]).tolist() == [1, 0]
    assert bleu_of(points, [1]) == pytest.approx(math.exp(1 - (4 + 4) / 4))
    assert search_weights(points, [-1], seed=1, restarts=1).bleu == pytest.approx(math.exp(-1))
    assert find_oracle(points).tolist() == [1, 0]
