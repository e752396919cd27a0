import itertools

import numpy as np
import pytest

from moses_rnn.moses.ini import MosesIni
from moses_rnn.tuning.lists import bleu_of
from moses_rnn.tuning.tune import choose_start, recover_weights, tune
from moses_rnn.tuning.weights import format_ini, select_weights
from tests.tuning.lists import LINES, NAMES, nbest, read, two_features, weights_of


def made_with(weights, unknown_words=0.0, digits=9):
    """A list of 6 sentences with 5 hypotheses each whose totals come from weights; each sentence has a penalty more."""
    rng = np.random.default_rng(1)
    lines = []
    for sentence, _ in itertools.product(range(6), range(5)):
        features = rng.normal(size=len(weights)).round(4)
        total = features @ weights + sentence * unknown_words
        text = " ".join(map(str, features)).encode()
        lines.append(nbest(b"A= " + text, sentence=sentence, total=f"{total:.{digits}g}".encode()))
    return read(lines, [["x"] * 6])


@pytest.mark.parametrize("unknown_words", [0.0, -100.0])
def test_the_weights_of_a_list_are_found_from_its_totals(unknown_words):
    weights = np.array([0.5, -0.25, 0.125])
    points = made_with(weights, unknown_words)
    recovered = recover_weights(points)
    assert recovered == pytest.approx(weights, abs=1e-6)


def test_nothing_is_found_of_a_constant_feature():
    lines = [nbest(b"A= %d B= 7 C= %d" % (i, 2 * i), total=b"%d" % (-3 * i)) for i in range(4)]
    points = read([*lines, nbest(b"A= 1 B= 9 C= 1", sentence=1, total=b"5")])
    assert points.constant == ("B_0",)
    recovered = recover_weights(points)
    assert recovered == pytest.approx([-3 / 5, 0, -6 / 5])  # A + 2 C = -3, the shortest such
    one_each = read([LINES[0], LINES[1]])
    assert recover_weights(one_each).tolist() == [0, 0, 0]


def test_weights_are_read_back_from_the_ini():
    weights = [0.5, -1.25e-7, 1 / 3]
    data = format_ini(NAMES, np.array(weights))
    assert data == b"[weight]\nLM0= 0.5\nTM0= -1.25e-07 0.333333333\n"
    assert MosesIni(data, "ini").all_weights() == {"LM0": [0.5], "TM0": [-1.25e-7, 0.333333333]}
    assert select_weights(NAMES, weights_of(MosesIni(data, "ini").all_weights())) == pytest.approx(weights, rel=1e-9)


def test_weights_of_an_ini_in_the_order_of_the_list():
    of_ini = {"UnknownWordPenalty0": [1.0], "TM0": [2.0, 3.0], "LM0": [1.0], "LM0_a": [0.5]}
    assert select_weights(NAMES, weights_of(of_ini)).tolist() == [1, 2, 3]
    sparse_too = (*NAMES, "Sparse_0")
    assert select_weights(sparse_too, weights_of(of_ini)).tolist() == [1, 2, 3, 1]  # their own weights
    points = read([line.replace(b"LM0= ", b"LM0_a= 1 LM0= ") for line in LINES], sparse_weights={"LM0_a": 0.5})
    assert choose_start(points, weights_of({"LM0": [1.0], "LM0_a": [0.5]})).tolist() == [1, 0, 0, 1]  # 0 where added


def test_ours_needs_no_moses():
    tuned = tune(two_features(), [-1, 0, 0], seed=1)
    assert tuned.bleu == bleu_of(two_features(), [1, 0, 0]) > tuned.start_bleu == bleu_of(two_features(), [-1, 0, 0])
