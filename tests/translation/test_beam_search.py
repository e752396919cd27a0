"""Beam search, held against the log-probabilities of all targets, which the scalar equations give."""

import itertools
import math

import pytest
import torch

from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.translation.search import BeamConfig, BeamSearch
from tests.networks import reference
from tests.networks.networks import weights_of
from tests.translation.writers import SOURCES, WORDS, flat, search, writer


@pytest.mark.parametrize("width", [2, 400])
def test_what_is_too_unlikely_is_not_looked_for(width, monkeypatch):
    """The others are those that come first without the limit, and most prefixes are not followed."""
    steps = []
    step = EncDecStepper.step
    monkeypatch.setattr(EncDecStepper, "step", lambda self, *rest: steps.append(len(rest[2])) or step(self, *rest))
    config = {"width": width, "best": 30, "max_words": 4}
    every = search(**config)(SOURCES)
    without = sum(steps)
    limit = sorted(h.log_prob for h in flat(every) if h.ended)[-5]
    find = BeamSearch(EncDecStepper(writer(), dtype=torch.float64), BeamConfig(**config), least_log_prob=limit)
    likely = [[h for h in of_source if h.ended] for of_source in find(SOURCES)]
    assert likely == [[h for h in of_source if h.ended and h.log_prob >= limit] for of_source in every]
    assert len(flat(likely)) == 5
    assert sum(steps) - without < without / 4


def test_a_beam_of_one_is_greedy():
    """The likeliest word each time; its ends are judged on the way."""
    weights, switches = weights_of(writer()), SWITCHES["paper"]
    (found,) = search(width=1, best=1)([SOURCES[0]])
    source = [*SOURCES[0], END_ID]
    path = []
    ends = {}
    for _ in range(10):
        steps = reference.distributions(weights, source, [*path, END_ID], switches)
        ends[tuple(path)] = reference.log_prob(weights, source, [*path, END_ID], switches)
        path.append(max(WORDS, key=steps[-1].__getitem__))
    assert found[0].words == max(ends, key=ends.get)


def test_a_search_that_the_limit_ends_says_with_what_it_was_left():
    """Here every target of at most two words is less likely than what longer ones share."""
    model, source = writer(end=-1.5), SOURCES[0]
    (found,) = BeamSearch(EncDecStepper(model, dtype=torch.float64), BeamConfig(width=60, best=2, max_words=2))(
        [source]
    )
    weights = weights_of(model)
    of_words = {
        words: sum(
            math.log(p[word])
            for p, word in zip(
                reference.distributions(weights, [*source, END_ID], words, SWITCHES["paper"]), words, strict=True
            )
        )
        for words in itertools.product(WORDS, repeat=2)
    }
    assert [h.ended for h in found] == [True, True, False]
    assert found[-1].log_prob == pytest.approx(of_words[found[-1].words], abs=1e-11)
    assert found[-1].log_prob > found[1].log_prob


def test_a_search_stops_when_nothing_can_become_better(monkeypatch):
    """With an end that is nearly certain after one word, nobody looks at the longer ones."""
    steps = []
    stepper = EncDecStepper(writer(end=14.0), dtype=torch.float64)
    original = stepper.step
    monkeypatch.setattr(stepper, "step", lambda *given: steps.append(len(given[2])) or original(*given))
    (found,) = BeamSearch(stepper, BeamConfig(width=5, best=1))([SOURCES[0]])
    assert (found[0].words, steps) == ((), [])
    BeamSearch(stepper, BeamConfig(width=5, best=3))([SOURCES[0]])
    assert 0 < len(steps) <= 2
