"""Scores in the totals of a list that its features do not show."""

import numpy as np
import pytest

from moses_rnn.errors import FormatError
from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.nbest.rerank import WeightedSum, choose_hypotheses
from moses_rnn.nbest.tune import check_list, choose_start
from tests.nbest.lists import nbest, read, weights_of

MADE_WITH = [0.5, -0.25, 0.125, 0.25]  # A0, and A1 with three values
SENTENCES, HYPOTHESES = 12, 20
NONE = np.zeros((SENTENCES, HYPOTHESES))
RNG = np.random.default_rng(1)
EACH = NONE + np.arange(SENTENCES)[:, None] % 3  # unknown words of all hypotheses of a sentence
SOME = EACH.copy()
SOME[::4, 3::5] += 1
SOME[4, 8:] += 2
OFTEN = EACH + (RNG.random(EACH.shape) < 0.5)
HIDDEN = RNG.normal(size=EACH.shape)
REFUSED = (
    "^n: expected totals that the features explain, found -[0-9.]+ and -[0-9.]+ in sentence [0-9]+, .* further apart"
)


def made(unknown, *, scale=1.0, weight=1.0, hidden=NONE, shown="", sentences=SENTENCES, hypotheses=HYPOTHESES):
    """Lines of a list as the decoder prints it, with a feature Added0 more.

    Features of a hypothesis depend on its unknown words, as a language model's do.
    """
    rng = np.random.default_rng(2)
    weights = scale * np.array(MADE_WITH)
    lines = []
    for i in range(sentences):
        base = rng.normal(scale=10, size=4)
        for j in range(hypotheses):
            features = base + rng.normal(size=4) - [15 * unknown[i, j], 0, 0, 0]
            total = features @ weights - 100 * weight * unknown[i, j] + hidden[i, j]
            text = "A0= {:.6g} A1= {:.6g} {:.6g} {:.6g}".format(*features)
            text += f" {shown}= {-100 * unknown[i, j]:g}" * bool(shown) + f" Added0= {rng.normal(scale=5):.6g}"
            lines.append(nbest(text.encode(), b"h%d" % j, i, f"{total:.6g}".encode()))
    return lines


OF_INI = {"A0": [0.5], "A1": [-0.25, 0.125, 0.25]}
OTHERS = {"A0": [0.1], "A1": [0.3, 0.3, -0.1], "Added0": [0.4]}  # as after tuning


def found_by_tuning(lines, weights):
    points = read(lines, [["x"] * SENTENCES])
    return check_list(points, "n", choose_start(points, weights), weights)


def found_by_reranking(lines, weights):
    scoring = WeightedSum("n", weights)
    choose_hypotheses(scoring.score(parse_nbest(lines, "n")), "n")
    return scoring.find_hidden()


def found(lines, of_ini):
    """What tuning and reranking find; raises an error if either does."""
    weights = weights_of(of_ini) if of_ini else None
    by_tuning = found_by_tuning(lines, weights)
    if of_ini and "Added0" in of_ini:
        assert found_by_reranking(lines, weights) == by_tuning
    return by_tuning


GIVEN = {"no weights": None, "those that made the list": OF_INI, "others": OTHERS}
every_start = pytest.mark.parametrize("of_ini", GIVEN.values(), ids=GIVEN)


@every_start
@pytest.mark.parametrize("scale", [0.1, 1, 20])
def test_unknown_words_that_a_sentence_shares_are_no_matter(of_ini, scale):
    assert found(made(EACH, scale=scale), of_ini) == 0
    assert found(made(NONE, scale=scale), of_ini) == 0


@every_start
@pytest.mark.parametrize("scale", [0.1, 1, 5])
@pytest.mark.parametrize("unknown", [SOME, OFTEN], ids=["some", "often"])
def test_a_hidden_penalty_is_refused(of_ini, scale, unknown):
    lines = made(unknown, scale=scale)
    for listed in (lines, lines[::-1], made(SOME, hidden=HIDDEN)):
        with pytest.raises(FormatError, match=REFUSED):
            found(listed, of_ini)


def test_an_infinite_total_hides_nothing():
    lines = [*made(SOME), nbest(b"A0= 1 A1= 1 1 1 Added0= 1", total=b"-1e999")]
    with pytest.raises(FormatError, match=REFUSED):
        found_by_reranking(lines, weights_of(OTHERS))


@pytest.mark.parametrize("of_ini", [{**OF_INI, "Added0": [0.0]}, OTHERS], ids=["those that made the list", "others"])
def test_two_hypotheses_are_enough(of_ini):
    unknown = np.array([[0, 1]])
    with pytest.raises(FormatError, match=REFUSED):
        found_by_reranking(made(unknown, sentences=1, hypotheses=2), weights_of(of_ini))
    assert found(made(NONE, sentences=1, hypotheses=2), of_ini) == 0


@every_start
def test_a_penalty_that_the_list_shows_is_a_feature(of_ini):
    of_ini = of_ini and {**of_ini, "UnknownWordPenalty0": [0.02]}
    assert found(made(SOME, shown="UnknownWordPenalty0"), of_ini) == 0
    assert found(made(SOME, shown="UnknownWordPenalty0", hidden=HIDDEN), of_ini) == 0


@every_start
def test_any_feature_may_cost_as_much(of_ini):
    assert found(made(SOME, shown="Rule0"), of_ini and {**of_ini, "Rule0": [0.5]}) == 0


@pytest.mark.parametrize("weight", [0.25, 0.5, -1, 3])
def test_the_weight_of_the_penalty_is_the_ini_s(weight):
    lines = made(SOME, weight=abs(weight))
    with pytest.raises(FormatError, match=REFUSED):
        found(lines, {**OTHERS, "UnknownWordPenalty0": [weight]})


def test_a_penalty_without_weight_is_none():
    assert found(made(SOME, weight=0), {**OTHERS, "UnknownWordPenalty0": [0]}) == 0
    assert found(made(SOME, weight=0), OTHERS) == 0


@every_start
def test_a_penalty_of_an_unknown_weight_is_no_certain_cause(of_ini):
    assert found(made(SOME, weight=0.4), of_ini) == pytest.approx(40, rel=0.2)


@every_start
def test_other_hidden_scores_are_no_penalties(of_ini):
    assert found(made(EACH, hidden=HIDDEN), of_ini) == 0
    assert found(made(EACH, hidden=60 * HIDDEN), of_ini) > 25
