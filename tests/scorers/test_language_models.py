"""Language models of sentences: sums over words, and values that do not depend on a sentence's company."""

import numpy as np
import pytest

from moses_rnn.scorers.language_models import sums
from moses_rnn.scorers.shares import Backoff
from moses_rnn.table.table_blocks import Pairs
from tests.scorers.tiny_lm import CORPUS, SMALL, checkpoint


def backed_off(kenlm):
    n_grams = [tuple(word.encode() for word in (*h, w)) for h, after in SMALL.seen.items() for w in after]
    unigrams = [(word.encode(),) for word in SMALL.unigrams]
    return checkpoint().make_language_model(
        shares=Backoff([*unigrams, *n_grams], kenlm, checkpoint().target_vocabulary, "lm")
    )


@pytest.fixture(params=["CSLM", "CSLM backed off", "KenLM"])
def scorer(request):
    """Each of the models; those that need kenlm are skipped without it."""
    if request.param == "CSLM":
        return checkpoint().make_language_model()
    kenlm = request.getfixturevalue("kenlm")
    return kenlm if request.param == "KenLM" else backed_off(kenlm)


def test_the_score_of_a_sentence_is_the_sum(scorer):
    scores = scorer.log_probs(Pairs([b""] * len(CORPUS), CORPUS))
    assert scores.shape == (len(CORPUS), 1)
    assert scores[:, 0] == pytest.approx([scorer.word_log_probs([sentence]).sum() for sentence in CORPUS])


def test_sums_of_sentences_are_of_their_own_values_alone():
    """A running sum would lose the small values behind the large one."""
    values = np.array([1e17, 1.0, 0.25, 0.5, 0.125])
    assert sums(values, [b"le", b"", b"le"]).tolist() == [[1e17 + 1.0], [0.25], [0.625]]
    assert sums(np.zeros(0), []).shape == (0, 1)
