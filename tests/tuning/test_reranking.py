"""The best hypotheses by new weights, and what they are worth."""

import itertools
import math

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.tuning.bleu import corpus_bleu, smoothed_bleu
from moses_rnn.tuning.lists import statistics_of
from moses_rnn.tuning.reranking import (
    choose_evenly,
    choose_hypotheses,
    compare_bleu,
    find_oracle,
    format_segments,
    list_translations,
)
from tests.tuning.lists import listed, plain_bleu, random_list, weights_of

WEIGHTS = {"A": [1.0], "B": [0.5, -2.0]}


def nbest(sentence, hypothesis, features, further=b""):
    return b"%d ||| %b ||| %b ||| 0%b\n" % (sentence, hypothesis, features, further)


def best(lines, weights=None):
    return choose_hypotheses(parse_nbest(lines, "n"), weights_of(weights or WEIGHTS), "n")


def chosen(lines, weights=None, sentences=1):
    return list_translations(best(lines, weights), sentences)


def test_lines_of_a_sentence_need_not_follow_each_other_and_sentences_may_be_missing():
    lines = [nbest(3, b"d", b"A= 1"), nbest(1, b"b", b"A= 1"), nbest(3, b"D", b"A= 2"), nbest(1, b"B", b"A= 1")]
    lines_by_sentence = best(lines, {"A": [1.0]})
    assert {sentence: line.hypothesis for sentence, line in lines_by_sentence.items()} == {3: b"D", 1: b"b"}
    assert list_translations(lines_by_sentence, 5) == [b"", b"b", b"", b"D", b""]


# Segments, as the decoder prints them (moses/Manager.cpp, OutputSurface), without its blank at the end of a line

SEGMENTS = {
    "one phrase": (b"a b", b"0-2=0-1", b"a b |0-2|"),
    "single words": (b"a b", b"0=0 1=1", b"a |0-0| b |1-1|"),
    "another order": (b"a b c", b"2=0 0-1=1-2", b"a |2-2| b c |0-1|"),
    "a word dropped": (b"a b", b"0=0 1=1 2=1", b"a |0-0| b |2-2|"),
    "dropped at the begin": (b"a", b"0=0-18446744073709551615 1=0", b"a |1-1|"),
    "dropped at the end": (b"a", b"0=0 1=1", b"a |0-0|"),
    "all dropped": (b"", b"0=0-18446744073709551615", b""),
    "no words": (b"", b"", b""),
    "blanks": (b"a \t b", b"0-2=0-1", b"a b |0-2|"),
    "U+00A0": ("a\u00a0b c".encode(), b"0=0 1=1", "a\u00a0b |0-0| c |1-1|".encode()),
}


@pytest.mark.parametrize(("hypothesis", "segmentation", "expected"), SEGMENTS.values(), ids=SEGMENTS)
def test_segments(hypothesis, segmentation, expected):
    lines = [nbest(1, hypothesis, b"A= 1", b" ||| %b ||| 0-0 " % segmentation)]
    assert format_segments(best(lines, {"A": [1.0]}), 3, "n") == [b"", expected, b""]


# BLEU


def of_sacrebleu(hypotheses, references):
    """BLEU of texts, words parted at blanks."""
    texts = [[text.decode() for text in texts] for texts in (hypotheses, *references)]
    return BLEU(tokenize="none", force=True, smooth_method="none").corpus_score(texts[0], texts[1:]).score


REFERENCES = [
    [b"the cat sat on the mat", b"a dog ran far away"],
    [b"the cat was on the mat", b"one dog ran far off"],
]
LISTED = [
    nbest(0, b"the cat is on mat", b"A= 3"),
    nbest(1, b"a dog ran", b"A= 1"),
    nbest(0, b"cat sat on the mat", b"A= 4"),
    nbest(0, b"the cat was on the mat", b"A= 1"),
    nbest(1, b"one dog ran far away", b"A= 2"),
    nbest(1, b"a dog ran far off away", b"A= 3"),
]
FIRST, RERANKED = [b"the cat is on mat", b"a dog ran"], [b"cat sat on the mat", b"a dog ran far off away"]


@pytest.mark.parametrize("references", [REFERENCES[:1], REFERENCES[1:], REFERENCES], ids=["one", "other", "both"])
def test_bleu_before_after_and_at_best(references):
    lines, weights = list(parse_nbest(LISTED, "n")), {"A": [1.0]}
    by_weights = list_translations(choose_hypotheses(lines, weights_of(weights), "n"), 2)
    assert by_weights == RERANKED
    first, reranked, at_best = compare_bleu(lines, references, "n", by_weights)
    assert first == pytest.approx(of_sacrebleu(FIRST, references))
    assert reranked == pytest.approx(of_sacrebleu(RERANKED, references)) != pytest.approx(first)
    of_sentences = [[line.hypothesis for line in lines if line.sentence == i] for i in range(2)]
    every_choice = [of_sacrebleu(choice, references) for choice in itertools.product(*of_sentences)]
    assert at_best == pytest.approx(max(every_choice))
    assert at_best >= max(first, reranked)


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


def test_the_even_choice_adds_a_feature_to_the_total():
    lines = list(
        parse_nbest([b"0 ||| a ||| F= -5 ||| -1\n", b"0 ||| b ||| F= -1 ||| -4\n", b"0 ||| c ||| F= 0 ||| -5\n"], "n")
    )
    assert choose_evenly(lines, "F", "n")[0].hypothesis == b"b"
