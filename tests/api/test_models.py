"""A loaded network of pairs: its scores are those of the commands, from any iterable and in streams."""

import itertools
import pickle

import numpy as np
import pytest

import moses_rnn
from moses_rnn.models.open import open_model
from moses_rnn.native import native_core
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.table.table_blocks import Pairs
from tests.models.pairs import SOURCE, TARGET, random_pairs
from tests.networks import reference
from tests.networks.networks import weights_of

PAIRS = [(source.decode(), target) for source, target in random_pairs(60)]


def by_scorer(folder):
    sources, targets = zip(*PAIRS, strict=True)
    return open_model(folder).make_scorer().log_probs(Pairs([s.encode() for s in sources], targets))


@pytest.mark.parametrize("name", ["rnn", "inverse", "search"])
def test_scores_are_those_of_the_network(models, name):
    model = moses_rnn.load(models / name, device="cpu")
    scores = model.score(iter(PAIRS))
    assert scores.dtype == np.float64
    assert scores == pytest.approx(by_scorer(models / name), rel=1e-5)
    assert model.score(*zip(*PAIRS, strict=True)) == pytest.approx(scores, rel=1e-6)
    assert model.inverse == (name == "inverse")
    exact = moses_rnn.load(models / name, device="cpu", precision="fp64")
    assert exact.score(PAIRS) == pytest.approx(scores, rel=1e-4)
    assert "fp64>" in repr(exact)  # without the native core


def test_a_model_that_has_scored_can_be_pickled(models):
    for folders in (models / "rnn", [models / "search", models / "search"]):
        model = moses_rnn.load(folders, device="cpu")
        scores = model.score(PAIRS)
        assert pickle.loads(pickle.dumps(model)).score(PAIRS).tolist() == scores.tolist()
    model = moses_rnn.load_language_model(models / "cslm", device="cpu")
    assert pickle.loads(pickle.dumps(model)).word_scores("s2").tolist() == model.word_scores("s2").tolist()


def test_a_stream_is_scored_as_it_comes(encdec):
    endless = itertools.cycle(PAIRS)
    stream = encdec.score_iter(endless, chunk=7)
    assert list(itertools.islice(stream, 60)) == pytest.approx(encdec.score(PAIRS), rel=1e-5)


def test_nothing_has_no_scores(encdec):
    assert encdec.score([]).shape == (0,)
    assert list(encdec.score_iter(iter(()))) == []


def test_pairs_that_need_an_alignment_are_scored_with_it(models):
    rare = moses_rnn.load(models / "rare", device="cpu")
    two, other = rare.score([("s2 s8", "t2 t8", "0-0 1-1"), ("s2 s8", "t2 t8", "")])
    assert two != other
    rules = moses_rnn.load(models / "rules", device="cpu")
    assert rules.score([("s2 [X][X] [X]", b"[X][X] t2 [X]", "1-0")]).shape == (1,)
    factored = moses_rnn.load(models / "factored", device="cpu")
    assert factored.score([("a|s2", "t2")]) == pytest.approx(moses_rnn.load(models / "rnn").score([("s2", "t2")]))


def test_phrases_are_summed_up(models, encdec, search):
    network = open_model(models / "rnn").network
    ids = [[*SOURCE.ids(phrase), END_ID] for phrase in ([b"s2", b"s3"], [b"?"])]
    expected = [reference.summary(weights_of(network), one, vars(network.config)) for one in ids]
    np.testing.assert_allclose(encdec.summaries(iter(["s2  s3", b"?"])), expected, rtol=1e-4, atol=1e-6)
    width = network.config.hidden_size
    assert (encdec.summaries([]).shape, search.summaries(["s2"]).shape[0]) == ((0, width), 1)
    with pytest.raises(moses_rnn.InputError, match=r"phrases:2: expected"):
        encdec.summaries(["s2", " "])
    with pytest.raises(moses_rnn.CheckpointError, match="expected a single network"):
        moses_rnn.load([models / "rnn"] * 2).summaries(["s2"])


def test_neighbours_are_words_or_what_they_are_chosen_from(models, encdec):
    words, vectors = encdec.word_vectors("target")
    assert (words, vectors.shape, vectors.dtype) == ([w.decode() for w in TARGET.words[2:]], (6, 3), np.float64)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ((first, second),) = encdec.nearest(["t3"], side="target", count=2)
    cosines = np.delete(directions @ directions[words.index("t3")], words.index("t3"))
    assert [first.cosine, second.cosine] == pytest.approx(sorted(cosines)[:-3:-1], abs=1e-6)
    assert first.phrase in words
    among = ["s2  s3", b"s4", "s4", "s5 s6"]
    near, other = encdec.nearest(iter(["s2 s3", "s7"]), among=iter(among))
    assert {one.phrase for one in near} == {"s4", "s5 s6"}
    assert len(other) == 3
    vectors = encdec.summaries(["s2 s3", near[0].phrase])
    assert near[0].cosine == pytest.approx(vectors[0] @ vectors[1] / np.prod(np.linalg.norm(vectors, axis=1)))
    with pytest.raises(moses_rnn.CheckpointError, match="expected a single network"):
        moses_rnn.load([models / "rnn"] * 2).word_vectors()


def test_it_says_what_it_is(models, encdec, search):
    core = ", native core" * (native_core() is not None)
    assert repr(encdec) == (
        f"<moses_rnn.Model '{models / 'rnn'}': log p(target | source) of the RNN Encoder-Decoder, natural, both </s> "
        f"included; {len(SOURCE)} and {len(TARGET)} words; cpu, fp32{core}>"
    )
    assert (encdec.name, encdec.network, encdec.learned_sentences) == ("RNN", "RNN Encoder-Decoder", False)
    assert (search.name, search.network, search.learned_sentences) == ("SEARCH", "RNNsearch of sentences", True)
    assert encdec.folders == (models / "rnn",)
