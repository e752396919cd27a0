import numpy as np
import pytest

import moses_rnn
from moses_rnn.models.open import open_language_model
from moses_rnn.table.table_blocks import Pairs

SENTENCES = ["t2 t3", b"t9", "", "t2 t3"]


@pytest.mark.parametrize("name", ["cslm", "nplm", "rnnlm"])
def test_scores_are_those_of_the_network(models, name):
    model = moses_rnn.load_language_model(models / name, device="cpu")
    scores = model.score(SENTENCES)
    scorer = open_language_model(models / name).make_language_model()
    assert scores == pytest.approx(scorer.log_probs(Pairs.of((b"", s) for s in [b"t2 t3", b"t9", b"", b"t2 t3"])))
    assert list(model.score_iter(iter(SENTENCES), chunk=3)) == pytest.approx(scores)
    assert scores.dtype == np.float64
    assert model.word_scores("t2 t3").sum() == pytest.approx(scores[0])


@pytest.mark.parametrize("name", ["cslm", "nplm", "rnnlm"])
def test_words_have_vectors_and_neighbours(models, name):
    model = moses_rnn.load_language_model(models / name, device="cpu")
    words, vectors = model.word_vectors()
    assert len(words) == len(vectors)
    ((nearest,),) = model.nearest([words[0]], count=1)
    assert nearest.phrase in words[1:]
    with pytest.raises(moses_rnn.ArgumentError, match="side: expected one of target, found 'source'"):
        model.nearest([words[0]], side="source")
    with pytest.raises(moses_rnn.CheckpointError, match="expected a network of sources and targets"):
        model.nearest([words[0]], among=["t2"])
