"""UAS and LAS: by hand, against plain loops over random trees, without anything to count."""

import random

import pytest

from moses_rnn.analysis.attachments import AttachmentScores, as_grid, compare_attachments, score_attachments
from moses_rnn.formats.conllu import Dependencies
from moses_rnn.formats.transitions import Execution
from tests.formats.random_dependencies import LABELS, random_heads, sentence

GOLD = Dependencies((b"a", b"dog", b"sleeps", b"."), (2, 3, 0, 3), (b"det", b"nsubj", b"root", b"punct"))

BY_HAND = {  # actions, malformed, skipped, left over, heads, labelled
    "right": ("SH SH LA:det SH LA:nsubj SH RA:punct RA:root", 0, 0, 0, 4, 4),
    "another relation": ("SH SH LA:amod SH LA:nsubj SH RA:punct RA:root", 0, 0, 0, 4, 3),
    "another order": ("SH SH LA:det SH SH RA:punct LA:nsubj RA:root", 0, 0, 0, 4, 4),
    "another head": ("SH SH SH LA:nsubj LA:det SH RA:punct RA:root", 0, 0, 0, 3, 3),
    "skipped": ("LA:x SH SH LA:det SH LA:nsubj SH RA:punct RA:root SH", 1, 2, 0, 4, 4),
    "left over": ("SH SH LA:det SH LA:nsubj", 1, 0, 2, 3, 2),  # the verb hangs on the root, but as dep
    "nothing": ("", 1, 0, 4, 1, 0),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_attachments_by_hand(case):
    actions, malformed, skipped, left_over, heads, labelled = BY_HAND[case]
    scores = compare_attachments([GOLD], {"it": [actions.encode()]})["it"]
    expected = AttachmentScores(1, 4, malformed, skipped, left_over, heads, labelled, labelled == 4)
    assert scores == expected
    assert (scores.uas, scores.las) == (heads / 4, labelled / 4)


def test_random_trees_against_plain_loops():
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
    scores = score_attachments(gold, others)
    assert (scores.uas, scores.las, scores.words) == (unlabelled / words, both / words, words)
    assert 0 < scores.las < scores.uas < 1
    assert score_attachments(gold, [Execution(tree, 0, 0) for tree in gold]).whole == 200


def test_the_baselines_by_hand():
    """The commonest inner relation is det of det, det, nsubj, punct; heads before: 0 1 2 3, behind: 2 3 4 0."""
    other = Dependencies((b"the", b"cat"), (2, 0), (b"det", b"root"))
    scores = compare_attachments([GOLD, other], {})
    assert scores["on the word before"] == AttachmentScores(2, 6, 0, 0, 0, 1, 0, 0)
    assert scores["on the next word"] == AttachmentScores(2, 6, 0, 0, 0, 4, 3, 1)


def test_sentences_without_words_have_no_figures():
    none = Dependencies((), (), ())
    scores = compare_attachments([none], {"it": [b""]})
    assert (scores["it"].uas, scores["it"].las, scores["it"].malformed) == (None, None, 0)
    assert as_grid(scores).rows[0] == ["it", "0.00", 0, 0, None, None, "100.00"]
