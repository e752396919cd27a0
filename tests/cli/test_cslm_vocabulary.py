"""Which words count where language models are compared; perplexities over them: test_cslm_perplexity."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from moses_rnn.cli.cslm_vocabulary import WordOptions, closed_by, n_gram_models, shares_of
from moses_rnn.models.vocabulary import Vocabulary
from tests.producers.tiny_lm import SHORTLIST, SMALL

MODELS = [
    SimpleNamespace(target_vocabulary=Vocabulary([b"<unk>", b"</s>", *words]))
    for words in ([word.encode() for word in SHORTLIST], [b"le", b"bon"])
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SMALL.write(tmp_path)
    (tmp_path / "text").write_bytes(b"le bon vin\nbon et rare\n")
    (tmp_path / "words").write_bytes(b"un deux trois quatre neuf\n")
    return tmp_path


def shares(**given):
    options = WordOptions(**{"lm": (), "rare": None, "vocabulary": None, **given})
    return list(shares_of(MODELS, n_gram_models(options.lm), ["text"], options))


def test_alone_a_networks_unknown_word_is_its_own(here):
    assert shares() == [None, None]


@pytest.mark.parametrize(
    ("given", "outside"),
    [
        # bon, vin, et, rare of the texts; chat, neuf, vin, et, rare
        ({}, [4, 5]),
        # bon beside the first four numbers; chat and all five
        ({"vocabulary": "words"}, [5, 6]),
    ],
)
def test_even_shares_are_of_the_words_of_all_shortlists_and_texts(here, given, outside):
    assert [share.words for share in shares(rare="uniform", **given)] == outside


def test_beside_an_n_gram_model_its_words_count_and_its_unknown_word(here):
    pytest.importorskip("kenlm")
    # bon, rare and the kilometres, and one for all others; chat, neuf, rare and the kilometres
    assert [share.words for share in shares(rare="uniform", lm=("lm.arpa",))] == [4, 5]


def test_without_even_shares_the_n_gram_model_says_them(here):
    pytest.importorskip("kenlm")
    first, _ = shares(lm=("lm.arpa",))
    assert first.words == 3  # rare, the kilometres and <unk>
    # p(rare | le) over p(rare, the kilometres or an unknown word | le)
    values = first.log_shares([b"le rare"], np.array([1]))
    assert values == pytest.approx([math.log(0.75 / (1 - 0.0625 - sum_of_known()))])


def sum_of_known():
    """p of the first shortlist's other words behind the beginning and `le`."""
    return sum(SMALL.p(word, ["<s>", "le"]) for word in SHORTLIST if word in SMALL.unigrams)


def test_words_that_only_shortlists_have_are_told(here):
    pytest.importorskip("kenlm")
    assert closed_by(MODELS, n_gram_models(["lm.arpa"])[0]).strange == {b"neuf", b"bon"}
