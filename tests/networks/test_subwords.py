"""Subwords: what is cut and how, what is joined, and what cannot be learned."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.networks.subwords import Subwords, learn_subwords
from moses_rnn.table.phrases import words

COUNTS = {"été".encode(): 5, b"at": 9, b"ate": 4, b"tea": 2, b"&apos;s": 3, "\u3000e\u0301\u2028".encode(): 2, b"1": 2}
SUBWORDS = learn_subwords(COUNTS, 40, 2)
UNKNOWN = [b"tex", b"<unk>", b"</s>", "t▁a".encode(), "▁".encode(), "▅".encode(), b"\xff", b"a|||t", b"a\0", b"t" * 101]
LETTERS = "".join({letter for word in COUNTS for letter in word.decode()})


def test_pieces_are_those_of_both_sides_of_all_frequent_characters():
    assert SUBWORDS.words[:2] == [b"<unk>", b"</s>"]
    assert {letter.encode() for letter in LETTERS} <= {*SUBWORDS.words}
    assert len(learn_subwords(COUNTS, 10_000)) < 60  # not more than there are to learn
    again = learn_subwords(dict(reversed(COUNTS.items())), 40, 2)
    assert (again.model, again.sha256()) == (SUBWORDS.model, SUBWORDS.sha256())
    assert b"x" not in learn_subwords({**COUNTS, b"x": 1}, 40, 2).words
    assert b"x" in learn_subwords({**COUNTS, b"x": 1}, 40, 1).words


def test_a_word_that_cannot_be_cut_is_one_unknown_piece():
    assert SUBWORDS.ids(UNKNOWN) == [0] * len(UNKNOWN)
    assert [word in SUBWORDS for word in [*UNKNOWN, b"teat", "éta".encode()]] == [
        word == b"<unk>" for word in UNKNOWN
    ] + [True, True]
    assert 0 not in SUBWORDS.ids([b"t" * 100])


@given(st.lists(st.text(LETTERS, min_size=1, max_size=9)))
def test_what_is_cut_is_joined_again(texts):
    line = [text.encode() for text in texts]
    ids = SUBWORDS.ids(line)
    assert SUBWORDS.spell(ids) == line
    of_each = [len(SUBWORDS.ids([word])) for word in line]
    assert SUBWORDS.firsts(ids) == [sum(of_each[:i]) for i in range(len(line))]


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=9), min_size=1))
def test_any_line_is_cut_word_by_word_and_joined_again(texts):
    line = [word for text in texts for word in words(text.replace("\n", "").encode())]
    learned = learn_subwords(dict.fromkeys([b"a", *line], 1), 10_000)
    joined = learned.spell(learned.ids(line))
    assert joined == [word if word in learned else b"<unk>" for word in line]
    strange = [word for word in line if word not in learned]
    assert all(set(word.decode()) & set("▁▅|</>\0\x7f").union(map(chr, range(33))) for word in strange)


@given(st.lists(st.integers(0, len(SUBWORDS) - 1).filter(lambda number: number != 1), max_size=12))
def test_whatever_a_network_writes_is_words(ids):
    spelled, firsts = SUBWORDS.spell(ids), SUBWORDS.firsts(ids)
    assert len(spelled) == len(firsts)
    assert firsts == sorted({*firsts})
    assert words(b" ".join(spelled)) == spelled
    assert spelled.count(b"<unk>") == ids.count(0)
    text = b"".join(SUBWORDS.words[i] for i in ids)
    assert b"".join(spelled) == text.replace("▁".encode(), b"")


def test_phrases_are_read_together():
    ids, lengths = SUBWORDS.reader()([b"tea ate", b"", b" x\tat "])
    assert lengths.tolist() == [len(SUBWORDS.ids([b"tea", b"ate"])), 0, 1 + len(SUBWORDS.ids([b"at"]))]
    assert ids.tolist() == SUBWORDS.ids([b"tea", b"ate", b"x", b"at"])
    assert ids.dtype == np.int64


def test_they_can_go_to_another_process():
    there = pickle.loads(pickle.dumps(SUBWORDS))
    assert (there.words, there.ids([b"teat"])) == (SUBWORDS.words, SUBWORDS.ids([b"teat"]))


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(
        InputError, match="expected words of characters seen at least 2 times, to learn from, found none"
    ):
        learn_subwords({b"ab": 1, "▅▅".encode(): 5, b"\xff": 4}, 40, 2)
    with pytest.raises(InputError, match="expected at least 16, for 13 characters and three symbols, found 15"):
        learn_subwords(COUNTS, 15)
    assert len(learn_subwords(COUNTS, 16)) == 16


@pytest.mark.parametrize("model", [b"", b"junk", SUBWORDS.model[:-3]])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(CheckpointError, match="expected a sentencepiece model, found something else"):
        Subwords(model)


def test_the_library_is_needed_for_them_alone():
    program = """
import sys
sys.modules["sentencepiece"] = None
from moses_rnn.errors import MosesRnnError
from moses_rnn.networks.subwords import learn_subwords
import moses_rnn.cli.nmt, moses_rnn.training.train
try:
    learn_subwords({b"a": 1}, 9)
except MosesRnnError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "sentencepiece is not installed: pip install sentencepiece\n"
