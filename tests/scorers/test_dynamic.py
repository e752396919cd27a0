"""Models that learn while they score."""

import numpy as np
import pytest
import torch

from moses_rnn.errors import MosesRnnError
from moses_rnn.networks.hardware import Compute
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.scorers.dynamic import MODES, DynamicRnnlm
from moses_rnn.scorers.shares import EvenShares
from tests.networks.checkpoints import rnnlm_checkpoint
from tests.networks.networks import CSLM_VOCABULARY, rnnlm_network, some_sentences

SENTENCES = [b"le chat dort", b"le rare mal", b"", b"le chat dort", b"mal"]


def checkpoint():
    return rnnlm_checkpoint(rnnlm_network(dtype=torch.float32), CSLM_VOCABULARY)


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


@pytest.mark.parametrize("mode", MODES)
def test_divergence_is_an_error(mode):
    model = DynamicRnnlm(checkpoint(), mode, rate=3e38)
    with pytest.raises(MosesRnnError, match="dynamic evaluation diverged"):
        model.word_log_probs([b"le chat mal", b"rare le chat", b"mal mal dort"] * 10)
