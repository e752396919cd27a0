"""BLEU by length and rarity: which sentence belongs where, and what each part's BLEU is."""

import numpy as np
import pytest

from moses_rnn.analysis.lengths import compare_lengths
from moses_rnn.nbest.bleu import References, corpus_bleu
from moses_rnn.networks.vocabulary import END, UNKNOWN, Vocabulary
from tests.analysis.texts import sentence

LENGTHS = [0, 8, 9, 10, 11, 12, 13, 15, 16, 20, 21, 40]
SOURCES = [sentence(b"s", length) for length in LENGTHS]
REFERENCES = [sentence(b"t", length) for length in LENGTHS]


def vocabulary(letter, last):
    return Vocabulary([UNKNOWN, END, *sentence(letter, last).split()])


def sizes(scores):
    return {title: [LENGTHS[i] for i in sentences] for title, sentences in scores.parts.items()}


def test_every_sentence_is_in_its_bin():
    scores = compare_lengths(SOURCES, REFERENCES, {"a": REFERENCES})
    assert sizes(scores) == {
        "≤ 8": [0, 8], "9–10": [9, 10], "11–12": [11, 12], "13–15": [13, 15], "16–20": [16, 20], "> 20": [21, 40],
        "All": LENGTHS,
    }  # fmt: skip
    assert list(sizes(scores))[:6] == scores.bins
    assert scores.bleu == {"a": [pytest.approx(100)] * 7}


def test_words_are_parted_at_blanks_alone():
    """As the tuner and Moses count: U+00A0 is part of its word."""
    spaced = [line.replace(b" ", b"\xc2\xa0", 1) for line in REFERENCES]
    bleu = compare_lengths(SOURCES, REFERENCES, {"a": spaced}).bleu["a"][-1]
    statistics = [References([REFERENCES]).statistics(i, line) for i, line in enumerate(spaced)]
    assert bleu == pytest.approx(100 * corpus_bleu(np.sum(statistics, 0)))
    assert bleu < 99


@pytest.mark.parametrize(("source", "target", "longest"), [(12, 40, 12), (40, 12, 12), (40, 40, 40), (9, 20, 9)])
def test_no_unknown_word_is_in_source_or_reference(source, target, longest):
    known = vocabulary(b"s", source), vocabulary(b"t", target)
    scores = compare_lengths(SOURCES, REFERENCES, {"a": REFERENCES}, known)
    assert sizes(scores)["No UNK"] == [length for length in LENGTHS if length <= longest]


def test_rarity_is_the_mean_rank_of_the_words_in_a_text():
    text = [b"c a", b"a b", b"a b"]  # ranks: a 1, b 2, c 3, any other word 4
    sources = [b"a", b"", b"a a b", b"x c", b"b", b"b x", b"c"]  # 1, 0, 4/3, 7/2, 2, 3, 3
    scores = compare_lengths(sources, sources, {"same": sources}, None, text)
    assert scores.parts == {
        "≤ 0": [1], "1": [0], "2": [2, 4], "3": [5, 6], "> 3": [3], "All": [0, 1, 2, 3, 4, 5, 6],
    }  # fmt: skip
    assert scores.measure == "mean frequency rank of the source words"


@pytest.mark.parametrize("count", [12, 6, 2, 1])
def test_bins_are_of_equally_many_sentences(count):
    text = [b"w%d " % i * (99 - i) for i in range(count)]
    sources = [b"w%d" % i for i in range(count)]
    parts = compare_lengths(sources, sources, {}, None, text).parts
    assert [len(part) for part in parts.values()] == [max(count // 6, 1)] * min(count, 6) + [count]


def test_equally_rare_sentences_and_none_share_a_bin():
    assert compare_lengths([b"a"] * 9, [b"a"] * 9, {}, None, [b"a"]).parts == {"any": [*range(9)], "All": [*range(9)]}
    assert compare_lengths([], [], {}, None, [b"a"]).parts == {"any": [], "All": []}
