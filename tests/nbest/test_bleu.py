import math

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from moses_rnn.nbest.bleu import References, corpus_bleu, smoothed_bleu
from tests.nbest.lists import BAD, FAIR, GOOD, OF_FAIR


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
