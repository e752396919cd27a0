import numpy as np
import pytest

from moses_rnn.errors import MosesRnnError
from moses_rnn.tuning.moses_tuners import format_features, format_scores
from moses_rnn.tuning.tunable import bleu_of
from moses_rnn.tuning.tune import default_optimiser, tune
from tests.tuning.lists import LINES, nbest, read, two_features


def test_the_files_for_mosess_tuners():
    assert "".join(format_features(read())) == (
        "FEATURES_TXT_BEGIN_0 0 2 3 LM0_0 TM0_0 TM0_1 \n-4 -1.5 -0.002 \n-5 0 -1 \nFEATURES_TXT_END_0\n"
        "FEATURES_TXT_BEGIN_0 1 1 3 LM0_0 TM0_0 TM0_1 \n-3 -1 0 \nFEATURES_TXT_END_0\n"
    )
    assert "".join(format_scores(read([LINES[0]]))) == (
        "SCORES_TXT_BEGIN_0 0 1 9 BLEU\n3 4 2 3 1 2 0 1 4 \nSCORES_TXT_END_0\n"
        "SCORES_TXT_BEGIN_0 1 1 9 BLEU\n0 0 0 0 0 0 0 0 3 \nSCORES_TXT_END_0\n"
    )


def test_mert_runs_on_its_own_files(false_moses, tmp_path):
    moses = false_moses("mert", "3 -1 0.7 ", "weights.txt")
    assert default_optimiser(moses) == "moses-mert"
    tuned = tune(two_features(), [0.5, -0.5, 0.7], seed=5, restarts=9, moses=moses)
    assert tuned.weights.tolist() == [0.75, -0.25, 0.7]
    assert (tuned.constant, tuned.stopped) == (("C_0",), False)
    assert tuned.bleu == bleu_of(two_features(), [3, -1, 0])
    assert (tmp_path / "arguments").read_text() == (
        "-d 3 -n 9 -r 5 --ffile features.dat --scfile scores.dat --ifile init.opt -o A_0,B_0\n"
    )
    assert (tmp_path / "init.opt").read_text() == "0.5 -0.5 0.7\n0 -1 0\n1 0 1\n"
    assert (tmp_path / "features.dat").read_text() == "".join(format_features(two_features()))
    assert (tmp_path / "scores.dat").read_text() == "".join(format_scores(two_features()))


def test_kbmira_runs_on_its_own_files(false_moses, tmp_path):
    moses = false_moses("kbmira", "F0 1.5\nF1 -0.5\nF2 9", "mira.out")
    points = read([nbest(b"A= 1 2 C= 5"), nbest(b"A= 2 1 C= 6", b"le chat dort ici")])
    tuned = tune(points, [0.5, -0.5, 0], "kbmira", seed=5, moses=moses)
    assert tuned.weights == pytest.approx(np.array([1.5, -0.5, 9]) / 11)
    assert (tmp_path / "arguments").read_text() == (
        "--dense-init init.dense --ffile features.dat --scfile scores.dat -o mira.out -J 300 -r 5\n"
    )
    assert (tmp_path / "init.dense").read_text() == "A= 0.5\nA= -0.5\nC= 0\n"


@pytest.mark.parametrize(
    ("program", "answer", "output", "code", "message"),
    [
        ("mert", "1 2", "weights.txt", 0, r"mert: expected 3 finite weights in weights.txt, found \['1', '2'\]"),
        ("mert", "1 nan 2", "weights.txt", 0, r"mert: expected 3 finite weights in weights.txt, found \['1', 'nan', '2'\]"),
        ("mert", "1 x 2", "weights.txt", 0, r"mert: expected 3 finite weights in weights.txt, found \['1', 'x', '2'\]"),
        ("mert", "0 0 0", "weights.txt", 0, "mert: found no weights with a BLEU above 0"),
        ("mert", "", "weights.txt", 3, "mert .*\n  ended with code 3:\n    what went wrong"),
        ("kbmira", "", "mira.out", 0, "kbmira: found no weights with a BLEU above 0"),
        ("kbmira", "F0 1", "mira.out", 0, r"kbmira: expected 3 finite weights in mira.out, found \['1'\]"),
    ],
)  # fmt: skip
def test_tuners_that_fail(false_moses, program, answer, output, code, message):
    moses = false_moses(program, answer, output, code)
    optimiser = {"mert": "moses-mert"}.get(program, program)
    with pytest.raises(MosesRnnError, match=message):
        tune(two_features(), [1, 1, 1], optimiser, seed=1, moses=moses)
