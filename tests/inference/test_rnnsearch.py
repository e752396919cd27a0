"""RNNsearch arranged for scoring, against the scalar equations, in each precision, fused and not."""

import itertools

import numpy as np
import pytest
import torch

from moses_rnn.inference import rnnsearch
from moses_rnn.inference.rnnsearch import RnnSearchStepper
from moses_rnn.models.hardware import COMPILED
from moses_rnn.models.vocabulary import END_ID
from tests.inference.id_pairs import random_pairs, score
from tests.inference.pretended_device import DEVICE, pretended_device
from tests.models import reference_rnnsearch as reference
from tests.models.networks import search_network, weights_of

SWITCHES = list(itertools.product(("paper", "groundhog"), (0, 3)))


@pytest.mark.parametrize(("phases", "rank"), SWITCHES)
def test_equals_the_scalar_equations(phases, rank):
    model = search_network(phases, rank)
    pairs = random_pairs(60)
    values = score(RnnSearchStepper(model, dtype=torch.float64), pairs)
    weights = weights_of(model)
    for value, (source, target) in zip(values, pairs, strict=True):
        ids = [*source, END_ID], [*target, END_ID]
        assert value == pytest.approx(reference.log_prob(weights, *ids, {"phases": phases}), abs=1e-10)


@pytest.mark.parametrize("phases", ["paper", "groundhog"])
def test_alignments_equal_the_scalar_equations(phases):
    model = search_network(phases)
    stepper = RnnSearchStepper(model, dtype=torch.float64)
    sources, target = [[2, 3, 4], [5]], [6, 2]
    terms, row_of = stepper.read(np.array([2, 3, 4, 5]), np.array([3, 1]))
    for source, row in zip(sources, row_of, strict=True):
        expected = reference.alignments(weights_of(model), [*source, END_ID], [*target, END_ID], {"phases": phases})
        prefixes = stepper.start(terms)
        for step in range(len(target) + 1):
            alpha = stepper.alignment(terms, prefixes)[row].tolist()
            assert alpha[: len(source) + 1] == pytest.approx(expected[step], abs=1e-12)
            assert not any(alpha[len(source) + 1 :])
            if step < len(target):
                every = torch.arange(len(terms.s_0))
                prefixes = stepper.step(terms, prefixes, every, torch.full((len(every),), target[step]))


def test_an_empty_source_is_aligned_to_its_end():
    stepper = RnnSearchStepper(search_network())
    terms, _ = stepper.read(np.zeros(0, np.int64), np.array([0]))
    assert stepper.alignment(terms, stepper.start(terms)).tolist() == [[1.0]]


def test_without_weights_of_its_own_an_alignment_is_uniform():
    model = search_network()
    with torch.no_grad():
        model.align.v.zero_()
    stepper = RnnSearchStepper(model)
    terms, _ = stepper.read(np.array([2, 3, 4]), np.array([3]))
    assert stepper.alignment(terms, stepper.start(terms)).tolist() == [[0.25] * 4]


def test_every_distribution_sums_to_one():
    stepper = RnnSearchStepper(search_network())
    terms, _ = stepper.read(np.array([2, 3, 4, 5]), np.array([3, 1]))
    log_probs = stepper.next_log_probs(terms, stepper.start(terms))
    assert log_probs.dtype == torch.float64
    np.testing.assert_allclose(log_probs.exp().sum(1), 1)


def test_what_is_looked_at_in_pieces_is_the_same(monkeypatch):
    stepper = RnnSearchStepper(search_network(dtype=torch.float32))
    pairs = random_pairs(50)
    whole = score(stepper, pairs)
    monkeypatch.setattr(rnnsearch, "ENERGIES_AT_ONCE", 100)
    np.testing.assert_allclose(score(stepper, pairs), whole, rtol=1e-5)


def test_a_score_depends_on_its_pair_alone():
    stepper = RnnSearchStepper(search_network(dtype=torch.float32))
    pairs = random_pairs(20)
    alone = [score(stepper, [pair])[0] for pair in pairs]
    np.testing.assert_allclose(score(stepper, pairs), alone, rtol=1e-5)


def test_bfloat16_products_stay_near():
    model = search_network(dtype=torch.float32, scale=0.3)
    pairs = random_pairs(300)
    exact = score(RnnSearchStepper(model, dtype=torch.float64), pairs)
    rough = score(RnnSearchStepper(model, dtype=torch.bfloat16), pairs)
    assert np.abs(rough - exact).mean() < 0.02


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
def test_compiled_and_eager_work_agree():
    model = search_network(dtype=torch.float32)
    pairs = random_pairs(100)
    fused = RnnSearchStepper(model, kernel=COMPILED)
    np.testing.assert_allclose(score(fused, pairs), score(RnnSearchStepper(model), pairs), rtol=1e-5)


def test_on_a_device_nothing_is_left_behind_and_no_step_waits():
    model, waits = search_network(dtype=torch.float32), []
    for words in (1, 7):
        pairs = [([2, 3, 4], [5] * words), ([6], [7] * words)]
        expected = score(RnnSearchStepper(model), pairs)
        with pretended_device() as device:
            values = score(RnnSearchStepper(model, DEVICE), pairs)
        np.testing.assert_allclose(values, expected, rtol=1e-5)
        waits.append(len(device.waits))
    assert waits[0] == waits[1]


def test_a_summary_is_the_state_before_the_first_look():
    model = search_network()
    stepper, weights = RnnSearchStepper(model, dtype=torch.float64), weights_of(model)
    sources = [[2, 3, 4], [5], []]
    terms, row_of = stepper.read(np.array([2, 3, 4, 5]), np.array([3, 1, 0]))
    for source, row in zip(sources, row_of, strict=True):
        expected = reference.first_state(
            reference.part(weights, "decoder."), reference.annotations(weights, [*source, END_ID])
        )
        assert stepper.summaries(terms)[row].tolist() == pytest.approx(expected, abs=1e-12)
