"""Ensembles against their formulas, and against a single network."""

import math

import numpy as np
import pytest
import torch

from moses_rnn.networks.encdec import EncDecStepper
from moses_rnn.networks.rnnsearch import RnnSearchStepper
from moses_rnn.networks.steps import Candidates
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.scorers.ensembles import COMBINATIONS, EnsembleStepper
from tests.networks import reference, reference_ensembles, reference_rnnsearch
from tests.networks.id_pairs import random_pairs, score
from tests.networks.networks import CUSTOM, encdec_network, search_network, weights_of

SAME = np.arange(9)
SEARCH, ENCDEC = search_network(), encdec_network(CUSTOM[0])


def ensemble(combination, *steppers):
    return EnsembleStepper([(stepper, SAME) for stepper in steppers], combination)


def both(combination):
    return ensemble(
        combination, RnnSearchStepper(SEARCH, dtype=torch.float64), EncDecStepper(ENCDEC, dtype=torch.float64)
    )


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_equals_the_scalar_formulas(combination):
    pairs = random_pairs(20)
    values = score(both(combination), pairs)
    for value, (source, target) in zip(values, pairs, strict=True):
        ids = [*source, END_ID], [*target, END_ID]
        members = [
            reference_rnnsearch.distributions(weights_of(SEARCH), *ids, {"phases": "paper"}),
            reference.distributions(weights_of(ENCDEC), *ids, CUSTOM[0]),
        ]
        steps = [reference_ensembles.combine(list(of_step), combination) for of_step in zip(*members, strict=True)]
        expected = sum(log_p[word] for log_p, word in zip(steps, ids[1], strict=True))
        assert value == pytest.approx(expected, abs=1e-10)


def test_members_may_number_source_words_otherwise():
    turned = np.array([0, 1, *range(8, 1, -1)])
    stepper = RnnSearchStepper(SEARCH, dtype=torch.float64)
    as_is, other = (EnsembleStepper([(stepper, ids)], "geometric") for ids in (SAME, turned))
    pairs = random_pairs(20)
    mapped = [(turned[source].tolist() if source else source, target) for source, target in pairs]
    np.testing.assert_allclose(score(other, pairs), score(as_is, mapped))


def test_the_alignment_is_the_mean_of_those_that_have_one():
    search = RnnSearchStepper(SEARCH, dtype=torch.float64)
    ids, lengths = np.array([2, 3, 4]), np.array([2, 1])
    stepper = both("geometric")
    terms, row_of = stepper.encode(ids, lengths)
    of_search, search_row_of = search.encode(ids, lengths)
    alpha = stepper.alignment(terms, stepper.start(terms))[row_of]
    torch.testing.assert_close(alpha, search.alignment(of_search, search.start(of_search))[search_row_of])
    without = ensemble("geometric", EncDecStepper(ENCDEC, dtype=torch.float64))
    terms, _ = without.encode(ids, lengths)
    assert without.alignment(terms, without.start(terms)) is None


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_each_member_is_normalised_over_candidates(combination):
    stepper, columns = (
        both(combination),
        Candidates(torch.tensor([0, END_ID, 3, 6]), torch.ones(1, 4, dtype=torch.bool)),
    )
    source = np.array([2, 3]), np.array([2])
    of_all, *of_members = (
        of.next_log_probs(terms, of.start(terms), columns)[0].exp().tolist()
        for of in (
            stepper,
            *(RnnSearchStepper(SEARCH, dtype=torch.float64), EncDecStepper(ENCDEC, dtype=torch.float64)),
        )
        for terms, _ in [of.encode(*source)]
    )
    expected = reference_ensembles.combine(of_members, combination)
    assert of_all == pytest.approx(list(map(math.exp, expected)), abs=1e-12)
