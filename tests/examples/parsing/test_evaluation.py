"""Bracket F1, UAS and LAS: by hand, against plain loops over random trees, without anything to count."""

import pytest
from dependencies import Dependencies, run_actions
from evaluation import (
    compare_attachments,
    compare_brackets,
    score_attachments,
    score_brackets,
)
from trees import format_tree, read_trees, rebuild

from moses_rnn.errors import InputError

GOLD = "(S (NP (N a)) (VP (V b) (NP (D c) (N d))) (P .))"
RIGHT = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"


def trees(*lines):
    return list(read_trees("\n".join(lines).encode(), "t"))


BRACKETS_BY_HAND = {  # output, right, written, malformed; gold has S 0-5, NP 0-1, VP 1-4, NP 2-4
    "right": (RIGHT, 4, 4, False),
    "another label": ("(S (NP XX )NP (NP XX (NP XX XX )NP )NP XX )S", 3, 4, False),
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


def test_baselines_of_brackets_by_hand():
    """Root S 0-5, 0-1 are right; of VP 1-5, 2-5, 3-5, with the commoner inner label NP, none is."""
    alone, branching = compare_brackets(trees(GOLD, "(S (VB go))", "(S (NP (N x)) (VP (V y)))"), []).rows
    assert alone == ["root alone", 0, 1, 3 / 8, 6 / 11, 1 / 3]
    assert branching == ["right-branching", 0, 1 / 2, 3 / 8, 3 / 7, 1 / 3]
    whole = compare_brackets(trees("(S (A a) (S (A b) (A c)))"), []).rows[1]
    assert whole == ["right-branching", 0, 1, 1, 1, 1]


TREEBANK = b"""\
( (S (NP-SBJ-1 (DT the) (NN dog))
     (VP (VBZ wants)
         (S (NP-SBJ (-NONE- *-1))
            (VP (TO to) (VP (VB bark)))))) )
( (S (NP-SBJ (-NONE- *))
     (VP (VB stop) (NP (-NONE- *?*)))
     (-RRB- -RRB-)) )
"""


def test_gold_trees_are_perfect_as_they_are_and_linearised():
    gold = list(read_trees(TREEBANK, "gold"))
    linearised = [b" ".join(tree.tokens) for tree in gold]
    rebuilt = [format_tree(rebuild(line.split(), tree.words).tree) for line, tree in zip(linearised, gold, strict=True)]
    outputs = [("itself", TREEBANK.splitlines()), ("linearised", linearised), ("rebuilt", rebuilt)]
    assert [row[1:] for row in compare_brackets(gold, outputs).rows[:3]] == 3 * [[0, 1, 1, 1, 1]]


def test_a_bracketed_output_needs_as_many_trees():
    with pytest.raises(InputError, match="it: expected a line for each of 2 trees, found 1"):
        compare_brackets(list(read_trees(TREEBANK, "gold")), [("it", TREEBANK.splitlines()[:4])])


def test_trees_without_words_and_without_brackets_have_no_figures():
    table = compare_brackets(trees("( )", "(N dog)"), [("it", [b"", b"XX"])])
    assert table.rows[0] == ["it", 0, None, None, None, 1]
    assert str(table).splitlines()[2].split() == ["it", "0.00", "-", "-", "-", "100.00"]


def test_several_trees_in_place_of_one_are_malformed_unless_gold():
    several = b"(S XX )S (X XX )X"
    gold = trees("( (S (N a)) (X (N b)))", "(S (N a) (N b))")
    right, wrong = compare_brackets(gold, [("it", [several, b"(S XX XX )S"]), ("other", [several, several])]).rows[:2]
    assert right == ["it", 0, 1, 1, 1, 1]
    assert wrong[:2] == ["other", 1 / 2]


SENTENCE = Dependencies((b"a", b"dog", b"sleeps", b"."), (2, 3, 0, 3), (b"det", b"nsubj", b"root", b"punct"))
ATTACHMENTS_BY_HAND = {  # actions, malformed, skipped, left over, heads, labelled
    "right": ("SH SH LA:det SH LA:nsubj SH RA:punct RA:root", 0, 0, 0, 4, 4),
    "another relation": ("SH SH LA:amod SH LA:nsubj SH RA:punct RA:root", 0, 0, 0, 4, 3),
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


def test_baselines_of_attachments_by_hand():
    """The commonest inner relation is det of det, det, nsubj, punct; heads before: 0 1 2 3, behind: 2 3 4 0."""
    other = Dependencies((b"the", b"cat"), (2, 0), (b"det", b"root"))
    before, behind = compare_attachments([SENTENCE, other], []).rows
    assert before == ["on the word before", 0, 0, 0, 1 / 6, 0, 0]
    assert behind == ["on the next word", 0, 0, 0, 2 / 3, 1 / 2, 1 / 2]
