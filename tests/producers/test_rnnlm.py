"""A recurrent network as a model of sentences: which words it predicts, in which precision, with which shares."""

import numpy as np
import pytest
import torch

from moses_rnn.models.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.producers.base import Compute
from moses_rnn.producers.rnnlm import RnnlmProducer
from moses_rnn.producers.shares import EvenShares
from tests.models import reference_rnnlm
from tests.models.checkpoints import rnnlm_checkpoint
from tests.models.networks import CSLM_VOCABULARY, rnnlm_network, weights_of

IDS = {
    b"le chat": [2, 3], b"": [], b" le\t ": [2], b"rare le": [UNKNOWN_ID, 2], b"<s> </s>": [UNKNOWN_ID, UNKNOWN_ID],
}  # fmt: skip
SENTENCES = list(IDS)


def producer_of(**options):
    return RnnlmProducer(rnnlm_checkpoint(rnnlm_network(dtype=torch.float32), CSLM_VOCABULARY), **options)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("fp64", 1e-10), ("bf16", 0.1)])
def test_log_p_of_words_is_that_of_the_equations(precision, tolerance):
    producer = producer_of(compute=Compute(precision=precision))
    weights = weights_of(rnnlm_network(dtype=torch.float32))
    expected = [value for ids in IDS.values() for value in reference_rnnlm.log_probs(weights, [*ids, END_ID])]
    assert producer.word_log_probs(SENTENCES) == pytest.approx(expected, abs=tolerance)


def test_a_precision_does_not_change_the_model_given():
    checkpoint = rnnlm_checkpoint(rnnlm_network(dtype=torch.float32), CSLM_VOCABULARY)
    RnnlmProducer(checkpoint, Compute(precision="fp64"))
    assert checkpoint.model.G.dtype == torch.float32


def test_the_score_of_a_sentence_is_the_sum():
    producer = producer_of()
    scores = producer.log_probs([b""] * len(SENTENCES), SENTENCES)
    assert scores[:, 0] == pytest.approx([producer.word_log_probs([sentence]).sum() for sentence in SENTENCES])
    assert producer.log_probs([], []).shape == (0, 1)
    assert producer.word_log_probs([]).shape == producer.unknown([]).shape == (0,)


def test_only_unknown_words_have_shares():
    alone, shared = producer_of(), producer_of(shares=EvenShares(10))
    unknown = alone.unknown(SENTENCES)
    assert unknown.tolist() == [word == UNKNOWN_ID for ids in IDS.values() for word in [*ids, END_ID]]
    added = shared.word_log_probs(SENTENCES) - alone.word_log_probs(SENTENCES)
    assert added == pytest.approx(np.where(unknown, -np.log(10), 0))


def test_what_a_score_means():
    begin = "log p(target) of the RNNLM, natural, </s> included; words outside the shortlist"
    assert (producer_of().name, producer_of().meaning) == ("RNNLM", f"{begin} counted as <unk>")
    assert producer_of(shares=EvenShares(7)).meaning == f"{begin} with an even share of <unk>, one of 7"
