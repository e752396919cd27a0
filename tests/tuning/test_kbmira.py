import stat

import numpy as np
import pytest

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.moses.decoder import Moses
from moses_rnn.tuning.tune import format_features, format_scores, tune
from tests.tuning.lists import LINES, NAMES, nbest, read, two_features


@pytest.fixture
def false_moses(tmp_path):
    """A folder with a kbmira that keeps its arguments and files, and answers as it was made to."""
    (tmp_path / "bin").mkdir()

    def answering(answer, code=0):
        path = tmp_path / "bin" / "kbmira"
        path.write_text(
            f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\ncp * {tmp_path}\n'
            + (f"echo '{answer}' > mira.out\n" if answer else "")
            + f"echo what went wrong >&2\nexit {code}\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return Moses(tmp_path)

    return answering


def test_its_files():
    assert "".join(format_features(read())) == (
        "FEATURES_TXT_BEGIN_0 0 2 3 LM0_0 TM0_0 TM0_1 \n-4 -1.5 -0.002 \n-5 0 -1 \nFEATURES_TXT_END_0\n"
        "FEATURES_TXT_BEGIN_0 1 1 3 LM0_0 TM0_0 TM0_1 \n-3 -1 0 \nFEATURES_TXT_END_0\n"
    )
    assert "".join(format_scores(read([LINES[0]]))) == (
        "SCORES_TXT_BEGIN_0 0 1 9 BLEU\n3 4 2 3 1 2 0 1 4 \nSCORES_TXT_END_0\n"
        "SCORES_TXT_BEGIN_0 1 1 9 BLEU\n0 0 0 0 0 0 0 0 3 \nSCORES_TXT_END_0\n"
    )


def test_kbmira_runs_on_its_own_files(false_moses, tmp_path):
    moses = false_moses("F0 1.5\nF1 -0.5\nF2 9")
    points = read([nbest(b"A= 1 2 C= 5"), nbest(b"A= 2 1 C= 6", b"le chat dort ici")])
    tuned = tune(points, [0.5, -0.5, 0], "kbmira", seed=5, moses=moses)
    assert tuned.weights == pytest.approx(np.array([1.5, -0.5, 9]) / 11)
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
def test_a_failure_is_named(false_moses, answer, code, message):
    with pytest.raises(MosesRnnError, match=message):
        tune(two_features(), [1, 1, 1], "kbmira", seed=1, moses=false_moses(answer, code))


def test_without_it_nothing_is_tuned(tmp_path):
    with pytest.raises(InputError, match="kbmira: expected a built Moses, found none"):
        tune(two_features(), [1, 1, 1], "kbmira", seed=1)
    with pytest.raises(InputError, match="bin/kbmira: expected a program of Moses, found none"):
        tune(two_features(), [1, 1, 1], "kbmira", seed=1, moses=Moses(tmp_path))


def test_where_all_features_are_constant_it_has_nothing_to_do(false_moses):
    points = read(LINES[:2])
    assert points.constant == NAMES
    assert tune(points, [1, 2, 3], "kbmira", seed=1, moses=false_moses("F0 9\nF1 9\nF2 9")).weights.tolist() == [
        1,
        2,
        3,
    ]
