"""Shortlists by frequency, their files, and words that are not in them."""

import pytest

from moses_rnn.errors import CheckpointError
from moses_rnn.networks.vocabulary import Vocabulary, coverage, shortlist

NO_WORDS = [b"", b"a b", b"a\tb", b"\xff", b"caf\xe9", b"a|||b", b"\0", b"a\x0bb", b"\x1b[31m", b"\x7f"]
COUNTS = {b"de": 5, b"la": 5, b"x": 1, b"chat": 3, b"</s>": 7, b"<unk>": 7, b"\xe2\x80\xa8": 2}
COUNTS |= dict.fromkeys(NO_WORDS, 9)


def test_a_shortlist_is_by_frequency_then_bytes_without_special_words_and_what_is_no_word():
    assert shortlist(COUNTS, 4).words == [b"<unk>", b"</s>", b"de", b"la", b"chat", b"\xe2\x80\xa8"]
    assert shortlist(COUNTS, 99).words[-1] == b"x"


def test_other_words_are_unknown_and_a_spelled_out_end_symbol_is_no_end():
    assert shortlist(COUNTS, 3).ids([b"la", b"x", b"</s>", b"<unk>", b"chat"]) == [3, 0, 0, 0, 4]


def test_a_file_keeps_whole_the_words_that_other_tools_would_part():
    words = ["\u2028", "\u0085", "10\u00a0km", "a\u3000b", "\ufeff", "a|b||c", "[X,1]", "&#124;"]
    vocabulary = Vocabulary([b"<unk>", b"</s>", *(word.encode() for word in words)])
    assert vocabulary.to_bytes().decode() == "\n".join(["<unk>", "</s>", *words, ""])
    assert Vocabulary.from_bytes(vocabulary.to_bytes()).words == vocabulary.words


def test_coverage_is_the_share_of_running_words():
    assert coverage({b"a": 3, b"b": 1}, Vocabulary([b"<unk>", b"</s>", b"a"])) == 3 / 4
    assert coverage({}, Vocabulary([b"<unk>", b"</s>"])) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([b"secret", b"secret"], "expected a vocabulary to begin with <unk> and </s>, found other lines"),
        ([b"<unk>"], "expected a vocabulary to begin with <unk> and </s>, found other lines"),
        (
            [b"<unk>", b"</s>", b"a", b"b", b"a"],
            "expected each word of a vocabulary once, found line 5 to repeat line 3",
        ),
        *(
            ([b"<unk>", b"</s>", b"secret", word], "expected a word on line 4 of a vocabulary, found something else")
            for word in NO_WORDS
        ),
    ],
)
def test_refuses_other_lists(words, message):
    with pytest.raises(CheckpointError, match=f"^{message}") as refused:
        Vocabulary(words)
    assert "secret" not in str(refused.value)  # the file may be anything
