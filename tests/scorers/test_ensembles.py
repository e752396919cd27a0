"""Ensembles of model folders: what they score, and which do not belong together."""

import json

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.networks.encdec import SWITCHES
from moses_rnn.networks.ranker import RANKER
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.scorers.base import Tally
from moses_rnn.scorers.ensembles import open_ensemble
from moses_rnn.scorers.open import Model, open_model, save_model
from moses_rnn.table.table_blocks import Pairs
from tests.networks.checkpoints import encdec_checkpoint, search_checkpoint
from tests.networks.networks import encdec_network, ranker_network, search_network
from tests.scorers.pairs import SOURCE, TARGET, of_pairs
from tests.scorers.rare import ALIGNED, save_rare_model

PAIRS = [(b"s2 s3 s9", b"t2 t9"), (b"", b"t3"), (b"s4", b"")]
OTHER_SOURCE = Vocabulary([b"<unk>", b"</s>", *(b"s%d" % i for i in range(3, 10))])
OTHER_TARGET = Vocabulary([b"<unk>", b"</s>", *(b"t%d" % i for i in range(3, 9))])


@pytest.fixture
def models(tmp_path):
    search, encdec = search_network(dtype=torch.float32), encdec_network(SWITCHES["paper"], dtype=torch.float32)
    sentences = {"unit": "sentences"}
    for name, checkpoint in {
        "search": search_checkpoint(search, SOURCE, TARGET),
        "other source": search_checkpoint(search, OTHER_SOURCE, TARGET),
        "other target": search_checkpoint(search, SOURCE, OTHER_TARGET),
        "inverse": search_checkpoint(search, SOURCE, TARGET, "target-to-source"),
        "enc": encdec_checkpoint(encdec, SOURCE, TARGET, provenance=sentences),
        "phrases": encdec_checkpoint(encdec, SOURCE, TARGET),
    }.items():
        save_model(tmp_path / name, checkpoint)
    return tmp_path


def test_rankers_have_a_mean_but_not_with_log_probabilities(models):
    ranker = ranker_network(dtype=torch.float32)
    for name in ("ranker", "same"):
        save_model(models / name, Model(RANKER, ranker, {"source": SOURCE, "target": TARGET}))
    both = open_ensemble([models / "ranker", models / "same"], "mean-log")
    assert both.unbounded
    scorer = both.make_scorer()
    assert scorer.unbounded
    assert of_pairs(scorer, PAIRS).max() > 0
    np.testing.assert_allclose(of_pairs(scorer, PAIRS), of_pairs(open_model(models / "same").make_scorer(), PAIRS))
    assert both.meaning.endswith("s(source, target) of the ranker, unbounded and no log-probability, without </s>")
    with pytest.raises(CheckpointError, match="expected a network that writes, found: ranker"):
        open_ensemble([models / "ranker", models / "same"]).make_scorer()
    with pytest.raises(CheckpointError, match="the score of .*phrases in an ensemble, log p, found RANK"):
        open_ensemble([models / "phrases", models / "ranker"], "mean-log")


def test_a_word_that_a_member_does_not_know_is_unknown_to_it_alone(models):
    folders = [models / "search", models / "other source"]
    ensemble = open_ensemble(folders, "mean-log")
    scores = of_pairs(ensemble.make_scorer(), PAIRS)
    members = [of_pairs(open_model(folder).make_scorer(), PAIRS) for folder in folders]
    np.testing.assert_allclose(scores, sum(members) / 2, rtol=1e-5)
    assert not np.allclose(*members)


def test_a_mean_of_logs_counts_what_its_members_met(models):
    ensemble = open_ensemble([models / "search", models / "other source"], "mean-log")
    tally = Tally(unknown=5)
    pairs = [(b"s2", b"t2"), (b"s9", b"t3"), (b"s2 s4", b"t4")]
    ensemble.make_scorer().log_probs(Pairs.of(pairs), tally)
    assert tally == Tally(unknown=5 + 2)  # the first one does not know s9, the other s2
    assert ensemble.make_scorer().log_probs(Pairs([], [])).shape == (0,)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ("inverse", "direction of .*search in an ensemble, source-to-target, found target-to-source"),
        ("phrases", "unit of .*search in an ensemble, sentences, found phrases"),
        ("other target", r"words in target\.vocab of .*search in an ensemble"),
    ],
)
def test_what_does_not_belong_together_is_refused(models, other, what):
    with pytest.raises(CheckpointError, match=f"{other}: expected the {what}"):
        open_ensemble([models / "search", models / other])


def test_members_that_annotate_rare_words_do_so_alike(tmp_path):
    alike = [save_rare_model(tmp_path / name) for name in ("one", "two")]
    ensemble = open_ensemble(alike)
    sources, targets, links = map(list, zip(*ALIGNED, strict=True))
    pairs = Pairs(sources, targets, links)
    scores, of_one = (model.make_scorer().log_probs(pairs) for model in (ensemble, open_model(alike[0])))
    np.testing.assert_allclose(scores, of_one, rtol=1e-5)
    other = save_rare_model(tmp_path / "other", window=2)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"rare": {"kind": "posunk", "window": 1}}))
    with pytest.raises(CheckpointError, match=r"expected the rare words of .*one in an ensemble, posunk, window 2, .*"):
        open_ensemble([alike[0], other])
