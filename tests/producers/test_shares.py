"""Even shares of what a model gives to <unk>."""

import math

import numpy as np
import pytest

from moses_rnn.models.vocabulary import Vocabulary
from moses_rnn.producers.rnnlm import RnnlmProducer
from moses_rnn.producers.shares import EvenShares, even_shares, types_of
from tests.models.checkpoints import rnnlm_checkpoint
from tests.models.networks import CSLM_VOCABULARY, rnnlm_network

TEXT = [b"le rare rare\n", b"odd \t</s> <s>\r\n", b"\n", b"le  chat <unk>"]


@pytest.mark.parametrize(
    ("words", "outside"),
    [
        ([b"le", b"chat"], 2),
        ([b"le"], 3),
        ([b"le", b"chat", b"rare"], 1),
        ([], 4),
        ([b"le", b"chat", b"rare", b"odd"], 1),
    ],
)
def test_the_words_of_a_text_outside_a_shortlist_are_counted_once(words, outside):
    vocabulary = Vocabulary([b"<unk>", b"</s>", *words])
    assert even_shares(types_of(TEXT), vocabulary).words == outside
    if outside > 1:
        assert even_shares(types_of(TEXT), vocabulary, with_unknown=True).words == outside + 1


def test_each_has_as_much():
    shares = EvenShares(8)
    assert shares.log_shares([b"rare rare"], [0, 1]) == pytest.approx([-math.log(8)] * 2)
    assert shares.log_shares([b"le"], np.zeros(0, np.int64)).shape == (0,)
    assert shares.description == "with an even share of <unk>, one of 8"


def test_a_model_with_them_is_a_distribution_over_its_words_and_those_outside():
    checkpoint = rnnlm_checkpoint(rnnlm_network(), CSLM_VOCABULARY)
    outside = [b"rare", b"odd", b"new"]
    producer = RnnlmProducer(checkpoint, shares=EvenShares(len(outside)))
    for history in (b"", b"le rare", b"chat"):
        words = [*CSLM_VOCABULARY.words[2:], *outside]
        p = [producer.word_log_probs([history + b" " + word])[-2] for word in words]
        p.append(producer.word_log_probs([history])[-1])
        assert sum(map(math.exp, p)) == pytest.approx(1, abs=1e-9)
