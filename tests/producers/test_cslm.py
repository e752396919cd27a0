"""A CSLM as a model of sentences: which n-grams it predicts, and in which precision."""

import math

import numpy as np
import pytest

from moses_rnn.models.vocabulary import UNKNOWN_ID
from moses_rnn.producers.base import Compute
from moses_rnn.producers.cslm import CslmProducer
from tests.producers.tiny_lm import CORPUS, SENTENCES, checkpoint

B, UNK, END, LE, CHAT = 5, 0, 1, 2, 3


N_GRAMS = {
    "two words": (b"le chat", [(B, B, LE), (B, LE, CHAT), (LE, CHAT, END)]),
    "no word": (b"", [(B, B, END)]),
    "blanks": (b" le\t ", [(B, B, LE), (B, LE, END)]),
    "unknown": (b"rare le", [(B, B, UNK), (B, UNK, LE), (UNK, LE, END)]),
    "spelled as a boundary": (b"<s> </s> <unk>", [(B, B, UNK), (B, UNK, UNK), (UNK, UNK, UNK), (UNK, UNK, END)]),
    "no-break space": ("le\u00a0chat".encode(), [(B, B, UNK), (B, UNK, END)]),
}


@pytest.mark.parametrize(("sentence", "expected"), N_GRAMS.values(), ids=N_GRAMS)
def test_a_cslm_predicts_each_word_and_the_end_after_begins(sentence, expected):
    producer = CslmProducer(checkpoint())
    assert producer.n_grams([sentence]).tolist() == [list(n_gram) for n_gram in expected]
    assert producer.unknown([sentence]).tolist() == [n_gram[-1] == UNK for n_gram in expected]
    assert len(producer.word_log_probs([sentence])) == len(expected)


def test_n_grams_do_not_cross_sentences():
    producer = CslmProducer(checkpoint())
    each = [producer.n_grams([sentence]) for sentence in CORPUS]
    assert producer.n_grams(CORPUS).tolist() == np.concatenate(each).tolist()


def test_a_cslm_is_a_distribution_over_its_vocabulary():
    producer = CslmProducer(checkpoint())
    for history in SENTENCES:
        words = [f"{history} {word}".encode() for word in ("le", "chat", "neuf", "other")]
        last = [producer.word_log_probs([sentence])[-2] for sentence in words]
        last.append(producer.word_log_probs([history.encode()])[-1])
        assert sum(map(math.exp, last)) == pytest.approx(1, abs=1e-6)


class Backoff:
    """Gives each unknown word a value that says where it stands."""

    description = "told apart by their places"

    def log_shares(self, sentences, unknown):
        assert sentences == CORPUS
        return -1.0 - unknown


def test_only_unknown_words_are_backed_off():
    alone, both = CslmProducer(checkpoint()), CslmProducer(checkpoint(), backoff=Backoff())
    added = both.word_log_probs(CORPUS) - alone.word_log_probs(CORPUS)
    lasts = alone.n_grams(CORPUS)[:, -1].tolist()
    assert lasts.count(UNKNOWN_ID) == 8
    expected = [-1.0 - place if last == UNKNOWN_ID else 0.0 for place, last in enumerate(lasts)]
    assert added == pytest.approx(expected, abs=1e-12)


def test_precisions_are_near_each_other_and_not_the_same():
    single, half, double = (
        CslmProducer(checkpoint(), Compute(precision=precision)).word_log_probs(CORPUS)
        for precision in ("fp32", "bf16", "fp64")
    )
    assert single == pytest.approx(double, abs=1e-5)
    assert half == pytest.approx(double, abs=0.1)
    assert not np.array_equal(half, single)
