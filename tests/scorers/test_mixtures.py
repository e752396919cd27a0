"""Several language models as one."""

import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import InputError
from moses_rnn.networks.encdec import SWITCHES
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.scorers.ensembles import Mixture, check_mixture
from moses_rnn.scorers.open import open_model, save_model
from moses_rnn.table.table_blocks import Pairs
from tests.networks.checkpoints import bengio_checkpoint, encdec_checkpoint, rnnlm_checkpoint
from tests.networks.networks import CSLM_VOCABULARY, bengio_network, encdec_network, rnnlm_network
from tests.scorers.pairs import SOURCE, TARGET

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


@pytest.fixture
def models(tmp_path):
    network = rnnlm_network(dtype=torch.float32)
    save_model(tmp_path / "rnnlm", rnnlm_checkpoint(network, CSLM_VOCABULARY))
    save_model(tmp_path / "nplm", bengio_checkpoint(bengio_network(dtype=torch.float32), CSLM_VOCABULARY))
    words = Vocabulary([*CSLM_VOCABULARY.words[:-1], b"bien"])
    save_model(tmp_path / "other", rnnlm_checkpoint(network, words))
    pairs = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    save_model(tmp_path / "pairs", encdec_checkpoint(pairs, SOURCE, TARGET))
    return tmp_path


def opened(models, *names):
    return [open_model(models / name, of_pairs=False) for name in names]


REFUSED = [
    (("rnnlm", "other"), "arithmetic", "other: expected the words in target.vocab of .*rnnlm in an ensemble, "),
    (("rnnlm", "pairs"), "arithmetic", "pairs: expected a language model beside .*rnnlm, found one of pairs"),
    (
        ("rnnlm", "nplm"),
        "geometric",
        "expected language models to be combined by arithmetic or mean-log, found geometric",
    ),
]


@pytest.mark.parametrize(("names", "combination", "message"), REFUSED)
def test_models_that_cannot_be_one_are_refused(models, names, combination, message):
    with pytest.raises(InputError, match=message):
        check_mixture(opened(models, *names), combination)
