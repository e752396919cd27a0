"""Beam search, held against the log-probabilities of all targets, which the scalar equations give."""

import itertools
import math

import numpy as np
import pytest
import torch

from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.models.variants import SWITCHES
from moses_rnn.models.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from tests.models import reference
from tests.models.networks import CUSTOM, weights_of
from tests.translation.writers import SOURCES, WORDS, every_target, flat, scores, search, writer


def exact(switches, source, longest):
    """log p of every target of at most so many words, by the scalar equations."""
    weights = weights_of(writer(switches))
    return {
        words: reference.log_prob(weights, [*source, END_ID], [*words, END_ID], switches)
        for words in every_target(longest)
    }


WHOLE = [(switches, 2, allow_unknown) for switches in CUSTOM for allow_unknown in (True, False)]


WHOLE += [(switches, 3, True) for switches in SWITCHES.values()]


@pytest.mark.parametrize(("switches", "longest", "allow_unknown"), WHOLE)
def test_a_beam_that_loses_nothing_finds_the_best_of_all(switches, longest, allow_unknown):
    width, best = len(every_target(longest)), 25
    find = search(switches, width=width, best=best, max_words=longest, allow_unknown=allow_unknown)
    for source, hypotheses in zip(SOURCES[:2], find(SOURCES), strict=False):
        expected = exact(switches, source, longest)
        ranked = sorted((w for w in expected if allow_unknown or UNKNOWN_ID not in w), key=lambda w: -expected[w])
        ended = [hypothesis for hypothesis in hypotheses if hypothesis.ended]
        assert [hypothesis.words for hypothesis in ended] == ranked[:best]
        assert [h.log_prob for h in ended] == pytest.approx([expected[h.words] for h in ended], abs=1e-11)


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_narrow_beams_speak_the_truth(switches):
    """Their log p is the producer's and none exceeds that of the best of all."""
    (best,) = search(switches, width=400, max_words=4)([SOURCES[0]])
    for width in (1, 2, 5):
        found = search(switches, width=width, best=3)(SOURCES)
        assert all(hypothesis.ended for hypothesis in flat(found))
        assert [len(of_source) for of_source in found] == [3] * len(SOURCES)
        log_probs = [hypothesis.log_prob for hypothesis in flat(found)]
        np.testing.assert_allclose(log_probs, scores(switches, SOURCES, found), rtol=0, atol=1e-11)
        assert all(of_source == sorted(of_source, key=lambda h: -h.log_prob) for of_source in found)
        assert log_probs[0] <= best[0].log_prob + 1e-12


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
