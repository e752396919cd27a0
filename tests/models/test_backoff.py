"""A CSLM backed off to an n-gram model is a distribution over all words of both, whatever came before."""

import math

import numpy as np
import pytest

from moses_rnn.errors import InputError
from moses_rnn.models.kenlm import KenlmScorer
from moses_rnn.models.shares import Backoff
from moses_rnn.moses.arpa import parse_arpa
from moses_rnn.table.phrases import words
from tests.models.tiny_lm import NBSP, SHORTLIST, SMALL, checkpoint, random_model

pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
MODELS = {
    "small": SMALL,
    **{f"random {seed}": random_model(seed) for seed in range(4)},
    **{f"pruned {seed}": random_model(seed, pruned=0.02) for seed in range(4)},
}


def backoff_of(path, vocabulary=None):
    lines = path.read_bytes().splitlines(keepends=True)
    return Backoff(
        parse_arpa(lines, path.name), KenlmScorer(path), vocabulary or checkpoint().target_vocabulary, path.name
    )


def vocabulary_of(model):
    """All words of both models; what neither knows is one of them."""
    return sorted({*model.unigrams, *SHORTLIST} - {"</s>", "<unk>"} | {"jamais"})


def histories(model):
    """Every context that was seen, some that were not, and some with words that are odd or not known."""
    seen = [" ".join(word for word in context if word != "<s>") for context in model.seen]
    odd = ["jamais", "jamais le", "le jamais", "neuf le", "le chat le chat", f"{NBSP} le", "<s>", "<s> le", "</s> le"]
    return sorted({*seen, *odd, "", "<unk> le", "le\0chat le"})


def totals(scorer, contexts, vocabulary):
    """Σ p(w | h) over a vocabulary and the end, for each of some histories."""
    sentences = [sentence for history in contexts for sentence in (history, *(history + b" " + w for w in vocabulary))]
    values = scorer.word_log_probs(sentences)
    ends = np.cumsum([len(words(sentence)) + 1 for sentence in sentences]).reshape(len(contexts), -1)
    return np.exp(values[ends[:, 0] - 1]) + np.exp(values[ends[:, 1:] - 2]).sum(1)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_all_words_together_have_probability_1(tmp_path, model):
    backoff = backoff_of(model.write(tmp_path))
    contexts = [history.encode() for history in histories(model)]
    vocabulary = [word.encode() for word in vocabulary_of(model)]
    found = totals(checkpoint().make_language_model(shares=backoff), contexts, vocabulary)
    assert found == pytest.approx(np.ones(len(contexts)), abs=1e-5)


def test_a_word_outside_gets_its_share_of_the_unknown_word(tmp_path):
    alone, both = (
        checkpoint().make_language_model(),
        checkpoint().make_language_model(shares=backoff_of(SMALL.write(tmp_path))),
    )
    # le rare | le ; after `<s> le`: rare was seen, <unk> and 10 km are what is left
    backed_off = SMALL.backoff["<s>", "le"] * SMALL.backoff["le",]
    mass = 0.75 + backed_off * (0.1 + 0.2)
    shares = {"rare": 0.75 / mass, NBSP: backed_off * 0.2 / mass, "jamais": backed_off * 0.1 / mass}
    assert sum(shares.values()) == pytest.approx(1)
    for word, share in shares.items():
        sentence = f"le {word}".encode()
        given = both.word_log_probs([sentence]) - alone.word_log_probs([sentence])
        assert given == pytest.approx([0, math.log(share), 0], abs=1e-5)


def test_a_word_that_kenlm_cannot_be_asked_for_is_an_unknown_one(tmp_path):
    (tmp_path / "lm").write_bytes(SMALL.arpa().replace(NBSP.encode(), b"caf\xe9"))
    backoff = backoff_of(tmp_path / "lm")
    assert backoff.outside == pytest.approx(0.1 + 0.15)
    contexts = [b"", b"le", b"rare", b"le rare", b"caf\xe9", b"rare caf\xe9"]
    found = totals(
        checkpoint().make_language_model(shares=backoff), contexts, [b"le", b"chat", b"neuf", b"rare", b"caf\xe9"]
    )
    assert found == pytest.approx(np.ones(len(contexts)), abs=1e-5)


def changed(*changes):
    data = SMALL.arpa()
    for old, new in changes:
        assert old in data
        data = data.replace(old, new, 1)
    return data


ONE_MORE = {n: (b"ngram %d=7" % n, b"ngram %d=8" % n) for n in (1, 2)}
READ = {
    "never begins": changed((b"-99.0000000", b"-inf")),
    "never": changed((b"-0.8239087\trare", b"-inf\trare")),
    "<UNK>": changed((b"<unk>", b"<UNK>")),
    "a weight that leaves much": changed((b"\t0.1760913", b"\t9")),
    "a weight that leaves almost nothing": changed((b"\t-0.3802112", b"\t-150")),
}
NOT_READ = {
    "<UNK> after a word": changed((b"rare </s>", b"rare <UNK>")),
    "<UNK> before a word": changed((b"-1.0000000\t<unk>", b"-1.0000000\t<UNK>\t-0.5"), (b"le chat", b"<UNK> chat")),
    "<unk> twice": changed((b"<unk>", b"<unk>\n-1.5\t<unk>"), ONE_MORE[1]),
    "an n-gram twice": changed((b"-0.4259687\tle rare", b"-0.5\tle rare\n-0.4259687\tle rare"), ONE_MORE[2]),
    "<unk> is never": changed((b"-1.0000000\t<unk>", b"-inf\t<unk>")),
}


@pytest.mark.parametrize("data", READ.values(), ids=READ)
def test_whatever_the_file_the_shares_of_all_words_outside_sum_to_1(tmp_path, data):
    (tmp_path / "lm").write_bytes(data)
    backoff = backoff_of(tmp_path / "lm")
    outside_all = {*vocabulary_of(SMALL)} - {*SHORTLIST}
    for history in histories(SMALL):
        sentences = [f"{history} {word}".strip().encode() for word in outside_all]
        last = np.eye(len(words(sentences[0])) + 1, dtype=bool)[-2]  # the word before the end
        shares = [backoff.log_shares([sentence], last) for sentence in sentences]
        assert np.exp(shares).sum() == pytest.approx(1, abs=1e-5), history


@pytest.mark.parametrize("data", NOT_READ.values(), ids=NOT_READ)
def test_or_it_is_refused(tmp_path, data):
    (tmp_path / "lm").write_bytes(data)
    with pytest.raises(InputError, match="^(.*/)?lm(:[0-9]+)?: expected "):
        backoff_of(tmp_path / "lm")
