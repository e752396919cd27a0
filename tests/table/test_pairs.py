"""Phrases of a text are a sequence like a list of them, and pairs have as many of each."""

import numpy as np
import pytest

from moses_rnn.table.table_blocks import Pairs, TextPhrases

LIST = [b"a b", b"", b"c", b"\xff\0", b"d"]


@pytest.fixture
def phrases():
    text = b"a b|c|\xff\0|d"
    return TextPhrases(text, np.array([0, 2, 4, 6, 9]), np.array([3, 2, 5, 8, 10]))


def test_it_is_like_a_list(phrases):
    assert len(phrases) == 5
    assert list(phrases) == LIST
    assert [phrases[i] for i in range(-5, 5)] == LIST * 2
    assert b"c" in phrases
    assert phrases.index(b"d") == 4
    with pytest.raises(IndexError):
        phrases[5]


def test_any_phrases_can_be_laid_end_to_end(phrases):
    assert TextPhrases.of(phrases) is phrases
    laid = TextPhrases.of(LIST)
    assert (laid.text, laid.begins.tolist(), laid.ends.tolist()) == (
        b"a bc\xff\0d",
        [0, 3, 3, 4, 6],
        [3, 3, 4, 6, 7],
    )
    assert len(TextPhrases.of([])) == 0


def test_pairs_have_as_many_of_each():
    pairs = Pairs.of(iter([(b"a", b"x"), (b"b", b"y")]))
    assert (len(pairs), pairs.sides(inverse=False), pairs.sides(inverse=True)) == (
        2,
        ([b"a", b"b"], [b"x", b"y"]),
        ([b"x", b"y"], [b"a", b"b"]),
    )
    for targets, alignments in (([b"x"], None), ([b"x", b"y"], [b"0-0"])):
        with pytest.raises(ValueError, match=r"expected as many \w+ as sources, found 1 and 2"):
            Pairs([b"a", b"b"], targets, alignments)
