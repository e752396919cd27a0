"""From what a user asks for to what scores it: models on disk, and those that are refused."""

import math
from dataclasses import fields

import numpy as np
import pytest

from moses_rnn.errors import FormatError
from moses_rnn.formats.nbest import parse_nbest_line
from moses_rnn.formats.text_phrases import AlignedPhrases
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.cslm import CSLM
from moses_rnn.producers.cslm import CslmProducer
from moses_rnn.producers.open import open_model
from moses_rnn.scoring.hypotheses import AlignedHypothesis, PhraseSum, WholeHypothesis
from moses_rnn.scoring.nbest_features import make_features
from moses_rnn.scoring.nbest_request import ListRequest
from tests.models.checkpoints import make_producer
from tests.producers.pairs import of_pairs
from tests.producers.rare import ALIGNED, save_rare_model

SEGMENTED = b"0 ||| t2 t9 ||| F= 1 ||| 1 ||| 0=0 1=1\n"
UNSEGMENTED = b"0 ||| t2 t9 ||| F= 1 ||| 1 ||| 0-0 1-1 \n"
EMPTY = b"0 ||| ||| F= 1 ||| 1 ||| |||\n"


NOTHING = {
    **dict.fromkeys(field.name for field in fields(ListRequest)),
    **dict.fromkeys(("add", "ensembles", "shares"), ()),
    "device": "cpu",
}


def features_of(line=SEGMENTED, **wanted):
    first = line and parse_nbest_line(line, "n", 1)
    return dict(make_features(first, "n", ListRequest(**{**NOTHING, **wanted})))


def values(feature, hypotheses, sources=None):
    lines = [parse_nbest_line(b"0 ||| %b ||| F= 1 ||| 1" % text, "n", 1) for text in hypotheses]
    return feature.scores(lines, sources or [b"s2 s3"] * len(lines))[:, 0].tolist()


def test_nothing_asked_for_is_nothing():
    assert features_of() == {}


def test_the_word_penalty_is_behind_the_models(models):
    found = features_of(word_penalty=models / "words", add=(models / "inverse", models / "rnn"))
    assert list(found) == ["RNNInverse", "RNN", "WP"]


def test_the_cslm_scores_hypotheses(models):
    feature = features_of(add=(models / "cslm",))["CSLM"]
    assert isinstance(feature, WholeHypothesis)
    expected = CslmProducer(load_checkpoint(models / "cslm", CSLM)).log_probs([], [b"t2 t9", b""])[:, 0]
    assert values(feature, [b"t2 t9", b""]) == expected.tolist()


@pytest.mark.parametrize(("name", "folder"), [("RNN", "rnn"), ("RNNInverse", "inverse")])
@pytest.mark.parametrize(
    ("line", "whole", "kind"),
    [
        (SEGMENTED, False, PhraseSum),
        (EMPTY, False, PhraseSum),  # says nothing about the lines to come
        (SEGMENTED, True, WholeHypothesis),
        (UNSEGMENTED, True, WholeHypothesis),
        (None, False, WholeHypothesis),  # an empty list
    ],
)
def test_networks_score_phrases_unless_they_shall_not(models, name, folder, line, whole, kind):
    feature = features_of(line, whole=whole, add=(models / folder,))[name]
    assert type(feature) is kind
    pairs = [(b"s2 s3", b"t2")]
    expected = of_pairs(make_producer(load_checkpoint(models / folder)), pairs)
    np.testing.assert_allclose(of_pairs(feature.producer, pairs), expected, rtol=1e-5)
    assert feature.producer.name == name


@pytest.mark.parametrize(("name", "folder"), [("SEARCH", "search"), ("RNN", "sentences")])
def test_networks_of_sentences_score_whole_hypotheses(models, name, folder):
    feature = features_of(SEGMENTED, add=(models / folder,))[name]
    assert type(feature) is WholeHypothesis
    assert feature.of_sources
    assert "of sentences" in feature.producer.meaning
    expected = of_pairs(open_model(models / folder).make_producer(), [(b"s2 s3", b"t2 t9"), (b"s2 s3", b"")])
    np.testing.assert_allclose(values(feature, [b"t2 t9", b""]), expected[:, 0], rtol=1e-5)


@pytest.mark.parametrize("of", ["rnn", "inverse", "cslm", "words"])  # of the hypothesis's side each
def test_the_word_penalty_counts_what_is_outside(models, of):
    feature = features_of(UNSEGMENTED, word_penalty=models / of)["WP"]
    assert isinstance(feature, WholeHypothesis)
    assert values(feature, [b"t2 t3 t4", b"t3 t9", b"x </s>"]) == [0, -1, -2]


def test_an_n_gram_model_scores_in_natural_logarithms(models):
    pytest.importorskip("kenlm")
    feature = features_of(add=(models / "lm.arpa",))["KENLM"]
    of_bigrams = -0.25 - 0.5 - 0.75  # <s> t2, t2 t9, </s>
    backed_off = -0.3 - 0.875 - 0.5 - 0.25 - 0.75  # <s>'s weight, t9, t2, t2's weight, </s>
    assert values(feature, [b"t2 t9", b"t9 t2"]) == pytest.approx(math.log(10) * np.array([of_bigrams, backed_off]))


def test_words_outside_the_shortlist_are_backed_off(models):
    pytest.importorskip("kenlm")
    plain = features_of(add=(models / "cslm",))["CSLM"]
    feature = features_of(add=(models / "cslm",), backoff=str(models / "lm.arpa"))["CSLM"]
    texts = [b"t2 t3", b"t3 t9", b"t3 t8", b"t3 other"]
    shares = np.exp(np.subtract(values(feature, texts), values(plain, texts)))
    outside = 10**-0.875 + 10**-1.25 + 10**-1  # t9, t8 and whatever <unk> is
    assert shares == pytest.approx([1, *(10**log_p / outside for log_p in (-0.875, -1.25, -1))], rel=1e-5)
    assert feature.producer.meaning.endswith("words outside the shortlist backed off to an n-gram model")


@pytest.mark.parametrize(("name", "folder"), [("NPLM", "nplm"), ("RNNLM", "rnnlm")])
def test_language_models_score_whole_hypotheses(models, name, folder):
    feature = features_of(add=(models / folder,))[name]
    assert type(feature) is WholeHypothesis
    expected = open_model(models / folder, of_pairs=False).make_producer().log_probs([], [b"t2 t9", b""])
    assert values(feature, [b"t2 t9", b""]) == expected[:, 0].tolist()


def test_several_language_models_are_a_mixture(models):
    folders = (models / "rnnlm", models / "rnnlm2", models / "nplm")
    feature = features_of(ensembles=(folders,))["ENS"]
    words = np.stack(
        [open_model(folder, of_pairs=False).make_language_model().word_log_probs([b"t2 t9"]) for folder in folders]
    )
    assert values(feature, [b"t2 t9"]) == pytest.approx([np.log(np.exp(words).mean(0)).sum()])
    mean = features_of(ensembles=(folders,), combine="mean-log")["ENS"]
    assert values(mean, [b"t2 t9"]) == pytest.approx([words.mean(0).sum()])


def test_an_n_gram_model_may_be_part_of_a_mixture(models):
    """Bengio's network and an n-gram model at 0.5 are what the paper has; words outside are backed off."""
    pytest.importorskip("kenlm")
    arpa = str(models / "lm.arpa")
    paths = (models / "nplm", models / "lm.arpa")
    each = [features_of(add=paths[:1], backoff=arpa), features_of(add=paths[1:])]
    words = [next(iter(one.values())).producer.word_log_probs([b"t2 t9 t8"]) for one in each]
    for shares in ((), (0.25, 0.75)):
        mixture = features_of(ensembles=(paths,), backoff=arpa, shares=shares)["ENS"]
        a, b = shares or (0.5, 0.5)
        expected = np.log(a * np.exp(words[0]) + b * np.exp(words[1])).sum()
        assert values(mixture, [b"t2 t9 t8"]) == pytest.approx([expected])


ALIGNED_LINE = b"0 ||| t2 t8 ||| F= 1 ||| 1 ||| 0-1=0-1 ||| 0-0 1-1\n"


@pytest.fixture
def rare(tmp_path):
    return save_rare_model(tmp_path / "rare")


def test_a_network_of_rare_words_annotates_hypotheses_by_their_alignments(rare):
    feature = features_of(ALIGNED_LINE, add=(rare,))["SEARCH"]
    assert type(feature) is AlignedHypothesis
    assert feature.of_sources
    sources, targets, links = map(list, zip(*ALIGNED, strict=True))
    lines = [
        parse_nbest_line(b"0 ||| %b ||| F= 1 ||| 1 ||| %b" % pair, "n", 1) for pair in zip(targets, links, strict=True)
    ]
    expected = open_model(rare).make_producer().log_probs(AlignedPhrases(sources, lambda: links), targets)
    for times in (1, 2):
        values = feature.scores(lines * times, sources * times)
        np.testing.assert_allclose(values, np.concatenate([expected] * times), rtol=1e-5)
    assert feature.scores([], []).shape == (0, 1)


@pytest.mark.parametrize("how", ["add", "ensembles"])
def test_without_alignments_it_is_refused_before_it_is_loaded(rare, how):
    (rare / "model.safetensors").unlink()
    wanted = {"add": (rare,), "ensembles": ((rare, rare),)}[how]
    with pytest.raises(
        FormatError, match=r"^n:1: expected the alignment of a hypothesis behind its total, found none"
    ) as error:
        features_of(SEGMENTED, **{how: wanted})
    assert "-print-alignment-info-in-n-best" in error.value.advice


def test_without_links_to_need_hypotheses_are_scored_as_they_are(tmp_path):
    folder = save_rare_model(tmp_path / "noalign", "noalign")
    feature = features_of(SEGMENTED, add=(folder,), whole=True)["SEARCH"]
    assert type(feature) is WholeHypothesis
    assert np.isfinite(values(feature, [b"t2 t9", b""])).all()


def test_an_ensemble_of_networks_of_rare_words_annotates_too(rare):
    (feature,) = features_of(ALIGNED_LINE, ensembles=((rare, rare),)).values()
    assert type(feature) is AlignedHypothesis
