"""What producers share: ids of many phrases at once, counts of unknown words, where and how networks compute."""

import numpy as np
import pytest

from moses_rnn.formats.pairs import TextPhrases
from moses_rnn.formats.table_blocks import PhraseIds
from moses_rnn.producers.base import unknown_words
from tests.producers.pairs import TARGET, random_pairs

pytestmark = pytest.mark.usefixtures("either_path")

PHRASES = {
    "an empty one": ([b""], [[]]),
    "empty ones": ([b"", b"t2", b"", b"", b"t3 t4", b""], [[], [2], [], [], [3, 4], []]),
    "blanks and tabs": ([b" t2\t t3 ", b"\t", b"  "], [[2, 3], [], []]),
    "other spaces": (["t2\u00a0t3".encode(), b"t2\rt3", b"t2\x0b"], [[0], [0], [0]]),
    "spelled as a boundary": ([b"<unk> </s> <s> t2"], [[0, 0, 0, 2]]),
    "no UTF-8": ([b"\xff\xfe t7"], [[0, 7]]),
}


@pytest.mark.parametrize(("phrases", "expected"), PHRASES.values(), ids=PHRASES)
def test_ids_of_phrases(phrases, expected):
    ids, lengths = PhraseIds(TARGET.id_of())(phrases)
    assert ids.tolist() == [i for of_phrase in expected for i in of_phrase]
    assert lengths.tolist() == [len(of_phrase) for of_phrase in expected]


@pytest.mark.parametrize("phrases", [[b"t2 \n t3"], [b"t2", b"\n"], [b"\n", b"", b"t2"]])
def test_a_phrase_with_a_line_end_is_refused(phrases):
    with pytest.raises(ValueError, match="expected phrases without line ends"):
        PhraseIds(TARGET.id_of())(phrases)


def test_a_line_end_within_a_word_is_a_part_of_it():
    ids, lengths = PhraseIds(TARGET.id_of())([b"t2\nt3 t4", b"\n\n"])
    assert (ids.tolist(), lengths.tolist()) == ([0, 4, 0], [2, 1])


def test_phrases_that_lie_in_a_text_have_the_same_ids_as_others():
    phrases = [target for _, target in random_pairs(300)]
    lying = TextPhrases.of(phrases)
    for part in (slice(None), slice(7, 50), slice(None, None, 3), slice(299, None)):
        for of_lying, of_others in zip(
            PhraseIds(TARGET.id_of())(lying[part]), PhraseIds(TARGET.id_of())(phrases[part]), strict=True
        ):
            np.testing.assert_array_equal(of_lying, of_others)


def test_unknown_words_are_counted_by_phrase():
    ids, lengths = PhraseIds(TARGET.id_of())([b"x t2 y", b"", b"t2", b"x", b""])
    assert unknown_words(ids, lengths).tolist() == [2, 0, 0, 1, 0]
    assert unknown_words(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
