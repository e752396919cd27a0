"""The best point on a line, exactly, and what mert finds with it."""

import itertools

import numpy as np
import pytest

from moses_rnn.nbest.lists import bleu_of
from moses_rnn.nbest.mert import search_line, trace_envelopes
from moses_rnn.nbest.tune import tune
from tests.nbest.lists import BAD, FAIR, GOOD, OF_FAIR, listed, plain_bleu, random_list, telling_list


@pytest.mark.parametrize("seed", range(3))
def test_mert_finds_the_feature_that_knows(seed):
    points = telling_list(seed)
    start = [0.0, 1.0, 0.3]
    tuned = tune(points, start, seed=seed, restarts=3)
    assert bleu_of(points, tuned) >= bleu_of(points, [1, 0, 0]) > bleu_of(points, start)
    assert tuned[0] > 5 * abs(tuned[1])
    assert np.abs(tuned[:2]).sum() == pytest.approx(1)


def test_a_constant_feature_is_left_alone():
    points = telling_list(1)
    assert points.constant == ("C_0",)
    tuned = [tune(points, [0.0, 1.0, start], seed=1, restarts=2) for start in (0.3, 0.0, -7.0)]
    assert [weights[2] for weights in tuned] == [0.3, 0.0, -7.0]
    assert tune(points, [0.0, 10.0, 3.0], seed=1, restarts=2)[2] == pytest.approx(0.3)  # as the others are scaled
    assert len({bleu_of(points, weights) for weights in tuned}) == 1
    nothing_to_tune = listed([[(1.0, 2.0), (1.0, 2.0)]], [[FAIR, GOOD]])
    assert tune(nothing_to_tune, [0.5, 3.0], seed=1).tolist() == [0.5, 3.0]


def test_equal_seeds_equal_weights_and_more_restarts_never_less():
    points = random_list(5, 30, 10, 4)
    results = [tune(points, np.ones(4), seed=3, restarts=restarts) for restarts in (0, 2, 2, 6)]
    assert results[1].tolist() == results[2].tolist()
    bleus = [bleu_of(points, weights) for weights in results]
    assert bleus == sorted(bleus)
    assert tune(points, np.ones(4), seed=4, restarts=0).tolist() != results[0].tolist()


def test_a_search_can_be_stopped():
    answers = iter([False] * 4 + [True] * 100)
    points, start = telling_list(1), [0.0, 1.0, 0.3]
    tuned = tune(points, start, seed=1, should_stop=lambda: next(answers))
    assert sum(1 for _ in answers) == 99  # called five times
    assert bleu_of(points, tuned) > bleu_of(points, start)
    assert np.abs(tuned[:2]).sum() == pytest.approx(1)


def plain_search(points, weights, direction, steps):
    """The best BLEU of any of the steps, from scratch at each."""
    known = {}
    for step in steps:
        chosen = tuple(
            max(range(len(row)), key=row.__getitem__) for row in points.features @ (weights + step * direction)
        )
        known[chosen] = known.get(chosen) or plain_bleu(points.statistics[np.arange(len(chosen)), chosen].sum(0))
    return max(known.values())


# Heights of lines at step 0 and their slopes. Crossings of neighbours: 0 = -1 + s at 1, -1 + s = -4 + 2s at 3,
# -2 - s = 0 at -2.
CROSSING = [(-2.0, -1.0), (0.0, 0.0), (-1.0, 1.0), (-4.0, 2.0)]


def along(lines, qualities):
    """Lists of one sentence whose lines are these, the weights, and a direction."""
    return listed([[(slope, height) for height, slope in lines]], [qualities]), [0.0, 1.0], [1.0, 0.0]


@pytest.mark.parametrize(
    ("qualities", "expected"),
    [
        ([BAD, BAD, GOOD, BAD], ((1 + 3) / 2, 1)),
        ([BAD, GOOD, BAD, BAD], (0, 1)),  # as good as it can be
        ([GOOD, BAD, BAD, BAD], (-2 - 0.1, 1)),  # 0.1 · |weights| / |direction| before the first corner
        ([BAD, BAD, BAD, GOOD], (3 + 0.1, 1)),
        ([BAD, BAD, GOOD, GOOD], ((1 + 3) / 2, 1)),  # the wider, as the open one counts 0.2
        ([GOOD, BAD, BAD, GOOD], (-2 - 0.1, 1)),  # equally wide: the first
        ([GOOD, GOOD, GOOD, GOOD], (0, 1)),
        ([BAD, BAD, BAD, BAD], (0, 0)),
    ],
)  # fmt: skip
def test_the_middle_of_the_best_interval(qualities, expected):
    for order in itertools.permutations(range(4)):
        points, weights, direction = along([CROSSING[i] for i in order], [qualities[i] for i in order])
        assert search_line(points, weights, direction) == pytest.approx(expected)


def test_an_interval_too_narrow_to_be_met_is_left_alone():
    # The third is the best line between 1 and 1 + 1e-9 only.
    lines = [(0.0, 0.0), (-2.0 - 1e-9, 2.0), (-1.0, 1.0)]
    corners = trace_envelopes(*(np.array([[line[i] for line in lines]]) for i in (0, 1)))
    assert corners.behind.tolist() == [2, 1]
    assert np.diff(corners.steps) == pytest.approx(1e-9, rel=1e-6)
    assert search_line(*along(lines, [BAD, BAD, GOOD])) == (0.0, 0.0)
    assert search_line(*along(lines, [BAD, FAIR, GOOD])) == pytest.approx((1.1, OF_FAIR))


PAIR = [[(1.0, 2.0), (0.0, 3.0)]]  # with weights (1, 1): heights 3 and 3


DEGENERATE = {
    "one hypothesis": ([[(1.0, 2.0)]], [[GOOD]], (1, 1), (1, 0), (0, 1)),
    "equal features": ([[(1.0, 2.0), (1.0, 2.0)]], [[FAIR, GOOD]], (1, 1), (1, 0), (0, OF_FAIR)),
    "parallel, and the higher is not the first": ([[(1.0, 3.0), (1.0, 2.0)]], [[FAIR, GOOD]], (1, 1), (1, 0), (0, OF_FAIR)),
    "zero direction": (PAIR, [[BAD, GOOD]], (1, 1), (0, 0), (0, 0)),
    "zero weights": (PAIR, [[BAD, GOOD]], (0, 0), (1, 0), (-0.1, 1)),
    "a corner right here, the first is better": (PAIR, [[GOOD, BAD]], (1, 1), (1, 0), (0, 1)),
    "a corner right here, the other is better": (PAIR, [[BAD, GOOD]], (1, 1), (1, 0), (-0.2, 1)),
    "three lines in a point": ([[(0.0, 0.0), (1.0, -1.0), (2.0, -2.0)]], [[BAD, GOOD, FAIR]], (0, 1), (1, 0), (1.1, OF_FAIR)),
    "two sentences with a corner in one place": ([[(0.0, 0.0), (1.0, -1.0)]] * 2, [[BAD, GOOD]] * 2, (0, 1), (1, 0), (1.1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("case", DEGENERATE.values(), ids=DEGENERATE)
def test_degenerate_envelopes(case):
    features, statistics, weights, direction, expected = case
    assert search_line(listed(features, statistics), weights, direction) == pytest.approx(expected)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_search_against_a_dense_grid(seed, whole):
    points = random_list(seed, whole=whole)
    weights, direction = np.random.default_rng(seed + 100).standard_normal((2, 3))
    step, bleu = search_line(points, weights, direction)
    grid = plain_search(points, weights, direction, np.linspace(-20, 20, 8001))
    assert bleu == pytest.approx(plain_search(points, weights, direction, [step]), rel=1e-12)
    assert bleu >= grid - 1e-12


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_envelopes_against_the_highest_line_between_corners(seed, whole):
    rng = np.random.default_rng(seed)
    origin, slopes = rng.integers(-3, 4, (2, 6, 9)).astype(float) if whole else rng.standard_normal((2, 6, 9))
    corners = trace_envelopes(origin, slopes)
    for sentence in range(6):
        mine = corners.sentences == sentence
        steps, behind = corners.steps[mine], corners.behind[mine]
        assert (np.diff(steps) >= 0).all()
        assert corners.before[mine].tolist() == [corners.first[sentence], *behind][:-1]
        bounds = [steps[0] - 1 if len(steps) else 0, *steps, steps[-1] + 1 if len(steps) else 0]
        for best, left, right in zip([corners.first[sentence], *behind], bounds[:-1], bounds[1:], strict=True):
            heights = origin[sentence] + (left + right) / 2 * slopes[sentence]
            assert heights[best] == pytest.approx(heights.max(), abs=1e-12)
