"""Ensembles against their formulas; of model folders, which of them do not belong together."""

import shutil
from math import exp, log

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.base import Tally
from moses_rnn.models.ensembles import COMBINATIONS, EnsembleStepper, open_models
from moses_rnn.models.model import Model
from moses_rnn.models.open import open_model, save_model
from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.networks.ranker import RANKER
from moses_rnn.networks.rnnsearch import RnnSearchStepper
from moses_rnn.networks.steps import Candidates
from moses_rnn.networks.vocabulary import END_ID, Vocabulary
from moses_rnn.table.table_blocks import Pairs
from tests.models.pairs import SOURCE, TARGET, of_pairs
from tests.models.rare import ALIGNED, save_rare_model
from tests.networks import reference, reference_rnnsearch
from tests.networks.checkpoints import encdec_checkpoint, search_checkpoint
from tests.networks.id_pairs import flat, random_pairs, score
from tests.networks.networks import CUSTOM, encdec_network, ranker_network, search_network, weights_of
from tests.networks.saved import edit_config

PAIRS = [(b"s2 s3 s9", b"t2 t9"), (b"", b"t3"), (b"s4", b"")]
OTHER_SOURCE = Vocabulary([b"<unk>", b"</s>", *(b"s%d" % i for i in range(3, 10))])
OTHER_TARGET = Vocabulary([b"<unk>", b"</s>", *(b"t%d" % i for i in range(3, 9))])
SEARCH, ENCDEC = search_network(), encdec_network(CUSTOM[0])
STEPPERS = RnnSearchStepper(SEARCH, dtype=torch.float64), EncDecStepper(ENCDEC, dtype=torch.float64)
SAME = np.arange(9)


def ensemble(combination, steppers=STEPPERS, ids=SAME):
    return EnsembleStepper([(stepper, ids) for stepper in steppers], combination)


def combine(distributions, kind):
    """log p(y) for each word y, from each member's probabilities."""
    count = len(distributions)
    if kind == "arithmetic":
        return [log(total / count) for total in reference.add(*distributions)]
    means = [total / count for total in reference.add(*([log(p) for p in member] for member in distributions))]
    norm = log(sum(map(exp, means))) if kind == "geometric" else 0.0  # mean-log is no distribution
    return [mean - norm for mean in means]


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_equals_the_scalar_formulas(combination):
    pairs = random_pairs(20)
    values = score(ensemble(combination), pairs)
    for value, (source, target) in zip(values, pairs, strict=True):
        ids = [*source, END_ID], [*target, END_ID]
        members = [
            reference_rnnsearch.distributions(weights_of(SEARCH), *ids, {"phases": "paper"}),
            reference.distributions(weights_of(ENCDEC), *ids, CUSTOM[0]),
        ]
        steps = [combine(of_step, combination) for of_step in zip(*members, strict=True)]
        expected = sum(log_p[word] for log_p, word in zip(steps, ids[1], strict=True))
        assert value == pytest.approx(expected, abs=1e-10)


def test_members_may_number_source_words_otherwise():
    turned = np.array([0, 1, *range(8, 1, -1)])
    pairs = random_pairs(20)
    mapped = [(turned[source].tolist() if source else source, target) for source, target in pairs]
    np.testing.assert_allclose(score(ensemble("geometric", ids=turned), pairs), score(ensemble("geometric"), mapped))


def test_the_alignment_is_the_mean_of_those_that_have_one():
    alphas = []
    for stepper in (ensemble("geometric"), STEPPERS[0], ensemble("geometric", STEPPERS[1:])):
        encoded, row_of = stepper.encode(*flat([[2, 3], [4]]))
        alpha = stepper.alignment(encoded, stepper.start(encoded))
        alphas.append(None if alpha is None else alpha[row_of])
    torch.testing.assert_close(alphas[0], alphas[1])
    assert alphas[2] is None


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_each_member_is_normalised_over_candidates(combination):
    candidates = Candidates(torch.tensor([0, END_ID, 3, 6]), torch.ones(1, 4, dtype=torch.bool))
    of_all, *of_members = (
        stepper.next_log_probs(encoded, stepper.start(encoded), candidates)[0].exp().tolist()
        for stepper in (ensemble(combination), *STEPPERS)
        for encoded, _ in [stepper.encode(*flat([[2, 3]]))]
    )
    assert of_all == pytest.approx(list(map(exp, combine(of_members, combination))), abs=1e-12)


# --- of folders


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
    both = open_models([models / "ranker", models / "same"], "mean-log")
    assert both.unbounded
    scorer = both.make_scorer()
    assert scorer.unbounded
    assert of_pairs(scorer, PAIRS).max() > 0
    np.testing.assert_allclose(of_pairs(scorer, PAIRS), of_pairs(open_model(models / "same").make_scorer(), PAIRS))
    assert both.meaning.endswith("s(source, target) of the ranker, unbounded and no log-probability, without </s>")
    with pytest.raises(
        CheckpointError, match=r"expected a network that writes word by word, found: ranker\n.*mean-log"
    ):
        open_models([models / "ranker", models / "same"])
    with pytest.raises(CheckpointError, match="the score of .*phrases in an ensemble, log p, found RANK"):
        open_models([models / "phrases", models / "ranker"], "mean-log")


def test_a_word_that_a_member_does_not_know_is_unknown_to_it_alone(models):
    folders = [models / "search", models / "other source"]
    ensemble = open_models(folders, "mean-log")
    scores = of_pairs(ensemble.make_scorer(), PAIRS)
    members = [of_pairs(open_model(folder).make_scorer(), PAIRS) for folder in folders]
    np.testing.assert_allclose(scores, sum(members) / 2, rtol=1e-5)
    assert not np.allclose(*members)


def test_a_mean_of_logs_counts_what_its_members_met(models):
    ensemble = open_models([models / "search", models / "other source"], "mean-log")
    tally = Tally(unknown=5)
    pairs = [(b"s2", b"t2"), (b"s9", b"t3"), (b"s2 s4", b"t4")]
    ensemble.make_scorer().log_probs(Pairs.of(pairs), tally)
    assert tally == Tally(unknown=5 + 2)  # the first one does not know s9, the other s2
    assert ensemble.make_scorer().log_probs(Pairs([], [])).shape == (0,)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ("inverse", "direction of .*search in an ensemble, source-to-target, found target-to-source"),
        ("other target", r"words in target\.vocab of .*search in an ensemble"),
    ],
)
def test_what_does_not_belong_together_is_refused(models, other, what):
    with pytest.raises(CheckpointError, match=f"{other}: expected the {what}"):
        open_models([models / "search", models / other])


def test_members_read_the_same_factors(models, tmp_path):
    shutil.copytree(models / "phrases", tmp_path / "factored")
    edit_config(tmp_path / "factored", provenance={"phrases": {"source_factor": 1}})
    with pytest.raises(CheckpointError, match=r"factored: expected the form of phrases of .*phrases in an ensemble"):
        open_models([models / "phrases", tmp_path / "factored"])


def test_members_that_annotate_rare_words_do_so_alike(tmp_path):
    alike = [save_rare_model(tmp_path / name) for name in ("one", "two")]
    ensemble = open_models(alike)
    sources, targets, links = map(list, zip(*ALIGNED, strict=True))
    pairs = Pairs(sources, targets, links)
    scores, of_one = (model.make_scorer().log_probs(pairs) for model in (ensemble, open_model(alike[0])))
    np.testing.assert_allclose(scores, of_one, rtol=1e-5)
    other = save_rare_model(tmp_path / "other")
    edit_config(other, rare={"kind": "posunk", "window": 1})
    with pytest.raises(CheckpointError, match=r"expected the rare words of .*one in an ensemble, posunk, window 2, .*"):
        open_models([alike[0], other])
