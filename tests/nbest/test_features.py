"""From what a user asks for to what scores it: models on disk, and those that are refused."""

import numpy as np
import pytest

from moses_rnn.models.open import open_model
from moses_rnn.moses.nbest import parse_nbest_line
from moses_rnn.nbest.features import make_features
from moses_rnn.nbest.request import ListRequest
from moses_rnn.table.table_blocks import Pairs
from tests.models.pairs import of_pairs
from tests.models.rare import ALIGNED, save_rare_model
from tests.models.tiny_lm import BackoffModel
from tests.networks.checkpoints import make_scorer

SEGMENTED = b"0 ||| t2 t9 ||| F= 1 ||| 1 ||| 0=0 1=1\n"
UNSEGMENTED = b"0 ||| t2 t9 ||| F= 1 ||| 1 ||| 0-0 1-1 \n"
EMPTY = b"0 ||| ||| F= 1 ||| 1 ||| |||\n"


def features_of(line=SEGMENTED, **wanted):
    first = line and parse_nbest_line(line, "n", 1)
    return dict(make_features(first, "n", ListRequest(nbest="n", device="cpu", **wanted)))


def values(feature, hypotheses, sources=None):
    lines = [parse_nbest_line(b"0 ||| %b ||| F= 1 ||| 1" % text, "n", 1) for text in hypotheses]
    return feature.scores(lines, sources or [b"s2 s3"] * len(lines), "n").tolist()


@pytest.mark.parametrize(("name", "folder"), [("RNN", "rnn"), ("RNNInverse", "inverse")])
@pytest.mark.parametrize(
    ("line", "sentences", "summed"),
    [
        (SEGMENTED, False, True),
        (EMPTY, False, True),  # says nothing about the lines to come
        (SEGMENTED, True, False),
        (UNSEGMENTED, True, False),
        (None, False, False),  # an empty list
    ],
)
def test_networks_score_phrases_unless_they_shall_not(models, name, folder, line, sentences, summed):
    feature = features_of(line, whole=sentences, add=(models / folder,))[name]
    assert (feature.aligned, feature.summed) == (False, summed)
    pairs = [(b"s2 s3", b"t2")]
    expected = of_pairs(make_scorer(open_model(models / folder)), pairs)
    np.testing.assert_allclose(of_pairs(feature.scorer, pairs), expected, rtol=1e-5)
    assert feature.scorer.name == name


@pytest.mark.parametrize("of", ["rnn", "inverse", "cslm", "words"])
def test_the_word_penalty_counts_what_is_outside(models, of):
    feature = features_of(UNSEGMENTED, word_penalty=models / of)["WP"]
    assert not feature.aligned
    assert not feature.summed
    side = b"s" if of == "inverse" else b"t"  # an inverse network reads the hypotheses' language
    hypotheses = [b"t2 t3 t4", b"t3 t9", b"x </s>"]
    assert values(feature, [one.replace(b"t", side) for one in hypotheses]) == [0, -1, -2]


def test_words_that_stand_for_others_are_unknown(models, tmp_path):
    knows = features_of(UNSEGMENTED, add=(models / "cslm",))["CSLM"].knows_target
    assert [knows(word) for word in (b"t2", b"t9", b"<unk>", b"<s>", b"</s>")] == [True, False, False, False, False]
    pytest.importorskip("kenlm")
    (tmp_path / "lm").write_bytes(
        BackoffModel({"</s>": 0.5, "t2": 0.25, "<unk>": 0.25}, {("t2",): {"</s>": 0.5}}).arpa()
    )
    knows = features_of(UNSEGMENTED, add=(tmp_path / "lm",))["KENLM"].knows_target
    assert [knows(word) for word in (b"t2", b"t9", b"<unk>", b"<s>", b"</s>")] == [True, False, False, False, False]


ALIGNED_LINE = b"0 ||| t2 t8 ||| F= 1 ||| 1 ||| 0-1=0-1 ||| 0-0 1-1\n"


@pytest.fixture
def rare(tmp_path):
    return save_rare_model(tmp_path / "rare")


def test_a_network_of_rare_words_annotates_hypotheses_by_their_alignments(rare):
    feature = features_of(ALIGNED_LINE, add=(rare,))["SEARCH"]
    assert feature.aligned
    assert not feature.summed
    assert feature.of_sources
    sources, targets, links = map(list, zip(*ALIGNED, strict=True))
    lines = [
        parse_nbest_line(b"0 ||| %b ||| F= 1 ||| 1 ||| %b" % pair, "n", 1) for pair in zip(targets, links, strict=True)
    ]
    expected = open_model(rare).make_scorer().log_probs(Pairs(sources, targets, links))
    for times in (1, 2):
        values = feature.scores(lines * times, sources * times, "n")
        np.testing.assert_allclose(values, np.concatenate([expected] * times), rtol=1e-5)
    assert feature.scores([], [], "n").shape == (0,)


def test_without_links_to_need_hypotheses_are_scored_as_they_are(tmp_path):
    folder = save_rare_model(tmp_path / "noalign", "noalign")
    feature = features_of(SEGMENTED, add=(folder,), whole=True)["SEARCH"]
    assert not feature.aligned
    assert not feature.summed
    assert np.isfinite(values(feature, [b"t2 t9", b""])).all()


def test_an_ensemble_of_networks_of_rare_words_annotates_too(rare):
    (feature,) = features_of(ALIGNED_LINE, ensembles=((rare, rare),)).values()
    assert feature.aligned
    assert not feature.summed
