import numpy as np
import pytest

from moses_rnn.tuning.lists import bleu_of
from moses_rnn.tuning.mert import choose_ranges, search_weights
from tests.tuning.lists import FAIR, GOOD, OF_FAIR, listed, random_list, telling_list


@pytest.mark.parametrize("seed", range(3))
def test_mert_finds_the_feature_that_knows(seed):
    points = telling_list(seed)
    start = [0.0, 1.0, 0.3]
    tuned = search_weights(points, start, seed=seed, restarts=3)
    assert tuned.start_bleu == bleu_of(points, start)
    assert tuned.bleu == bleu_of(points, tuned.weights)
    assert tuned.bleu >= bleu_of(points, [1, 0, 0]) > tuned.start_bleu
    assert tuned.weights[0] > 5 * abs(tuned.weights[1])
    assert np.abs(tuned.weights[:2]).sum() == pytest.approx(1)


def test_a_constant_feature_is_left_alone_and_named():
    points = telling_list(1)
    assert points.constant == ("C_0",)
    for start in (0.3, 0.0, -7.0):
        tuned = search_weights(points, [0.0, 1.0, start], seed=1, restarts=2)
        assert tuned.constant == ("C_0",)
        assert tuned.weights[2] == start
        assert tuned.bleu == search_weights(points, [0.0, 1.0, 0.0], seed=1, restarts=2).bleu


def test_nothing_to_tune():
    points = listed([[(1.0, 2.0), (1.0, 2.0)]], [[FAIR, GOOD]])
    tuned = search_weights(points, [0.5, 3.0], seed=1)
    assert (tuned.weights.tolist(), tuned.bleu, tuned.constant) == ([0.5, 3.0], pytest.approx(OF_FAIR), ("A_0", "B_0"))


def test_equal_seeds_equal_weights_and_more_restarts_never_less():
    points = random_list(5, 30, 10, 4)
    results = [search_weights(points, np.ones(4), seed=3, restarts=restarts) for restarts in (0, 2, 2, 6)]
    assert results[1].weights.tolist() == results[2].weights.tolist()
    bleus = [tuned.bleu for tuned in results]
    assert bleus == sorted(bleus)
    assert search_weights(points, np.ones(4), seed=4, restarts=0).weights.tolist() != results[0].weights.tolist()


def test_the_result_is_as_good_as_any_of_many_random_weights():
    points = random_list(7, 6, 6, 3)
    best = max(bleu_of(points, weights) for weights in np.random.default_rng(1).standard_normal((5000, 3)))
    assert search_weights(points, [1, 1, 1], seed=1).bleu >= best


def test_a_search_can_be_stopped():
    answers = iter([False] * 4 + [True] * 100)
    points = telling_list(1)
    tuned = search_weights(points, [0.0, 1.0, 0.3], seed=1, should_stop=lambda: next(answers))
    assert sum(1 for _ in answers) == 99  # called five times
    assert tuned.bleu > tuned.start_bleu
    assert np.abs(tuned.weights[:2]).sum() == pytest.approx(1)


def test_restarts_begin_in_mosess_range_on_the_starts_side():
    lows, highs = choose_ranges(np.array([0.2, 0.0, -1.0]))
    assert (lows.tolist(), highs.tolist()) == ([0, 0, -1], [1, 1, 0])
