"""Lists and weights as numbers, and the best hypotheses by them."""

import itertools
import math

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from moses_rnn.errors import FormatError, InputError
from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.nbest.bleu import corpus_bleu, smoothed_bleu
from moses_rnn.nbest.lists import Features, bleu_of, choose, model_scores, statistics_of
from moses_rnn.nbest.mert import search_line
from moses_rnn.nbest.rerank import (
    WeightedSum,
    choose_hypotheses,
    compare_bleu,
    find_oracle,
    format_segments,
    list_translations,
    score_evenly,
)
from moses_rnn.nbest.tune import tune
from moses_rnn.nbest.weights import format_ini, read_weights, unused_weights
from tests.nbest.lists import BAD, GOOD, LINES, NAMES, SPARSE, listed, nbest, plain_bleu, random_list, read, weights_of


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


def test_a_line_that_repeats_a_feature_is_refused():
    lines = parse_nbest([b"0 ||| a ||| A= 1 2 B= 3 ||| 1\n", b"0 ||| b ||| A= 1 B= 9 A= 2 ||| 1\n"], "l")
    values = Features(next(lines), "l", None).values
    with pytest.raises(FormatError, match="l:2: expected each feature once, found A twice"):
        values(next(lines))


def test_a_sentence_without_a_line_counts_as_an_empty_translation():
    points = read([LINES[1]])
    assert points.missing == (0,)
    assert points.statistics[0].tolist() == [[0, 4, 0, 0, 0, 0, 0, 0, 0, 0]]
    assert choose(points, [1, 1, 1]).tolist() == [0, 0]


def test_sparse_features_with_weights_are_one_feature():
    weights = {"LM0_a": 0.5, "TM0_x|y": 3.0}
    points = read(SPARSE, sparse_weights=weights)
    assert points.names == ("LM0_0", "Sparse_0")
    assert points.features[0].tolist() == [[-4, 0.5 * 2 + 3 * -1], [-5, 0.5 * 1 + 0.5 * 3]]
    assert read(SPARSE, sparse_weights={"LM0_a": 0.5}).features[0].tolist() == [[-4, 1], [-5, 2]]
    assert read(SPARSE, sparse_weights={}).names == ("LM0_0",)
    assert format_ini(points.names, [0.5, 0.25], weights) == b"[weight]\nLM0= 0.5\nLM0_a= 0.125\nTM0_x|y= 0.75\n"


def test_sparse_features_count_in_reranking():
    weights = weights_of({"LM0": [1.0], "LM0_a": [0.5], "TM0_x|y": [3.0]})
    scores = [score for score, _ in WeightedSum("n", weights).score(parse_nbest(SPARSE, "n"))]
    assert scores == [-4 + 0.5 * 2 + 3 * -1, -5 + 0.5 * 1 + 0.5 * 3]


@pytest.mark.parametrize(("features", "weight"), [(b"A= 1 A_b= 1", math.nan), (b"A= 1 A_b= 1 2", 1.0)])
def test_a_sparse_feature_has_one_value_and_one_weight(features, weight):
    with pytest.raises(FormatError, match="n:1: expected "):
        read([nbest(features)], sparse_weights={"A_b": weight})


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
    tuned = [tune(either, [1, 0, 0], seed=1, restarts=2).tolist() for either in (padded, points)]
    assert tuned[0] == tuned[1]
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
    assert bleu_of(points, tune(points, [-1], seed=1, restarts=1)) == pytest.approx(math.exp(-1))
    assert find_oracle(points).tolist() == [1, 0]


INI = b"""[feature]
PhraseDictionaryMemory name=TM0 num-features=3 path=pt tuneable-components=1,No,TRUE
UnknownWordPenalty
LexicalReordering num-features=2 tuneable-components=0,1 # unnamed: LexicalReordering0
[weight-file]
sparse # of the decoder
[weight-add]
Old0= 7
[weight]
TM0= 9 9 9
TM0= 0.1 0.2 0.3
LexicalReordering0= 5 6
Both_x= 0.5
Two_x= 1 2
[weight-overwrite]
TM0= x 0.25 x LM0= 4
"""
SPARSE_FILE = b"# sparse\n\nBoth_x -9\nFile_\xe9|y\t1e-3\r\nLM0 8\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "moses.ini").write_bytes(INI)
    (tmp_path / "sparse").write_bytes(SPARSE_FILE)
    return tmp_path


def test_dense_weights_are_moses_s(folder):
    weights = read_weights(str(folder / "moses.ini"))
    assert weights.dense == {"Old0": [7], "TM0": [0.1, 0.25, 0.3], "LexicalReordering0": [5, 6], "LM0": [4]}
    assert weights.of("TM0", 3) == [0.1, 0.25, 0.3]
    assert (weights.of("TM0", 2), weights.of("LexicalReordering0", 1)) == ([0.1, 0.3], [6])  # what a list shows
    for label, count in (("TM0", 1), ("LexicalReordering0", 3), ("None0", 1)):
        with pytest.raises(
            InputError, match=f"moses.ini: expected {count} weights? of {label}, as many as values in the list"
        ):
            weights.of(label, count)


def test_sparse_weights_come_from_either_place_and_the_ini_wins(folder):
    ini = str(folder / "moses.ini")
    assert read_weights(ini).sparse == pytest.approx(
        {"Both_x": 0.5, "Two_x": float("nan"), "File_\udce9|y": 1e-3}, nan_ok=True
    )


def test_sparse_features_that_are_not_tuneable_are_not_in_lists(tmp_path):
    ini = tmp_path / "moses.ini"
    ini.write_text("[feature]\nA name=A0\nB name=B0 tuneable=false\n[weight]\nA0_x= 1\nB0_x= 2\nB0_y= 0\n")
    weights = read_weights(str(ini))
    assert (weights.sparse, weights.declared) == ({"A0_x": 1}, ["A0", "B0"])
    assert unused_weights(["A0_0"], weights) == ["B0 (sparse)"]


def best(lines):
    weights = weights_of({"A": [1.0], "B": [0.5], "C": [0.0], "UnknownWordPenalty0": [1.0]})
    scoring = WeightedSum("n", weights)
    best = choose_hypotheses(scoring.score(parse_nbest(lines, "n")), "n")
    assert scoring.unused == ["B"]
    return best


def test_lines_of_a_sentence_need_not_follow_each_other_and_sentences_may_be_missing():
    lines = [nbest(b"A= 1", b"d", 3), nbest(b"A= 1", b"b", 1), nbest(b"A= 2", b"D", 3), nbest(b"A= 1", b"B", 1)]
    lines_by_sentence = best(lines)
    assert {sentence: line.hypothesis for sentence, line in lines_by_sentence.items()} == {3: b"D", 1: b"b"}
    assert list_translations(lines_by_sentence, 5) == [b"", b"b", b"", b"D", b""]


# As the decoder prints them (moses/Manager.cpp, OutputSurface), without its blank at the end of a line

SEGMENTS = {
    "one phrase": (b"a b", b"0-2=0-1", b"a b |0-2|"),
    "another order": (b"a b c", b"2=0 0-1=1-2", b"a |2-2| b c |0-1|"),
    "a word dropped": (b"a b", b"0=0 1=1 2=1", b"a |0-0| b |2-2|"),
    "all dropped": (b"", b"0=0-18446744073709551615", b""),
    "no words": (b"", b"", b""),
    "U+00A0": ("a\u00a0b c".encode(), b"0=0 1=1", "a\u00a0b |0-0| c |1-1|".encode()),
}


@pytest.mark.parametrize(("hypothesis", "segmentation", "expected"), SEGMENTS.values(), ids=SEGMENTS)
def test_segments(hypothesis, segmentation, expected):
    lines = [nbest(b"A= 1", hypothesis, 1, b"0 ||| %b ||| 0-0" % segmentation)]
    assert format_segments(best(lines), 3, "n") == [b"", expected, b""]


def of_sacrebleu(hypotheses, references):
    texts = [[text.decode() for text in texts] for texts in (hypotheses, *references)]
    return BLEU(tokenize="none", force=True, smooth_method="none").corpus_score(texts[0], texts[1:]).score


REFERENCES = [[b"the cat sat on the mat", b"a dog ran far away"], [b"the cat was on the mat", b"one dog ran far off"]]
LISTED = [
    nbest(b"A= 3", b"the cat is on mat", 0),
    nbest(b"A= 1", b"a dog ran", 1),
    nbest(b"A= 4", b"cat sat on the mat", 0),
    nbest(b"A= 1", b"the cat was on the mat", 0),
    nbest(b"A= 2", b"one dog ran far away", 1),
    nbest(b"A= 3", b"a dog ran far off away", 1),
]
FIRST, RERANKED = [b"the cat is on mat", b"a dog ran"], [b"cat sat on the mat", b"a dog ran far off away"]


@pytest.mark.parametrize("references", [REFERENCES[:1], REFERENCES[1:], REFERENCES], ids=["one", "other", "both"])
def test_bleu_before_after_and_at_best(references):
    lines = list(parse_nbest(LISTED, "n"))
    assert list_translations(best(LISTED), 2) == RERANKED
    first, reranked, at_best = compare_bleu(lines, references, "n", RERANKED)
    assert first == pytest.approx(of_sacrebleu(FIRST, references))
    assert reranked == pytest.approx(of_sacrebleu(RERANKED, references)) != pytest.approx(first)
    of_sentences = [[line.hypothesis for line in lines if line.sentence == i] for i in range(2)]
    every_choice = [of_sacrebleu(choice, references) for choice in itertools.product(*of_sentences)]
    assert at_best == pytest.approx(max(every_choice))
    assert at_best >= max(first, reranked)


def test_the_oracle_is_found_approximately_and_never_below_a_choice():
    hypotheses = [b"d a b a b", b"d a a b a d"], [b"b c b b b b a a c", b"c c b b a a c"]
    references = [[b"d a a b a b", b"c b b b a a c"]]
    listed = [(i, text) for i, texts in enumerate(hypotheses) for text in texts]
    lines = list(parse_nbest([b"%d ||| %b ||| A= 1 ||| 1\n" % one for one in listed], "n"))
    chosen = [hypotheses[0][0], hypotheses[1][1]]
    for choice in (chosen, [texts[0] for texts in hypotheses]):
        _, reranked, at_best = compare_bleu(lines, references, "n", choice)
        assert at_best >= reranked


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
    assert choose_hypotheses(score_evenly(lines, "F", "n"), "n")[0].hypothesis == b"b"
