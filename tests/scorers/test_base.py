"""What scorers share: counts of unknown words."""

import numpy as np

from moses_rnn.scorers.phrases import unknown_words
from moses_rnn.table.table_blocks import PhraseIds
from tests.scorers.pairs import TARGET


def test_unknown_words_are_counted_by_phrase():
    ids, lengths = PhraseIds(TARGET.id_of())([b"x t2 y", b"", b"t2", b"x", b"", b"<unk> </s> <s>"])
    assert unknown_words(ids, lengths).tolist() == [2, 0, 0, 1, 0, 3]
    assert unknown_words(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
