"""Bracket F1, UAS and LAS: by hand, against plain loops over random trees, without anything to count."""

import random
from itertools import pairwise

import pytest

from moses_rnn.analysis.dependencies import Dependencies, Execution, run_actions
from moses_rnn.analysis.parses import compare_attachments, compare_brackets, score_attachments, score_brackets
from moses_rnn.analysis.trees import Rebuilt, read_trees, rebuild
from tests.analysis.random_dependencies import LABELS, random_heads, sentence
from tests.analysis.random_trees import bracketed, leaves_of, random_tree, spans

GOLD = "(S (NP (N a)) (VP (V b) (NP (D c) (N d))) (P .))"
RIGHT = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"


def trees(*lines):
    return list(read_trees([line.encode() for line in lines], "t"))


BRACKETS_BY_HAND = {  # output, right, written, malformed; gold has S 0-5, NP 0-1, VP 1-4, NP 2-4
    "right": (RIGHT, 4, 4, False),
    "another label": ("(S (NP XX )NP (NP XX (NP XX XX )NP )NP XX )S", 3, 4, False),
    "another end": ("(S (NP XX )NP (VP XX (NP XX XX XX )NP )VP )S", 2, 4, False),
    "the root alone": ("(S XX XX XX XX XX )S", 1, 1, False),
    "a bracket twice": ("(S (NP XX )NP (VP XX (NP (NP XX XX )NP )NP )VP XX )S", 4, 5, False),
    "another closer": ("(S (NP XX )NP (VP XX (NP XX XX )VP )NP XX )S", 4, 4, True),
    "no end": ("(S (NP XX )NP (VP XX (NP XX XX", 4, 4, True),  # the word that is missing comes before )S
    "too few words": ("(S (NP XX )NP (VP XX )VP )S", 2, 3, True),
    "nothing": ("", 0, 0, True),
}


@pytest.mark.parametrize("case", BRACKETS_BY_HAND)
def test_brackets_by_hand(case):
    written, right, brackets, malformed = BRACKETS_BY_HAND[case]
    (tree,) = trees(GOLD)
    precision, f1 = right / brackets if brackets else None, 2 * right / (brackets + 4)
    output = rebuild(written.encode().split(), tree.words)
    assert score_brackets([tree], [output]) == [malformed, precision, right / 4, f1, right == brackets == 4]


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
    """Figures are of all brackets, not means of the sentences' own."""
    drawn = random.Random(1)
    by_words = sorted((random_tree(drawn, 3) for _ in range(300)), key=lambda tree: len(leaves_of(tree)))
    pairs = [pair for pair in pairwise(by_words) if len({len(leaves_of(tree)) for tree in pair}) == 1]
    assert len(pairs) > 150
    gold, others = zip(*pairs, strict=True)
    outputs = [Rebuilt(tree, False) for tree in trees(*map(bracketed, others))]
    figures = score_brackets(trees(*map(bracketed, gold)), outputs)[1:4]
    assert figures == pytest.approx(plain_figures(gold, others), rel=1e-12)
    assert 0 < figures[2] < 1


def test_baselines_of_brackets_by_hand():
    """Root S 0-5, 0-1 are right; of VP 1-5, 2-5, 3-5, with the commoner inner label NP, none is."""
    alone, branching = compare_brackets(trees(GOLD, "(S (VB go))", "(S (NP (N x)) (VP (V y)))"), {}).rows
    assert alone == ["root alone", "0.00", "100.00", "37.50", "54.55", "33.33"]
    assert branching == ["right-branching", "0.00", "50.00", "37.50", "42.86", "33.33"]
    whole = compare_brackets(trees("(S (A a) (S (A b) (A c)))"), {}).rows[1]
    assert whole == ["right-branching", "0.00", *["100.00"] * 4]


def test_trees_without_words_and_without_brackets_have_no_figures():
    grid = compare_brackets(trees("( )", "(N dog)"), {"it": [b"", b"XX"]})
    assert grid.rows[0] == ["it", "0.00", None, None, None, "100.00"]


SENTENCE = Dependencies((b"a", b"dog", b"sleeps", b"."), (2, 3, 0, 3), (b"det", b"nsubj", b"root", b"punct"))
ATTACHMENTS_BY_HAND = {  # actions, malformed, skipped, left over, heads, labelled
    "right": ("SH SH LA:det SH LA:nsubj SH RA:punct RA:root", 0, 0, 0, 4, 4),
    "another relation": ("SH SH LA:amod SH LA:nsubj SH RA:punct RA:root", 0, 0, 0, 4, 3),
    "another order": ("SH SH LA:det SH SH RA:punct LA:nsubj RA:root", 0, 0, 0, 4, 4),
    "another head": ("SH SH SH LA:nsubj LA:det SH RA:punct RA:root", 0, 0, 0, 3, 3),
    "skipped": ("LA:x SH SH LA:det SH LA:nsubj SH RA:punct RA:root SH", 1, 2, 0, 4, 4),
    "left over": ("SH SH LA:det SH LA:nsubj", 1, 0, 2, 3, 2),  # the verb hangs on the root, but as dep
    "nothing": ("", 1, 0, 4, 1, 0),
}


@pytest.mark.parametrize("case", ATTACHMENTS_BY_HAND)
def test_attachments_by_hand(case):
    actions, malformed, skipped, left_over, heads, labelled = ATTACHMENTS_BY_HAND[case]
    output = run_actions(actions.encode().split(), SENTENCE.words)
    expected = [malformed, skipped, left_over, heads / 4, labelled / 4, labelled == 4]
    assert score_attachments([SENTENCE], [output]) == expected


def test_random_dependencies_against_plain_loops():
    """By words, not means of sentences."""
    drawn = random.Random(1)
    gold, others, words, unlabelled, both = [], [], 0, 0, 0
    for _ in range(200):
        count = drawn.randint(1, 9)
        pair = [sentence(random_heads(drawn, count), drawn.choices(LABELS, k=count)) for _ in range(2)]
        gold.append(pair[0])
        others.append(Execution(pair[1], 0, 0))
        for i in range(count):
            words += 1
            if pair[0].heads[i] == pair[1].heads[i]:
                unlabelled += 1
                if pair[0].labels[i] == pair[1].labels[i]:
                    both += 1
    *_, uas, las, whole = score_attachments(gold, others)
    assert (uas, las) == (unlabelled / words, both / words)
    assert 0 < whole < las < uas < 1
    assert score_attachments(gold, [Execution(tree, 0, 0) for tree in gold])[-1] == 1


def test_baselines_of_attachments_by_hand():
    """The commonest inner relation is det of det, det, nsubj, punct; heads before: 0 1 2 3, behind: 2 3 4 0."""
    other = Dependencies((b"the", b"cat"), (2, 0), (b"det", b"root"))
    before, behind = compare_attachments([SENTENCE, other], {}).rows
    assert before == ["on the word before", "0.00", 0, 0, "16.67", "0.00", "0.00"]
    assert behind == ["on the next word", "0.00", 0, 0, "66.67", "50.00", "50.00"]
