"""How long a training will take: what follows from the pairs that are learned in a second."""

import dataclasses
import math

import pytest

from moses_rnn.training import train as trainings
from moses_rnn.training.tasks import PhrasePairs
from moses_rnn.training.train import Estimate, estimate
from tests.training.small import FAST, network


@pytest.mark.parametrize(
    ("limits", "passes"),
    [
        ({}, math.inf),
        ({"max_epochs": 3}, 3),
        ({"max_minutes": 10}, 600 * 50 / 1000),
        ({"max_minutes": 10, "max_epochs": 3}, 3),
        ({"max_minutes": 0.5, "max_epochs": 3}, 30 * 50 / 1000),
    ],
)
def test_the_smaller_limit_counts(corpus, monkeypatch, limits, passes):
    monkeypatch.setattr(trainings, "_pairs_per_second", lambda *_: 50.0)
    config = dataclasses.replace(FAST, **limits)
    small = dataclasses.replace(corpus, training=corpus.training[:1000])
    assert estimate(PhrasePairs(network(corpus), small, config), config) == Estimate(
        len(small.training), 50.0, pytest.approx(passes)
    )


def test_some_steps_are_timed_even_without_a_second(corpus):
    model = network(corpus)
    before = [tensor.clone() for tensor in model.parameters()]
    expected = estimate(PhrasePairs(model, corpus, FAST), FAST, seconds=0.0)
    assert 0 < expected.pairs_per_second < math.inf
    assert all((old != new).any() for old, new in zip(before, model.parameters(), strict=True))
