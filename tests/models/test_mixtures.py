"""Sums over the words of sentences, and several language models as one."""

import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import InputError
from moses_rnn.models.ensembles import Mixture, check_mixture
from moses_rnn.models.language_models import sums
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.table.table_blocks import Pairs
from tests.networks.checkpoints import bengio_checkpoint, rnnlm_checkpoint
from tests.networks.networks import CSLM_VOCABULARY, bengio_network, rnnlm_network

SENTENCES = [b"le chat dort", b"rare", b""]


def rnnlm(scale=0.7):
    return rnnlm_checkpoint(rnnlm_network(dtype=torch.float32, scale=scale), CSLM_VOCABULARY).make_language_model()


def nplm():
    return bengio_checkpoint(bengio_network(dtype=torch.float32), CSLM_VOCABULARY).make_language_model()


def test_a_mixture_has_the_mean_probability_of_each_word():
    members = [rnnlm(), nplm(), rnnlm(0.3)]
    each = [member.word_log_probs(SENTENCES) for member in members]
    expected = [math.log(sum(map(math.exp, values)) / 3) for values in zip(*each, strict=True)]
    mixture = Mixture(members)
    assert mixture.word_log_probs(SENTENCES) == pytest.approx(expected, abs=1e-12)
    assert mixture.log_probs(Pairs([b""] * 3, SENTENCES))[0] == pytest.approx(sum(expected[:4]))
    assert Mixture(members, "mean-log").word_log_probs(SENTENCES) == pytest.approx(np.mean(each, 0))


def test_members_may_have_shares():
    members, shares = [rnnlm(), nplm()], [0.75, 0.25]
    p, q = (np.exp(member.word_log_probs(SENTENCES)) for member in members)
    mixture = Mixture(members, shares=shares)
    assert mixture.word_log_probs(SENTENCES) == pytest.approx(np.log(0.75 * p + 0.25 * q), abs=1e-12)
    assert mixture.meaning.startswith("arithmetic mixture, word by word by 0.75, 0.25, of 2 language models: ")


@pytest.mark.parametrize("shares", [[1.0], [0.5, 0.6], [1.5, -0.5], [0.0, 1.0], [math.nan, 0.5]])
def test_shares_that_do_not_fit_are_refused(shares):
    with pytest.raises(ValueError, match="expected 2 positive shares that sum to 1, found"):
        Mixture([rnnlm(), nplm()], shares=shares)
    with pytest.raises(ValueError, match="expected no shares in a mixture by mean-log, found"):
        Mixture([rnnlm(), nplm()], "mean-log", shares)


def test_language_models_of_other_words_are_no_mixture():
    words = Vocabulary([*CSLM_VOCABULARY.words[:-1], b"bien"])
    models = [rnnlm_checkpoint(rnnlm_network(), each) for each in (CSLM_VOCABULARY, words)]
    with pytest.raises(InputError, match="expected the words in target.vocab of .* in an ensemble, "):
        check_mixture(models, "arithmetic")


def test_sums_of_sentences_are_of_their_own_values_alone():
    """A running sum would lose the small values behind the large one."""
    values = np.array([1e17, 1.0, 0.25, 0.5, 0.125])
    assert sums(values, [b"le", b"", b"le"]).tolist() == [1e17 + 1.0, 0.25, 0.625]
    assert sums(np.zeros(0), []).shape == (0,)
