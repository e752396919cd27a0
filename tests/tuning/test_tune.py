import gzip
import itertools
import stat
import sys

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from moses_rnn.errors import FormatError, InputError, MosesRnnError
from moses_rnn.formats.moses_ini import MosesIni
from moses_rnn.formats.nbest import parse_nbest
from moses_rnn.moses.programs import Moses
from moses_rnn.tuning.bleu import References
from moses_rnn.tuning.moses_tuners import format_features, format_scores
from moses_rnn.tuning.reading import read_tunable
from moses_rnn.tuning.tunable import bleu_of, choose
from moses_rnn.tuning.tune import default_optimiser, format_ini, recover_weights, select_weights, tune

REFERENCE = ["le chat dort ici", "un chien court"]
LINES = [
    b"0 ||| le chat dort la  ||| LM0= -4 TM0= -1.5 -2e-3 ||| -4.5 ||| 0-0\n",
    b"1 ||| un chien  ||| LM0= -3 TM0= -1 0 ||| -3.5\n",
    b"0 ||| le chat dort ici  ||| LM0= -5 TM0= 0 -1 ||| -5.25\n",
]
NAMES = ("LM0_0", "TM0_0", "TM0_1")


def read(lines=LINES, references=(REFERENCE,), **options):
    return read_tunable(parse_nbest(lines, "n"), references, name="n", **options)


def nbest(features, hypothesis=b"le chat", sentence=0, total=b"0"):
    return b"%d ||| %b ||| %b ||| %b\n" % (sentence, hypothesis, features, total)


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


@pytest.mark.parametrize("change", [str.encode, lambda line: line + "\n", lambda line: line.encode() + b"\r\n"])
def test_references_are_bytes_or_text_with_or_without_line_ends(change):
    changed = read(references=[list(map(change, REFERENCE))])
    assert changed.statistics.tolist() == read().statistics.tolist()


def test_several_references():
    # Of both, "a a b" is as long as the second; of two equally near lengths the shorter counts.
    texts = References([["a a a a"], ["a b"], ["b c d e f g"]])
    assert texts.statistics(0, b"a a b") == (3, 2, 3, 2, 0, 0, 3, 2, 1, 0)
    assert texts.statistics(0, b"a a a a a") == (5, 4, 4, 3, 2, 1, 5, 4, 3, 2)
    assert texts.statistics(0, b"") == (0, 2, 0, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", "\u0085", "\u3000", "\x0b", "\x1c"])
def test_only_blanks_part_words(space):
    word = f"neuf{space}cents"
    texts = References([[f"{word}  francs ."]])
    assert texts.statistics(0, f"{word} francs\t.".encode()) == (3, 3, 3, 2, 1, 0, 3, 2, 1, 0)
    assert texts.statistics(0, b"neuf cents francs .") == (4, 3, 2, 1, 0, 0, 4, 3, 2, 1)
    split = BLEU(tokenize="none", force=True, effective_order=True).sentence_score(word, [word])
    assert split.sys_len == 2  # why sacreBLEU is given numbers


def test_bytes_that_are_no_text():
    texts = References([[b"\xff a"]])
    assert texts.statistics(0, b"\xff a")[2:4] == (2, 1)
    assert References([["\udcff a"]]).statistics(0, b"\xff a")[2:4] == (2, 1)


def test_statistics_are_sacrebleus(multi30k):
    with gzip.open(multi30k / "nbest.val.100.gz") as lines:
        parsed = list(itertools.takewhile(lambda line: line.sentence < 20, parse_nbest(lines, "n")))
    references = gzip.decompress((multi30k / "val.fr.gz").read_bytes()).decode().split("\n")[:20]
    points = read_tunable(parsed, [references])
    assert points.present.sum() == len(parsed)
    for rank in (0, 7):
        hypotheses = [[line.hypothesis.decode() for line in parsed if line.sentence == i][rank] for i in range(20)]
        score = BLEU(tokenize="none", force=True).corpus_score(hypotheses, [references])
        expected = [score.sys_len, score.ref_len, *score.counts, *score.totals]
        assert points.statistics[:, rank].sum(0).tolist() == expected


def test_equal_hypotheses_are_compared_once(monkeypatch):
    counted = []
    original = References.statistics
    monkeypatch.setattr(References, "statistics", lambda *given: counted.append(given[1:]) or original(*given))
    lines = [nbest(b"A= 1"), nbest(b"A= 2"), nbest(b"A= 1", sentence=1), nbest(b"A= 1", b"la")]
    assert read(lines).statistics[0, :, 0].tolist() == [2, 2, 1]
    assert counted == [(0, b"le chat"), (1, b"le chat"), (0, b"la")]


def test_a_sentence_without_a_line_counts_as_an_empty_translation():
    points = read([LINES[1]])
    assert points.missing == (0,)
    assert points.statistics[0].tolist() == [[0, 4, 0, 0, 0, 0, 0, 0, 0, 0]]
    assert choose(points, [1, 1, 1]).tolist() == [0, 0]


SPARSE = [nbest(b"LM0= -4 LM0_a= 2 TM0_x|y= -1"), nbest(b"LM0_a= 1 LM0_a= 3 LM0= -5")]


def test_sparse_features_with_weights_are_one_feature():
    weights = {"LM0_a": 0.5, "TM0_x|y": 3.0}
    points = read(SPARSE, sparse_weights=weights)
    assert points.names == ("LM0_0", "Sparse_0")
    assert points.features[0].tolist() == [[-4, 0.5 * 2 + 3 * -1], [-5, 0.5 * 1 + 0.5 * 3]]
    assert format_ini(points.names, [0.5, 0.25], weights) == b"[weight]\nLM0= 0.5\nLM0_a= 0.125\nTM0_x|y= 0.75\n"


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([nbest(b"A= 1", sentence=2)], {}, "n:1: expected a sentence number below 2, the number of lines of the references, found 2"),
        ([nbest(b"A= 1 B= 2 3"), nbest(b"A= 1 B= 2")], {}, r"n:2: expected the features of line 1, A\(1\) B\(2\), found A\(1\) B\(1\)"),
        ([nbest(b"A= 1 B= 2"), nbest(b"B= 1 A= 2")], {}, r"n:2: expected the features of line 1, A\(1\) B\(1\), found B\(1\) A\(1\)"),
        ([nbest(b"A= 1"), nbest(b"A= 1"), nbest(b"")], {}, r"n:3: expected the features of line 1, A\(1\), found none"),
        ([nbest(b"A= 1 A= 2")], {}, "n:1: expected each feature once, found A twice"),
        ([nbest(b"A= 1 B= -1e999")], {}, "n:1: expected finite feature values, found -inf"),
        ([nbest(b"A= 1"), nbest(b"A= 1", total=b"-1e999")], {}, "n:2: expected a finite total score in field 4, found '-1e999'"),
        (SPARSE, {}, "n:1: expected dense features, found the sparse LM0_a\n  A label with '_' is sparse. Given a weight for each such, their weighted sum is tuned as one feature."),
        (SPARSE, {"sparse_weights": {"LM0_a": 1}}, r"n:1: expected a weight for every sparse feature, found none for TM0_x\|y"),
        ([nbest(b"A= 1 A_b= 1 2")], {"sparse_weights": {"A_b": 1}}, "n:1: expected one value of the sparse feature A_b, found 2"),
        ([], {}, "n: expected hypotheses, found an empty list"),
        (LINES, {"references": (REFERENCE, ["one line"])}, "references: expected texts with equally many lines, found 2, 1"),
        (LINES, {"references": ()}, "references: expected texts with equally many lines, found no references"),
    ],
)  # fmt: skip
def test_refuses(lines, options, message):
    with pytest.raises(InputError, match=message + "$") as caught:
        read(lines, **options)
    assert isinstance(caught.value, FormatError) == (message[:2] == "n:" and message[2].isdigit())


def test_without_sacrebleu(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(MosesRnnError, match=r"sacrebleu is not installed: pip install 'moses-rnn\[eval\]'"):
        read()


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
    found = recover_weights(points, points.totals)
    assert found.weights == pytest.approx(weights, abs=1e-6)
    assert found.largest_residual < 1e-6


def test_how_far_totals_are_from_any_weights_is_said():
    points = made_with(np.array([1.0, 2.0]))
    wrong = points.totals.copy()
    wrong[3, 2] += 1.0
    found = recover_weights(points, wrong)
    assert found.largest_residual == pytest.approx(1.0, abs=0.2)  # least squares give it a small part


def test_nothing_is_found_of_a_constant_feature():
    lines = [nbest(b"A= %d B= 7 C= %d" % (i, 2 * i), total=b"%d" % (-3 * i)) for i in range(4)]
    points = read([*lines, nbest(b"A= 1 B= 9 C= 1", sentence=1, total=b"5")])
    assert points.constant == ("B_0",)
    found = recover_weights(points, points.totals)
    assert found.weights == pytest.approx([-3 / 5, 0, -6 / 5])  # A + 2 C = -3, the shortest such
    assert found.largest_residual == pytest.approx(0, abs=1e-9)
    one_each = read([LINES[0], LINES[1]])
    assert recover_weights(one_each, one_each.totals).weights.tolist() == [0, 0, 0]


def test_weights_are_read_back_from_the_ini():
    weights = [0.5, -1.25e-7, 1 / 3]
    data = format_ini(NAMES, np.array(weights))
    assert data == b"[weight]\nLM0= 0.5\nTM0= -1.25e-07 0.333333333\n"
    assert MosesIni(data, "ini").all_weights() == {"LM0": [0.5], "TM0": [-1.25e-7, 0.333333333]}
    assert select_weights(NAMES, MosesIni(data, "ini").all_weights(), "ini") == pytest.approx(weights, rel=1e-9)


def test_weights_of_an_ini_in_the_order_of_the_list():
    of_ini = {"UnknownWordPenalty0": [1.0], "TM0": [2.0, 3.0], "LM0": [1.0]}
    assert select_weights(NAMES, of_ini, "ini").tolist() == [1, 2, 3]
    assert select_weights((*NAMES, "Sparse_0"), of_ini, "ini").tolist() == [1, 2, 3, 1]  # their own weights


@pytest.mark.parametrize(
    ("of_ini", "found"),
    [
        ({"LM0": [1.0]}, "2 weights of TM0, as the n-best list has values, found none"),
        ({"LM0": [1.0], "TM0": [1.0]}, "2 weights of TM0, as the n-best list has values, found TM0= 1.0"),
        ({"LM0": [float("nan")], "TM0": [1.0, 2.0]}, "1 weights of LM0, as the n-best list has values, found LM0= nan"),
    ],
)
def test_an_ini_of_another_list_is_refused(of_ini, found):
    with pytest.raises(InputError, match=f"moses.ini: expected {found}"):
        select_weights(NAMES, of_ini, "moses.ini")


@pytest.mark.parametrize(
    ("names", "weights", "message"),
    [
        (NAMES, [1, 2], "expected 3 weights, found 2"),
        (("TM0_1", "TM0_0"), [1, 2], r"expected names such as LM0_0, those of a label in order and together, found \['TM0_1', 'TM0_0'\]"),
        (("A_0", "B_0", "A_1"), [1, 2, 3], "expected names such as LM0_0"),
        (("LM0",), [1], "expected names such as LM0_0"),
        ((), [], "expected names such as LM0_0"),
    ],
)  # fmt: skip
def test_names_and_weights_that_are_no_ini(names, weights, message):
    with pytest.raises(ValueError, match=message):
        format_ini(names, weights)


def test_the_files_for_mosess_tuners():
    assert "".join(format_features(read())) == (
        "FEATURES_TXT_BEGIN_0 0 2 3 LM0_0 TM0_0 TM0_1 \n-4 -1.5 -0.002 \n-5 0 -1 \nFEATURES_TXT_END_0\n"
        "FEATURES_TXT_BEGIN_0 1 1 3 LM0_0 TM0_0 TM0_1 \n-3 -1 0 \nFEATURES_TXT_END_0\n"
    )
    assert "".join(format_scores(read([LINES[0]]))) == (
        "SCORES_TXT_BEGIN_0 0 1 9 BLEU\n3 4 2 3 1 2 0 1 4 \nSCORES_TXT_END_0\n"
        "SCORES_TXT_BEGIN_0 1 1 9 BLEU\n0 0 0 0 0 0 0 0 3 \nSCORES_TXT_END_0\n"
    )


@pytest.fixture
def false_moses(tmp_path):
    """A folder with a mert and a kbmira that keep their arguments and files, and answer as they are told."""
    (tmp_path / "bin").mkdir()

    def answering(program, answer, output, code=0):
        path = tmp_path / "bin" / program
        path.write_text(
            f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\ncp * {tmp_path}\n'
            + (f"echo '{answer}' > {output}\n" if answer else "")
            + f"echo what went wrong >&2\nexit {code}\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return Moses(tmp_path)

    return answering


def two_features():
    """A and B vary, C does not."""
    return read([nbest(b"A= 1 B= 2 C= 5", b"le chat dort"), nbest(b"A= 2 B= 1 C= 5", b"le chat dort ici")])


def test_mert_is_asked_with_its_own_files(false_moses, tmp_path):
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


def test_kbmira_is_asked_with_its_own_files(false_moses, tmp_path):
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


def test_tuners_that_are_not_there(tmp_path):
    assert default_optimiser(None) == default_optimiser(Moses(tmp_path)) == "mert"
    with pytest.raises(
        InputError, match="kbmira: expected a built Moses, found none\n  Name it with MOSES_ROOT, or choose 'mert'."
    ):
        tune(two_features(), [1, 1, 1], "kbmira", seed=1)
    with pytest.raises(InputError, match="bin/mert: expected a program of Moses, found none"):
        tune(two_features(), [1, 1, 1], "moses-mert", seed=1, moses=Moses(tmp_path))
    with pytest.raises(ValueError, match="expected an optimiser of moses-mert, kbmira, mert, found 'pro'"):
        tune(two_features(), [1, 1, 1], "pro", seed=1)
    with pytest.raises(ValueError, match=r"expected 3 finite starting weights, found \[1.0\]"):
        tune(two_features(), [1], seed=1)


def test_ours_needs_no_moses():
    tuned = tune(two_features(), [-1, 0, 0], seed=1)
    assert tuned.bleu == bleu_of(two_features(), [1, 0, 0]) > tuned.start_bleu == bleu_of(two_features(), [-1, 0, 0])
    assert tune(two_features(), [-1, 0, 0], seed=1, should_stop=lambda: True).stopped


@pytest.mark.parametrize("optimiser", ["moses-mert", "kbmira", "mert"])
def test_where_all_is_constant_nobody_is_asked(false_moses, optimiser):
    points = read(LINES[:2])
    assert points.constant == NAMES
    tuned = tune(points, [1, 2, 3], optimiser, seed=1, moses=false_moses("mert", "9 9 9", "weights.txt"))
    assert tuned.weights.tolist() == [1, 2, 3]
