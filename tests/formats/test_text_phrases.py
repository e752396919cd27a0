"""Phrases that lie within a text are a sequence like a list of them."""

import numpy as np
import pytest

from moses_rnn.formats.text_phrases import AlignedPhrases, TextPhrases

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
    assert TextPhrases.of([]) == []


def test_aligned_phrases_are_phrases_that_know_their_links():
    asked = []
    phrases = AlignedPhrases([b"a b", b"", b"c"], lambda: asked.append(1) or [b"0-0", b"", b"0-1"])
    assert phrases == [b"a b", b"", b"c"]
    assert TextPhrases.of(phrases) is phrases
    assert not asked
    assert phrases.alignments() == [b"0-0", b"", b"0-1"]
    assert not isinstance(phrases[1:], AlignedPhrases)
