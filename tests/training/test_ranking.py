"""What a ranker learns from: corruptions, the loss, the held-out figure."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import InputError
from moses_rnn.networks.ranker import Ranker, RankerConfig
from moses_rnn.training import tasks
from moses_rnn.training.corpus import CorpusConfig, build_corpus
from moses_rnn.training.ranks import Threads
from moses_rnn.training.tasks import CORRUPTIONS, HELD_OUT, RankedPairs, corrupted, hashes_of
from tests.networks import reference_slots as reference
from tests.networks.networks import weights_of, with_large_weights
from tests.training.small import FAST

NULL = 9
TARGETS = np.array([[2, 3, NULL], [5, NULL, NULL], [4, 0, 8], [6, 7, 0]])
LENGTHS = np.array([2, 1, 3, 3])


# --- corruptions --------------------------------------------------------------------------------------------------------


TIMES = 4000


def many_corruptions(*, last_only):
    """Of each target; times × targets × slots."""
    targets, lengths = np.tile(TARGETS, (TIMES, 1)), np.tile(LENGTHS, TIMES)
    result = corrupted(targets, lengths, hashes_of(np.arange(len(targets)), 1), NULL, last_only=last_only)
    return result.reshape(TIMES, *TARGETS.shape)


@pytest.mark.parametrize("last_only", [True, False])
def test_a_corruption_replaces_one_word_by_another_of_the_shortlist(last_only):
    result = many_corruptions(last_only=last_only)
    changed = result != TARGETS
    assert (changed.sum(2) == 1).all()
    assert ((result[changed] >= 2) & (result[changed] < NULL)).all()
    places = [np.flatnonzero(of_target).tolist() for of_target in changed.any(0)]
    assert places == ([[1], [0], [2], [2]] if last_only else [[0, 1], [0], [0, 1, 2], [0, 1, 2]])


def test_each_other_word_is_as_likely_and_each_place_too():
    drawn = many_corruptions(last_only=True)
    for_a_word, for_unknown = (np.bincount(drawn[:, i, LENGTHS[i] - 1], minlength=NULL) for i in (1, 3))
    assert for_a_word[[0, 1, 5]].tolist() == [0, 0, 0]
    assert for_a_word[[2, 3, 4, 6, 7, 8]].min() > TIMES / 6 - 110  # 4.6 standard deviations
    assert for_unknown[[0, 1]].tolist() == [0, 0]  # no word is replaced by <unk>
    assert for_unknown[2:].min() > TIMES / 7 - 105
    changed = (many_corruptions(last_only=False) != TARGETS).sum(0)
    assert np.abs(changed[2] - TIMES / 3).max() < 140


def test_a_corruption_follows_from_its_pair_seed_and_step_alone():
    rows = np.array([7, 3, 12])
    assert hashes_of(rows, 1, 5, 0)[1] == hashes_of(np.array([3]), 1, 5, 0)[0]
    every = [hashes_of(rows, *seeds)[0] for seeds in ((1, 5, 0), (1, 6, 0), (2, 5, 0), (1, 5, 1))]
    assert len({*every, hashes_of(rows, 1, 5, 0)[2]}) == 5


# --- the task -----------------------------------------------------------------------------------------------------------


def task(corpus, scale=1.0, corrupt="last", **changes):
    config = RankerConfig(len(corpus.source_vocabulary), len(corpus.target_vocabulary), 5, 4, 6, corrupt)
    model = with_large_weights(Ranker(config, seed=None), scale)
    return RankedPairs(model, corpus, dataclasses.replace(FAST, **changes))


def scalar_figures(learned, corpus, rows, seeds):
    """Losses of pairs and whether they are ranked wrong, number by number, of the corruptions that the seeds make."""
    weights, slots = weights_of(learned.model), 5
    losses, wrong = [], []
    for row, targets in zip(rows, corrupted_ids(learned, corpus, rows, seeds), strict=True):
        x, y = (side.take(np.array([row]))[0].tolist() for side in (corpus.source, corpus.target))
        losses.append(reference.ranker_loss(weights, x, y, targets, slots))
        wrong.append(reference.ranker_score(weights, x, y, slots) <= reference.ranker_score(weights, x, targets, slots))
    return losses, wrong


def corrupted_ids(learned, corpus, rows, seeds):
    _, targets, lengths = learned._slotted(rows)
    result = learned._corrupted(targets, lengths, hashes_of(rows, *seeds))
    return [line[:length].tolist() for line, length in zip(result, lengths, strict=True)]


@pytest.mark.parametrize("corrupt", ["last", "any"])
def test_loss_and_held_out_figure_are_the_scalar_ones(corpus, corrupt, monkeypatch):
    monkeypatch.setattr(tasks, "EVALUATION_PAIRS", 30)
    learned, rows = task(corpus, corrupt=corrupt), corpus.training[:16]
    losses, _ = scalar_figures(learned, corpus, rows, (FAST.seed, 3, tasks.LEARNING))
    cost = learned.cost(rows, 3)
    assert (cost.nats, cost.tokens) == (pytest.approx(sum(losses), rel=1e-4), 16)
    assert cost.objective.item() == cost.nats
    every = [scalar_figures(learned, corpus, corpus.held_out, (FAST.seed, n, HELD_OUT)) for n in range(CORRUPTIONS)]
    figures = learned.held_out(Threads(2))
    assert figures["hinge_per_pair"] == pytest.approx(np.mean([losses for losses, _ in every]), rel=1e-4)
    assert figures["ranked_wrong"] == pytest.approx(np.mean([wrong for _, wrong in every]), abs=1e-9)
    assert figures["ranked_right"] == 1 - figures["ranked_wrong"]
    assert learned.held_out(Threads()) == pytest.approx(figures)


def test_parts_of_a_minibatch_have_the_corruptions_of_the_whole(corpus):
    learned, rows = task(corpus), corpus.training[:16]
    parts = [learned.cost(rows[part::3], 5, part).nats for part in range(3)]
    assert sum(parts) == pytest.approx(learned.cost(rows, 5).nats, rel=1e-5)
    assert learned.cost(rows, 5).nats != learned.cost(rows, 6).nats


def test_dropout_leaves_the_same_units_out_of_a_pair_and_its_corruption(corpus):
    learned = task(corpus, scale=0.0, dropout=0.5)
    with torch.no_grad():
        learned.model.b_1.fill_(1.0)
        learned.model.w.fill_(1.0)
    assert learned.cost(corpus.training[:16], 1).nats == 16.0  # equal scores: the margin alone
    with_large_weights(learned.model)
    assert learned.cost(corpus.training[:16], 1).nats == learned.cost(corpus.training[:16], 1).nats


def test_a_score_that_is_no_number_is_no_success(corpus):
    learned = task(corpus)
    with torch.no_grad():
        learned.model.b_2.fill_(math.nan)
    assert math.isnan(learned.held_out(Threads())["ranked_wrong"])


def test_a_single_target_word_has_no_other(tmp_path):
    pairs = [(b"a", b"x"), (b"b", b"x x")]
    corpus = build_corpus(pairs, tmp_path, CorpusConfig(held_out_pairs=1))
    with pytest.raises(InputError, match="expected at least two target words, so that one can replace the other"):
        task(corpus)
