"""Arc-standard actions: of every small tree and back, of drawn long ones, and whatever else a network may write."""

import random

import pytest

from moses_rnn.analysis.conllu import Dependencies
from moses_rnn.analysis.transitions import find_actions, run_actions
from tests.analysis.random_dependencies import LABELS, all_heads, is_projective, sentence

WORDS = (b"a", b"dog", b"sleeps")
TREE = Dependencies(WORDS, (2, 3, 0), (b"det", b"nsubj", b"root"))


def test_a_sentence_by_hand():
    assert find_actions(TREE) == [b"SH", b"SH", b"LA:det", b"SH", b"LA:nsubj", b"RA:root"]
    right = Dependencies((b"see", b"old", b"dogs", b"now"), (0, 3, 1, 1), (b"root", b"amod", b"obj", b"advmod"))
    assert find_actions(right) == b"SH SH SH LA:amod RA:obj SH RA:advmod RA:root".split()


@pytest.mark.parametrize(("count", "trees", "projective"), [(1, 1, 1), (2, 3, 3), (3, 16, 12), (4, 125, 55), (5, 1296, 273), (6, 16807, 1428)])  # fmt: skip
def test_every_projective_tree_of_six_words_and_no_other_has_its_actions(count, trees, projective):
    """(n+1)^(n-1) trees, by Cayley; projective ones are the ternary trees, 1, 3, 12, 55 …"""
    counted = []
    for heads in all_heads(count):
        tree = sentence(heads)
        actions = find_actions(tree)
        assert (actions is not None) == is_projective(heads), heads
        counted.append(actions is not None)
        if actions is not None:
            assert (len(actions), actions.count(b"SH")) == (2 * count, count)
            assert run_actions(actions, tree.words) == (tree, 0, 0)
    assert (len(counted), sum(counted)) == (trees, projective)


def test_any_order_of_actions_makes_a_tree_that_has_actions():
    drawn = random.Random(3)
    for _ in range(300):
        count = drawn.randint(7, 30)
        words = tuple(b"w%d" % i for i in range(count))
        wanted = [b"SH"] * count + [drawn.choice([b"LA:", b"RA:"]) + drawn.choice(LABELS) for _ in range(2 * count)]
        made = run_actions(drawn.sample(wanted, len(wanted)), words).sentence
        assert is_projective(made.heads)
        actions = find_actions(made)
        assert len(actions) == 2 * count
        assert run_actions(actions, words) == (made, 0, 0)


def test_no_words_take_no_actions():
    none = Dependencies((), (), ())
    assert (find_actions(none), run_actions([], [])) == ([], (none, 0, 0))
    assert not run_actions([], []).malformed


EXECUTED = {  # actions, heads, labels, skipped, left over
    "right": ("SH SH LA:det SH LA:nsubj RA:root", (2, 3, 0), "det nsubj root", 0, 0),
    "nothing": ("", (0, 0, 0), "dep dep dep", 0, 3),
    "words left in the text": ("SH SH LA:det", (2, 0, 0), "det dep dep", 0, 2),
    "words left on the stack": ("SH SH SH LA:x", (0, 3, 0), "dep x dep", 0, 2),
    "too many words": ("SH SH SH SH RA:a RA:b RA:c", (0, 1, 2), "c b a", 1, 0),
    "the root as a dependent": ("SH LA:x RA:r SH RA:r SH RA:r", (0, 0, 0), "r r r", 1, 0),
    "an empty stack": ("RA:x LA:x SH RA:r RA:r SH RA:r SH RA:r", (0, 0, 0), "r r r", 3, 0),
    "other tokens": ("SH <unk> sh SH LA: LA:det RA SH LA:nsubj RA: RA:root XX", (2, 3, 0), "det nsubj root", 6, 0),
    "a label with a colon": ("SH SH LA:a:b SH LA::c RA:root", (2, 3, 0), "a:b :c root", 0, 0),
}


@pytest.mark.parametrize("case", EXECUTED)
def test_whatever_is_written_becomes_a_tree(case):
    actions, heads, labels, skipped, left_over = EXECUTED[case]
    execution = run_actions(actions.encode().split(), WORDS)
    assert execution.sentence == Dependencies(WORDS, heads, tuple(labels.encode().split()))
    assert execution[1:] == (skipped, left_over)
    assert execution.malformed == (case not in {"right", "a label with a colon"})
