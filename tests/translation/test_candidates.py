"""Candidate lists: what they hold. That networks are normalised over them is in tests/contract."""

import torch

from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.translation.translate import CandidateLists
from tests.scorers.pairs import TARGET

CPU = torch.device("cpu")
LEXICON = Lexicon(
    {
        b"s2": [(b"t6", 0.5), (b"t3", 0.3), (b"t7", 0.2)],
        b"s3": [(b"t9", 0.9), (b"t5", 0.1)],  # t9 is outside the shortlist
        b"rare": [(b"t7", 1.0)],  # as is this source word
    }
)


def lists(frequent=2, of_each=2, tokens=0):
    return CandidateLists(TARGET, LEXICON, frequent, of_each, tokens)


def test_candidates_are_frequent_words_and_translations():
    assert lists().of([b"s2", b"s3", b"s4"]) == (5, 6)  # t5 and t6; t2 and t3 are frequent
    assert lists(of_each=3).of([b"s2", b"rare"]) == (6, 7)
    assert lists(frequent=0, of_each=1).of([b"s2", b"s2", b"rare"]) == (6, 7)
    assert lists(of_each=0).of([b"s2", b"rare"]) == ()
    assert lists(frequent=100).of([b"s2"]) == ()


def test_tokens_are_candidates_always():
    assert lists(frequent=1, tokens=2).columns([()], CPU).words.tolist() == [0, 1, 2, 3, 4]


def test_columns_have_each_sources_candidates():
    columns = lists().columns([(5, 6), (), (7,)], CPU)
    assert columns.words.tolist() == [0, 1, 2, 3, 5, 6, 7]
    allowed = [[w for w, may in zip(columns.words.tolist(), row, strict=True) if may] for row in columns.allowed]
    assert allowed == [[0, 1, 2, 3, 5, 6], [0, 1, 2, 3], [0, 1, 2, 3, 7]]
    assert lists(frequent=100).columns([(), ()], CPU).allowed.all()
