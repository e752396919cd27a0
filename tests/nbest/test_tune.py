"""Where a tuning begins, and Moses's kbmira through its files."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from moses_rnn.errors import FormatError, InputError, MosesRnnError
from moses_rnn.moses.decoding import Moses
from moses_rnn.moses.ini import MosesIni
from moses_rnn.nbest.tune import choose_start, format_features, format_scores, largest_residual, recover_weights, tune
from moses_rnn.nbest.weights import format_ini, select_weights
from tests.moses.decoding import false_moses
from tests.nbest.lists import LINES, NAMES, nbest, read, two_features, weights_of


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
    assert largest_residual(points, recovered) < 1e-4
    assert largest_residual(points, recovered + 1) > 1


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
    with pytest.raises(FormatError, match="ini:2: expected a feature's name with '=', a blank and weights, found 'A_'"):
        MosesIni(b"[weight]\nA_#= 0.5\n", "ini").all_weights()


def test_weights_of_an_ini_in_the_order_of_the_list():
    of_ini = {"UnknownWordPenalty0": [1.0], "TM0": [2.0, 3.0], "LM0": [1.0], "LM0_a": [0.5]}
    assert select_weights(NAMES, weights_of(of_ini)).tolist() == [1, 2, 3]
    sparse_too = (*NAMES, "Sparse_0")
    assert select_weights(sparse_too, weights_of(of_ini)).tolist() == [1, 2, 3, 1]  # their own weights
    points = read([line.replace(b"LM0= ", b"LM0_a= 1 LM0= ") for line in LINES], sparse_weights={"LM0_a": 0.5})
    assert choose_start(points, weights_of({"LM0": [1.0], "LM0_a": [0.5]})).tolist() == [1, 0, 0, 1]  # 0 where added


def test_a_feature_of_the_ini_needs_a_weight():
    """Moses would take a default."""
    weights = replace(weights_of({"LM0": [1.0]}), declared=["LM0", "TM0"])
    with pytest.raises(InputError, match="expected 2 weights of TM0, as many as values in the list, found none"):
        choose_start(read(), weights)


def kbmira(folder, answer, code=0):
    """A Moses whose kbmira keeps its arguments and files, and answers as it is told."""
    answering = f"echo '{answer}' > mira.out\n" if answer else ""
    script = f'echo "$@" > {folder}/arguments\ncp * {folder}\n{answering}echo what went wrong >&2\nexit {code}'
    return false_moses(folder, "kbmira", script)


def test_its_files():
    assert "".join(format_features(read())) == (
        "FEATURES_TXT_BEGIN_0 0 2 3 LM0_0 TM0_0 TM0_1 \n-4 -1.5 -0.002 \n-5 0 -1 \nFEATURES_TXT_END_0\n"
        "FEATURES_TXT_BEGIN_0 1 1 3 LM0_0 TM0_0 TM0_1 \n-3 -1 0 \nFEATURES_TXT_END_0\n"
    )
    assert "".join(format_scores(read([LINES[0]]))) == (
        "SCORES_TXT_BEGIN_0 0 1 9 BLEU\n3 4 2 3 1 2 0 1 4 \nSCORES_TXT_END_0\n"
        "SCORES_TXT_BEGIN_0 1 1 9 BLEU\n0 0 0 0 0 0 0 0 3 \nSCORES_TXT_END_0\n"
    )


def test_kbmira_runs_on_its_own_files(tmp_path):
    moses = kbmira(tmp_path, "F0 1.5\nF1 -0.5\nF2 9")
    points = read([nbest(b"A= 1 2 C= 5"), nbest(b"A= 2 1 C= 6", b"le chat dort ici")])
    tuned = tune(points, [0.5, -0.5, 0], "kbmira", seed=5, moses=moses)
    assert tuned == pytest.approx(np.array([1.5, -0.5, 9]) / 11)
    assert (tmp_path / "arguments").read_text() == (
        "--dense-init init.dense --ffile features.dat --scfile scores.dat -o mira.out -J 300 -r 5\n"
    )
    assert (tmp_path / "init.dense").read_text() == "A= 0.5\nA= -0.5\nC= 0\n"


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ("F0 1\nF1 2", 0, r"kbmira: expected 3 finite weights in mira.out, found \['1', '2'\]"),
        ("F0 1\nF1 nan\nF2 2", 0, r"kbmira: expected 3 finite weights in mira.out, found \['1', 'nan', '2'\]"),
        ("F0 1\nF1 x\nF2 2", 0, r"kbmira: expected 3 finite weights in mira.out, found \['1', 'x', '2'\]"),
        ("F0 0\nF1 0\nF2 0", 0, "kbmira: found no weights with a BLEU above 0"),
        ("", 0, "kbmira: found no weights with a BLEU above 0"),
        ("", 3, "kbmira .*\n  ended with code 3:\n    what went wrong"),
    ],
)
def test_a_failure_is_named(tmp_path, answer, code, message):
    with pytest.raises(MosesRnnError, match=message):
        tune(two_features(), [1, 1, 1], "kbmira", seed=1, moses=kbmira(tmp_path, answer, code))


def test_without_it_nothing_is_tuned(tmp_path):
    with pytest.raises(InputError, match="kbmira: expected a built Moses, found none"):
        tune(two_features(), [1, 1, 1], "kbmira", seed=1)
    with pytest.raises(InputError, match="bin/kbmira: expected a program of Moses, found none"):
        tune(two_features(), [1, 1, 1], "kbmira", seed=1, moses=Moses(tmp_path))


def test_where_all_features_are_constant_it_has_nothing_to_do(tmp_path):
    points = read(LINES[:2])
    assert points.constant == NAMES
    moses = kbmira(tmp_path, "F0 9\nF1 9\nF2 9")
    assert tune(points, [1, 2, 3], "kbmira", seed=1, moses=moses).tolist() == [1, 2, 3]
