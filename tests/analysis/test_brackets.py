"""Bracket F1: by hand, against plain loops over random trees, without anything to count."""

import random
from itertools import pairwise

import pytest

from moses_rnn.analysis.brackets import BracketScores, as_grid, compare_brackets, score_brackets
from moses_rnn.formats.trees import Rebuilt, read_trees, rebuild
from tests.formats.random_trees import bracketed, leaves_of, random_tree, spans

GOLD = "(S (NP (N a)) (VP (V b) (NP (D c) (N d))) (P .))"
RIGHT = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"


def trees(*lines):
    return list(read_trees([line.encode() for line in lines], "t"))


BY_HAND = {  # output, right, written, malformed; gold has S 0-5, NP 0-1, VP 1-4, NP 2-4
    "right": (RIGHT, 4, 4, False),
    "another label": ("(S (NP XX )NP (NP XX (NP XX XX )NP )NP XX )S", 3, 4, False),
    "another end": ("(S (NP XX )NP (VP XX (NP XX XX XX )NP )VP )S", 2, 4, False),
    "the root alone": ("(S XX XX XX XX XX )S", 1, 1, False),
    "a bracket twice": ("(S (NP XX )NP (VP XX (NP (NP XX XX )NP )NP )VP XX )S", 4, 5, False),
    "another closer": ("(S (NP XX )NP (VP XX (NP XX XX )VP )NP XX )S", 4, 4, True),
    "no end": ("(S (NP XX )NP (VP XX (NP XX XX", 4, 4, True),  # the word that is missing comes before )S
    "nothing": ("", 0, 0, True),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_brackets_by_hand(case):
    written, right, brackets, malformed = BY_HAND[case]
    scores = compare_brackets(trees(GOLD), {"it": [written.encode()]})["it"]
    assert scores == BracketScores(1, malformed, right == brackets == 4, right, brackets, 4)


def test_figures_of_several_sentences_are_of_all_their_brackets():
    """Not means of the sentences' own: 4 + 1 right of 4 + 1 and of 4 + 4."""
    scores = compare_brackets(trees(GOLD, GOLD), {"it": [RIGHT.encode(), b"(S XX XX XX XX XX )S"]})["it"]
    assert (scores.precision, scores.recall, scores.f1) == (1, 5 / 8, 10 / 13)


def plain_figures(gold, others):
    """Precision, recall and F1 from the definition: each bracket strikes out one that is equal to it."""
    right = written = wanted = 0
    for tree, other in zip(gold, others, strict=True):
        left = spans(tree)
        wanted += len(left)
        for span in spans(other):
            written += 1
            if span in left:
                left.remove(span)
                right += 1
    precision, recall = right / written, right / wanted
    return precision, recall, 2 * precision * recall / (precision + recall)


def test_random_trees_against_plain_loops():
    drawn = random.Random(1)
    by_words = sorted((random_tree(drawn, 3) for _ in range(300)), key=lambda tree: len(leaves_of(tree)))
    pairs = [pair for pair in pairwise(by_words) if len({len(leaves_of(tree)) for tree in pair}) == 1]
    assert len(pairs) > 150
    gold, others = zip(*pairs, strict=True)
    outputs = [Rebuilt(tree, False) for tree in trees(*map(bracketed, others))]
    scores = score_brackets(trees(*map(bracketed, gold)), outputs)
    plain = plain_figures(gold, others)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(plain, rel=1e-12)
    assert 0 < scores.f1 < 1


def test_the_baselines_by_hand():
    """Root S 0-5, 0-1 are right; of VP 1-5, 2-5, 3-5, with the commoner inner label NP, none is."""
    scores = compare_brackets(trees(GOLD, "(S (VB go))", "(S (NP (N x)) (VP (V y)))"), {})
    assert scores["root alone"] == BracketScores(3, 0, 1, 3, 3, 8)
    assert scores["right-branching"] == BracketScores(3, 0, 1, 3, 6, 8)
    branching = compare_brackets(trees("(S (A a) (S (A b) (A c)))"), {})["right-branching"]
    assert (branching.whole, branching.f1, branching.malformed) == (1, 1, 0)


def test_trees_without_words_and_without_brackets_have_no_figures():
    gold = trees("( )", "(N dog)")
    scores = compare_brackets(gold, {"it": [b"", b"XX"]})
    assert (scores["it"].precision, scores["it"].recall, scores["it"].f1) == (None, None, None)
    assert (scores["it"].malformed, scores["it"].whole) == (0, 2)
    assert as_grid(scores).rows[0] == ["it", "0.00", None, None, None, "100.00"]


def test_what_is_repaired_counts_as_it_is_then():
    gold = trees(GOLD)
    output = rebuild(b"(S (NP XX )NP (VP XX )VP )S".split(), gold[0].words)
    assert score_brackets(gold, [output]) == BracketScores(1, 1, 0, 2, 3, 4)
