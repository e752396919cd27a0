"""Shares of what a model gives to <unk>: who has them, and even ones."""

import math

import pytest

from moses_rnn.models.kenlm import KenlmScorer
from moses_rnn.models.shares import Backoff, ClosedVocabulary, EvenShares, even_shares, types_of
from moses_rnn.moses.arpa import parse_arpa
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.vocabulary import Vocabulary
from tests.models.tiny_lm import BackoffModel
from tests.networks.checkpoints import rnnlm_checkpoint
from tests.networks.networks import CSLM_VOCABULARY, rnnlm_network

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
    assert even_shares(types_of(TEXT), vocabulary).count == outside
    if outside > 1:
        assert even_shares(types_of(TEXT), vocabulary, with_unknown=True).count == outside + 1


def test_a_model_with_them_is_a_distribution_over_its_words_and_those_outside():
    network = rnnlm_checkpoint(rnnlm_network(), CSLM_VOCABULARY)
    outside = [b"rare", b"odd", b"new"]
    scorer = network.make_language_model(Compute(precision="fp64"), EvenShares(len(outside)))
    for history in (b"", b"le rare", b"chat"):
        words = [*CSLM_VOCABULARY.words[2:], *outside]
        p = [scorer.word_log_probs([history + b" " + word])[-2] for word in words]
        p.append(scorer.word_log_probs([history])[-1])
        assert sum(map(math.exp, p)) == pytest.approx(1, abs=1e-9)


def test_over_a_closed_vocabulary_each_model_is_a_distribution(tmp_path):
    pytest.importorskip("kenlm")
    unigrams = {"</s>": 0.2, "le": 0.4, "loin": 0.1, "<unk>": 0.3}
    path = tmp_path / "few.arpa"
    path.write_bytes(BackoffModel(unigrams, {("le",): {"loin": 0.5}}).arpa())
    n_grams = KenlmScorer(path)
    checkpoint = rnnlm_checkpoint(rnnlm_network(), CSLM_VOCABULARY)
    other = Vocabulary([b"<unk>", b"</s>", b"le", b"autre", b"encore"])
    closed = ClosedVocabulary([CSLM_VOCABULARY, other], n_grams)
    assert closed.strange == {*CSLM_VOCABULARY.words, *other.words} - {b"<unk>", b"</s>", b"le", b"loin"}
    backoff = Backoff(parse_arpa(path.read_bytes().splitlines(), "few"), n_grams, CSLM_VOCABULARY, "few")
    network = checkpoint.make_language_model(shares=backoff)
    words = sorted({b"le", b"loin", b"<unk>", *closed.strange})
    for model, vocabulary in ((n_grams, None), (network, CSLM_VOCABULARY)):
        compared = closed.compare(model, vocabulary)
        assert (compared.unknown(words) == model.unknown(words)).all()
        for history in (b"", b"le", b"encore le"):
            p = [compared.word_log_probs([history + b" " + word])[-2] for word in words]
            p.append(compared.word_log_probs([history])[-1])
            assert sum(map(math.exp, p)) == pytest.approx(1, abs=1e-5)
    known = ClosedVocabulary([Vocabulary([b"<unk>", b"</s>", b"le"])], n_grams)
    assert known.compare(n_grams) is n_grams
