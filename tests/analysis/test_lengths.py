"""BLEU by length: which sentence belongs where, and what each part's BLEU is."""

import pytest

from moses_rnn.analysis.lengths import BINS, compare_lengths
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
    assert list(sizes(scores))[:6] == list(BINS)
    assert scores.bleu == {"a": [pytest.approx(100)] * 7}


@pytest.mark.parametrize(("source", "target", "longest"), [(12, 40, 12), (40, 12, 12), (40, 40, 40), (9, 20, 9)])
def test_no_unknown_word_is_in_source_or_reference(source, target, longest):
    known = vocabulary(b"s", source), vocabulary(b"t", target)
    scores = compare_lengths(SOURCES, REFERENCES, {"a": REFERENCES}, known)
    assert sizes(scores)["No UNK"] == [length for length in LENGTHS if length <= longest]
