import itertools
import math

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from moses_rnn.tuning.bleu import References, corpus_bleu, smoothed_bleu
from moses_rnn.tuning.line_search import Step, search_line, trace_envelopes
from moses_rnn.tuning.mert import choose_ranges, search_weights
from moses_rnn.tuning.reranking import find_oracle
from moses_rnn.tuning.tunable import TunableList, bleu_of, choose, model_scores, statistics_of

# lengths of hypothesis and reference; matches; n-grams that there are
GOOD = [4, 4, 4, 3, 2, 1, 4, 3, 2, 1]
FAIR = [5, 5, 4, 3, 2, 1, 5, 4, 3, 2]
BAD = [4, 4, 0, 0, 0, 0, 4, 3, 2, 1]
OF_FAIR = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)


def listed(features, statistics, present=None):
    """Lists of sentences × hypotheses; the features are named A_0, B_0, …"""
    features = np.array(features, np.float64)
    names = tuple(f"{chr(65 + k)}_0" for k in range(features.shape[2]))
    present = np.ones(features.shape[:2], bool) if present is None else np.array(present, bool)
    return TunableList(names, features, np.array(statistics, np.int64), present)


def random_list(seed, sentences=4, hypotheses=5, weights=3, whole=False):
    """Any features, statistics as sentences have them; `whole` numbers make many ties."""
    rng = np.random.default_rng(seed)
    shape = (sentences, hypotheses)
    features = rng.integers(-2, 3, (*shape, weights)) if whole else rng.standard_normal((*shape, weights))
    length = rng.integers(5, 12, shape)
    totals = length[..., None] - np.arange(4)
    matches = np.minimum.accumulate(rng.integers(1, totals + 1), axis=-1)
    reference = np.broadcast_to(rng.integers(5, 12, (sentences, 1)), shape)
    return listed(features, np.concatenate([length[..., None], reference[..., None], matches, totals], -1))


def plain_bleu(sums):
    """BLEU from its definition, one corpus at a time."""
    length, reference, *counts = map(int, sums)
    if 0 in counts[:4]:
        return 0.0
    precision = math.prod(counts[n] / counts[n + 4] for n in range(4)) ** 0.25
    return precision * math.exp(min(0, 1 - reference / length))


def plain_search(points, weights, direction, steps):
    """The best BLEU of any of the steps, from scratch at each."""
    known = {}
    for step in steps:
        chosen = tuple(
            max(range(len(row)), key=row.__getitem__) for row in points.features @ (weights + step * direction)
        )
        known[chosen] = known.get(chosen) or plain_bleu(points.statistics[np.arange(len(chosen)), chosen].sum(0))
    return max(known.values())


@pytest.mark.parametrize(
    ("sums", "expected"),
    [
        (GOOD, 1),
        (FAIR, OF_FAIR),
        (np.add(GOOD, FAIR), (8 / 9 * 6 / 7 * 4 / 5 * 2 / 3) ** (1 / 4)),
        ([4, 5, 4, 3, 2, 1, 4, 3, 2, 1], math.exp(1 - 5 / 4)),
        ([5, 4, 4, 3, 2, 1, 5, 4, 3, 2], OF_FAIR),
        ([4, 4, 4, 2, 1, 0, 4, 3, 2, 1], 0),
        ([3, 3, 3, 2, 1, 0, 3, 2, 1, 0], 0),
        ([0, 4, 0, 0, 0, 0, 0, 0, 0, 0], 0),
    ],
)
def test_bleu_of_a_sum(sums, expected):
    assert corpus_bleu(sums) == pytest.approx(expected, abs=1e-15)


def test_bleu_of_many_sums_at_once():
    sums = np.array([[GOOD, FAIR, BAD], [BAD, BAD, GOOD]])
    assert corpus_bleu(sums).tolist() == [[1, pytest.approx(OF_FAIR), 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("statistics", "expected"),
    [
        (GOOD, 1),
        (FAIR, (4 / 5 * (3 + 1) / (4 + 1) * (2 + 1) / (3 + 1) * (1 + 1) / (2 + 1)) ** (1 / 4)),
        ([2, 2, 1, 0, 0, 0, 2, 1, 0, 0], (1 / 2 * 1 / 2 * 1 / 1 * 1 / 1) ** (1 / 4)),
        (BAD, 0),
        ([0, 4, 0, 0, 0, 0, 0, 0, 0, 0], 0),
    ],
)
def test_smoothed_bleu_of_a_sentence(statistics, expected):
    assert smoothed_bleu(statistics) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("smoothing", ["none", "exp"])
@pytest.mark.parametrize("seed", range(5))
def test_bleu_is_sacrebleus(seed, smoothing):
    rng = np.random.default_rng(seed)
    texts = [[" ".join(rng.choice(list("abcd"), rng.integers(3, 12))) for _ in range(30)] for _ in range(3)]
    hypotheses, *references = texts
    texts = References(references)
    sums = np.sum([texts.statistics(i, text.encode()) for i, text in enumerate(hypotheses)], 0)
    score = BLEU(tokenize="none", force=True, smooth_method=smoothing).corpus_score(hypotheses, references)
    assert sums.tolist() == [score.sys_len, score.ref_len, *score.counts, *score.totals]
    assert 100 * corpus_bleu(sums) == pytest.approx(score.score, rel=1e-12)


# Heights of lines at step 0 and their slopes. Crossings of neighbours: 0 = -1 + s at 1, -1 + s = -4 + 2s at 3,
# -2 - s = 0 at -2.
LINES = [(-2.0, -1.0), (0.0, 0.0), (-1.0, 1.0), (-4.0, 2.0)]


def along(lines, qualities):
    """Lists of one sentence whose lines are these, the weights, and a direction."""
    return listed([[(slope, height) for height, slope in lines]], [qualities]), [0.0, 1.0], [1.0, 0.0]


@pytest.mark.parametrize(
    ("qualities", "expected"),
    [
        ([BAD, BAD, GOOD, BAD], Step((1 + 3) / 2, 1)),
        ([BAD, GOOD, BAD, BAD], Step(0, 1)),  # as good as it can be
        ([GOOD, BAD, BAD, BAD], Step(-2 - 0.1, 1)),  # 0.1 · |weights| / |direction| before the first corner
        ([BAD, BAD, BAD, GOOD], Step(3 + 0.1, 1)),
        ([BAD, BAD, GOOD, GOOD], Step((1 + 3) / 2, 1)),  # the wider, as the open one counts 0.2
        ([GOOD, BAD, BAD, GOOD], Step(-2 - 0.1, 1)),  # equally wide: the first
        ([GOOD, GOOD, GOOD, GOOD], Step(0, 1)),
        ([BAD, BAD, BAD, BAD], Step(0, 0)),
    ],
)  # fmt: skip
def test_the_middle_of_the_best_interval(qualities, expected):
    for order in itertools.permutations(range(4)):
        points, weights, direction = along([LINES[i] for i in order], [qualities[i] for i in order])
        assert search_line(points, weights, direction) == pytest.approx(expected)


def test_the_corners_of_several_sentences_are_merged():
    # The first changes at 1 from bad to good, the second at 3 from good to bad; both are good between.
    heights = [[(0.0, 0.0), (1.0, -1.0)], [(0.0, 0.0), (1.0, -3.0)]]
    points = listed(heights, [[BAD, GOOD], [GOOD, BAD]])
    assert search_line(points, [0.0, 1.0], [1.0, 0.0]) == pytest.approx(Step(2.0, 1.0))


def test_an_interval_too_narrow_to_be_met_is_left_alone():
    # The third is the best line between 1 and 1 + 1e-9 only.
    lines = [(0.0, 0.0), (-2.0 - 1e-9, 2.0), (-1.0, 1.0)]
    corners = trace_envelopes(*(np.array([[line[i] for line in lines]]) for i in (0, 1)))
    assert corners.behind.tolist() == [2, 1]
    assert np.diff(corners.steps) == pytest.approx(1e-9, rel=1e-6)
    assert search_line(*along(lines, [BAD, BAD, GOOD])) == Step(0.0, 0.0)
    assert search_line(*along(lines, [BAD, FAIR, GOOD])) == pytest.approx(Step(1.1, OF_FAIR))


PAIR = [[(1.0, 2.0), (0.0, 3.0)]]  # with weights (1, 1): heights 3 and 3
DEGENERATE = {
    "one hypothesis": ([[(1.0, 2.0)]], [[GOOD]], (1, 1), (1, 0), Step(0, 1)),
    "equal features": ([[(1.0, 2.0), (1.0, 2.0)]], [[FAIR, GOOD]], (1, 1), (1, 0), Step(0, OF_FAIR)),
    "parallel lines": ([[(1.0, 2.0), (1.0, 3.0)]], [[GOOD, FAIR]], (1, 1), (1, 0), Step(0, OF_FAIR)),
    "parallel, and the higher is not the first": ([[(1.0, 3.0), (1.0, 2.0)]], [[FAIR, GOOD]], (1, 1), (1, 0), Step(0, OF_FAIR)),
    "zero direction": (PAIR, [[BAD, GOOD]], (1, 1), (0, 0), Step(0, 0)),
    "zero weights": (PAIR, [[BAD, GOOD]], (0, 0), (1, 0), Step(-0.1, 1)),
    "zero weights and direction": (PAIR, [[GOOD, BAD]], (0, 0), (0, 0), Step(0, 1)),
    "a corner right here, the first is better": (PAIR, [[GOOD, BAD]], (1, 1), (1, 0), Step(0, 1)),
    "a corner right here, the other is better": (PAIR, [[BAD, GOOD]], (1, 1), (1, 0), Step(-0.2, 1)),
    "three lines in a point": ([[(0.0, 0.0), (1.0, -1.0), (2.0, -2.0)]], [[BAD, GOOD, FAIR]], (0, 1), (1, 0), Step(1.1, OF_FAIR)),
    "all lines through one point twice": ([[(0.0, 0.0), (0.0, 0.0), (1.0, -1.0), (1.0, -1.0)]], [[BAD, BAD, GOOD, BAD]], (0, 1), (1, 0), Step(1.1, 1)),
    "two sentences with a corner in one place": ([[(0.0, 0.0), (1.0, -1.0)]] * 2, [[BAD, GOOD]] * 2, (0, 1), (1, 0), Step(1.1, 1)),
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
    found = search_line(points, weights, direction)
    grid = plain_search(points, weights, direction, np.linspace(-20, 20, 8001))
    assert found.bleu == pytest.approx(plain_search(points, weights, direction, [found.step]), rel=1e-12)
    assert found.bleu >= grid - 1e-12


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


@pytest.mark.parametrize(
    ("shapes", "present", "message"),
    [
        (((2, 3, 1), (2, 3, 10)), [[1, 1], [1, 1]], r"expected features and statistics of \(2, 2\) hypotheses, found \(2, 3, 1\) and \(2, 3, 10\)"),
        (((2, 2, 1), (2, 2, 9)), [[1, 1], [1, 1]], r"found \(2, 2, 1\) and \(2, 2, 9\)"),
        (((2, 2, 1), (2, 2, 10)), [[1, 1], [0, 1]], "expected padding behind the hypotheses of a sentence, found it before one"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_belong_together(shapes, present, message):
    features, statistics = map(np.zeros, shapes)
    with pytest.raises(ValueError, match=message):
        listed(features, statistics, present)


def telling_list(seed, sentences=40, hypotheses=8):
    """Lists with a feature A that knows the best hypotheses, one B that does not, and one C that differs by sentence."""
    points = random_list(seed, sentences, hypotheses)
    rng = np.random.default_rng(seed)
    quality = smoothed_bleu(points.statistics)
    constant = np.broadcast_to(np.arange(sentences)[:, None], quality.shape)
    return listed(np.stack([quality, rng.standard_normal(quality.shape), constant], -1), points.statistics)


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
    assert not tuned.stopped


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
    found = [search_weights(points, np.ones(4), seed=3, restarts=restarts) for restarts in (0, 2, 2, 6)]
    assert found[1].weights.tolist() == found[2].weights.tolist()
    bleus = [tuned.bleu for tuned in found]
    assert bleus == sorted(bleus)
    assert search_weights(points, np.ones(4), seed=4, restarts=0).weights.tolist() != found[0].weights.tolist()


def test_the_result_is_as_good_as_any_of_many_random_weights():
    points = random_list(7, 6, 6, 3)
    best = max(bleu_of(points, weights) for weights in np.random.default_rng(1).standard_normal((5000, 3)))
    assert search_weights(points, [1, 1, 1], seed=1).bleu >= best


def test_a_search_can_be_stopped():
    asked = iter([False] * 4 + [True] * 100)
    points = telling_list(1)
    tuned = search_weights(points, [0.0, 1.0, 0.3], seed=1, should_stop=lambda: next(asked))
    assert tuned.stopped
    assert sum(1 for _ in asked) == 99  # asked five times
    assert tuned.bleu > tuned.start_bleu
    assert np.abs(tuned.weights[:2]).sum() == pytest.approx(1)


def test_restarts_begin_in_mosess_range_on_the_starts_side():
    lows, highs = choose_ranges(np.array([0.2, 0.0, -1.0]))
    assert (lows.tolist(), highs.tolist()) == ([0, 0, -1], [1, 1, 0])


@pytest.mark.parametrize("start", [[1.0], [1.0, 2.0, 3.0, 4.0], [1.0, math.nan, 0.0], [[1.0, 2.0, 3.0]]])
def test_a_start_of_another_length_is_refused(start):
    with pytest.raises(ValueError, match=r"expected 3 finite starting weights, found \["):
        search_weights(random_list(1), start, seed=1)


def test_the_oracle_of_a_corpus_is_not_that_of_its_sentences():
    # Of the second sentence alone the short hypothesis is better; as the first is too short, the corpus needs the long.
    short_first = [4, 8, 4, 3, 2, 1, 4, 3, 2, 1]
    short, long = [4, 4, 4, 3, 2, 1, 4, 3, 2, 1], [8, 4, 7, 6, 5, 4, 8, 7, 6, 5]
    points = listed(np.zeros((2, 2, 1)), [[short_first, short_first], [short, long]], [[1, 0], [1, 1]])
    assert smoothed_bleu(short) == 1 > smoothed_bleu(long)
    with_short = math.exp(1 - 12 / 8)
    with_long = (11 / 12 * 9 / 10 * 7 / 8 * 5 / 6) ** (1 / 4)
    assert with_short < with_long
    assert find_oracle(points).tolist() == [0, 1]
    assert corpus_bleu(statistics_of(points, find_oracle(points))) == pytest.approx(with_long)


@pytest.mark.parametrize("seed", range(10))
def test_no_single_change_improves_the_oracle(seed):
    points = random_list(seed, 5, 4)
    chosen = find_oracle(points)
    best = plain_bleu(statistics_of(points, chosen))
    for sentence, hypothesis in itertools.product(range(5), range(4)):
        changed = chosen.copy()
        changed[sentence] = hypothesis
        assert plain_bleu(statistics_of(points, changed)) <= best + 1e-12
    assert best >= plain_bleu(statistics_of(points, smoothed_bleu(points.statistics).argmax(1)))
