import numpy as np
import pytest
import torch

from moses_rnn.models.dynamic import MODES, DynamicRnnlm
from moses_rnn.models.shares import EvenShares
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.vocabulary import END_ID, Vocabulary
from tests.networks import reference_rnnlm
from tests.networks.checkpoints import rnnlm_checkpoint
from tests.networks.networks import CSLM_VOCABULARY, rnnlm_network, some_sentences, weights_of

SENTENCES = [b"le chat dort", b"le rare mal", b"", b"le chat dort", b"mal"]


def checkpoint():
    return rnnlm_checkpoint(rnnlm_network(dtype=torch.float32), CSLM_VOCABULARY)


EQUATIONS = {"sentence": reference_rnnlm.dynamic_by_sentences, "word": reference_rnnlm.dynamic_by_words}


@pytest.mark.parametrize("mode", MODES)
def test_values_and_weights_are_those_of_the_equations(mode):
    network, sentences = rnnlm_network(), some_sentences(12, longest=6)
    before = weights_of(network)
    reader = DynamicRnnlm(rnnlm_checkpoint(network, CSLM_VOCABULARY), mode, Compute(precision="fp64"), rate=0.1)
    values = reader.word_log_probs([b" ".join(CSLM_VOCABULARY.words[i] for i in ids) for ids in sentences])
    expected, weights = EQUATIONS[mode](before, [[*ids, END_ID] for ids in sentences], rate=0.1)
    assert values == pytest.approx(np.concatenate(expected), abs=1e-10)
    for name, rows in weights.items():
        given = reader.learner.state_dict()[name]
        torch.testing.assert_close(given, torch.tensor(rows, dtype=torch.float64), rtol=0, atol=1e-10)
    assert weights_of(network) == before  # the network given stays as it is


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("hidden_size", [3, 32, 50])
@pytest.mark.parametrize("precision", ["fp32", "fp64", "bf16"])
def test_at_a_rate_of_0_it_is_static_to_the_bit(mode, precision, hidden_size):
    vocabulary = Vocabulary([b"<unk>", b"</s>", *(b"w%d" % i for i in range(2, 301))])
    large = rnnlm_checkpoint(rnnlm_network(hidden_size, 301, scale=0.3, dtype=torch.float32), vocabulary)
    sentences = [b" ".join(b"w%d" % i for i in ids) for ids in some_sentences(30, 301)]  # some of them equal
    compute, shares = Compute(precision=precision), EvenShares(5)
    reader = DynamicRnnlm(large, mode, compute, shares, rate=0.0)
    static = large.make_language_model(compute, shares)
    assert np.array_equal(reader.word_log_probs(sentences), static.word_log_probs(sentences))
    assert np.array_equal(reader.unknown(sentences), static.unknown(sentences))


@pytest.mark.parametrize("mode", MODES)
def test_what_was_read_counts(mode):
    static = checkpoint().make_language_model().word_log_probs(SENTENCES)
    whole = DynamicRnnlm(checkpoint(), mode).word_log_probs(SENTENCES)
    reader = DynamicRnnlm(checkpoint(), mode)
    parts = np.concatenate([reader.word_log_probs(part) for part in (SENTENCES[:2], [], SENTENCES[2:])])
    assert np.array_equal(whole, parts)
    assert whole[0] == static[0]
    assert not np.array_equal(whole, static)
    assert not np.array_equal(DynamicRnnlm(checkpoint(), mode).word_log_probs(SENTENCES[::-1])[-4:], whole[:4])
