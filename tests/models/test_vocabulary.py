"""Shortlists by frequency, their files, and words that are not in them."""

import pytest

from moses_rnn.errors import CheckpointError
from moses_rnn.models.vocabulary import Vocabulary, coverage, shortlist

COUNTS = {b"de": 5, b"la": 5, b"x": 1, b"chat": 3, b"\xff": 9, b"</s>": 7, b"<unk>": 7, b"\xe2\x80\xa8": 2}


def test_a_shortlist_is_by_frequency_then_bytes_without_special_or_undecodable_words():
    assert shortlist(COUNTS, 4).words == [b"<unk>", b"</s>", b"de", b"la", b"chat", b"\xe2\x80\xa8"]
    assert shortlist(COUNTS, 99).words[-1] == b"x"


def test_other_words_are_unknown_and_a_spelled_out_end_symbol_is_no_end():
    assert shortlist(COUNTS, 3).ids([b"la", b"x", b"</s>", b"<unk>", b"chat"]) == [3, 0, 0, 0, 4]


def test_a_file_keeps_words_with_line_separators_whole():
    vocabulary = Vocabulary([b"<unk>", b"</s>", b"\xe2\x80\xa8", b"a\rb", b"\xc2\x85"])
    assert vocabulary.to_bytes() == b"<unk>\n</s>\n\xe2\x80\xa8\na\rb\n\xc2\x85\n"
    assert Vocabulary.from_bytes(vocabulary.to_bytes()).words == vocabulary.words


def test_coverage_is_the_share_of_running_words():
    assert coverage({b"a": 3, b"b": 1}, Vocabulary([b"<unk>", b"</s>", b"a"])) == 3 / 4
    assert coverage({}, Vocabulary([b"<unk>", b"</s>"])) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([b"</s>", b"<unk>"], "expected a vocabulary to begin with <unk> and </s>, found"),
        ([b"<unk>"], "expected a vocabulary to begin with <unk> and </s>, found"),
        ([b"<unk>", b"</s>", b"a", b"b", b"a"], "expected each word of a vocabulary once, found b'a' again"),
    ],
)
def test_refuses_other_lists(words, message):
    with pytest.raises(CheckpointError, match=message):
        Vocabulary(words)
