"""Sampling and beam search, held against the log-probabilities of all targets, which the scalar equations give."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from moses_rnn.networks import steps
from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.networks.tries import SteppedPairs
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.translation.search import BeamConfig, BeamSearch, Sampler, SamplingConfig
from tests.models.bigrams import random_stepper
from tests.networks import id_pairs, reference
from tests.networks.networks import SIZES, weights_of
from tests.translation.writers import SOURCES, WORDS, every_target, flat, sampler, search, stepper, words_of, writer

MAKERS = {
    "samples": lambda **config: sampler(samples=30, **config),
    "beam": lambda **config: search(width=4, best=3, **config),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_sources_targets_do_not_depend_on_its_company(maker, monkeypatch):
    find = MAKERS[maker]()
    together = find(SOURCES)
    alone = [find([source])[0] for source in SOURCES]
    assert words_of(together) == words_of(alone)
    assert words_of(find(SOURCES[::-1])) == words_of(together[::-1])
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE", 3 * SIZES["target_vocabulary_size"])
    assert words_of(find(SOURCES)) == words_of(together)
    np.testing.assert_allclose([h.log_prob for h in flat(together)], [h.log_prob for h in flat(alone)], rtol=1e-12)


def drawn_by(switches, source, longest, temperature, allow_unknown):
    """The probability of drawing every target of at most so many words: words from p^(1/T), forbidden ones left out."""
    weights = weights_of(writer(switches))
    probabilities = {}
    for words in every_target(longest):
        ids = [*words, END_ID]
        steps = reference.distributions(weights, [*source, END_ID], ids, switches)
        powers = [[x ** (1 / temperature) * (allow_unknown or i != UNKNOWN_ID) for i, x in enumerate(p)] for p in steps]
        probabilities[words] = math.prod(p[word] / sum(p) for p, word in zip(powers, ids, strict=True))
    return probabilities


DRAWING = [(1.0, True), (0.6, True), (1.7, True), (1.0, False), (0.6, False)]


@pytest.mark.parametrize("variant", SWITCHES)
@pytest.mark.parametrize(("temperature", "allow_unknown"), DRAWING)
def test_frequencies_are_the_exact_probabilities(variant, temperature, allow_unknown):
    """Pearson's X² over targets of up to 2 words, rare ones and longer ones together: mean k, variance 2 k."""
    switches, source, samples = SWITCHES[variant], [2, 3, 4], 10_000
    draw = sampler(switches, samples=samples, temperature=temperature, allow_unknown=allow_unknown, max_words=3)
    seen = Counter(hypothesis.words for hypothesis in draw([source])[0] if hypothesis.ended)
    expected = {w: samples * p for w, p in drawn_by(switches, source, 2, temperature, allow_unknown).items()}
    often = [words for words, count in expected.items() if count >= 5]
    pairs = [(seen[words], expected[words]) for words in often]
    pairs.append(tuple(samples - sum(column) for column in zip(*pairs, strict=True)))
    chi_square = sum((found - wanted) ** 2 / wanted for found, wanted in pairs)
    assert len(often) > 15
    assert chi_square < len(often) + 4 * math.sqrt(2 * len(often))
    assert sum(seen[words] for words, count in expected.items() if count == 0) == 0


def test_the_log_prob_stays_the_models_when_unknown_words_are_forbidden():
    found = sampler(allow_unknown=False)(SOURCES)
    pairs = [(source, list(h.words)) for source, of in zip(SOURCES, found, strict=True) for h in of]
    np.testing.assert_allclose([h.log_prob for h in flat(found)], id_pairs.score(stepper(), pairs), atol=1e-11)


def log_prob_of(model, source, hypothesis):
    """By the scalar equations; of a hypothesis that has not ended, of its words alone."""
    ids = [*hypothesis.words, END_ID]
    steps = reference.distributions(weights_of(model), [*source, END_ID], ids, SWITCHES["paper"])
    counted = zip(steps, ids if hypothesis.ended else hypothesis.words, strict=hypothesis.ended)
    return sum(math.log(p[word]) for p, word in counted)


@pytest.mark.parametrize("max_words", [0, 1, 4])
def test_samples_without_an_end_are_marked(max_words):
    model, source = writer(end=-1.5), SOURCES[0]
    config = SamplingConfig(samples=200, max_words=max_words)
    (found,) = Sampler(EncDecStepper(model, dtype=torch.float64), config)([source])
    assert {len(h.words) for h in found if not h.ended} == {max_words}
    assert {len(h.words) for h in found if h.ended} <= set(range(max_words + 1))
    assert {h.ended for h in found} == {True, False}
    for hypothesis in {h.words: h for h in found}.values():
        assert hypothesis.log_prob == pytest.approx(log_prob_of(model, source, hypothesis), abs=1e-11)


def test_a_low_temperature_takes_the_likeliest_word():
    for tiny in (1e-3, 1e-300):
        found = sampler(samples=5, temperature=tiny)(SOURCES)
        assert [len(set(of_source)) for of_source in found] == [1] * len(SOURCES)


@pytest.mark.parametrize("width", [2, 400])
def test_what_is_too_unlikely_is_not_looked_for(width, monkeypatch):
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
        ends[tuple(path)] = reference.log_prob(steps, [*path, END_ID])
        path.append(max(WORDS, key=steps[-1].__getitem__))
    assert found[0].words == max(ends, key=ends.get)


def test_a_search_that_the_limit_ends_says_with_what_it_was_left():
    """Here every target of at most two words is less likely than what longer ones share."""
    model, source = writer(end=-1.5), SOURCES[0]
    config = BeamConfig(width=60, best=2, max_words=2)
    (found,) = BeamSearch(EncDecStepper(model, dtype=torch.float64), config)([source])
    assert [h.ended for h in found] == [True, True, False]
    assert found[-1].log_prob == pytest.approx(log_prob_of(model, source, found[-1]), abs=1e-11)
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


FEW_WORDS = (0, 2, 3)  # of K = 4
TARGETS = [words for length in range(4) for words in itertools.product(FEW_WORDS, repeat=length)]
STEPPER = random_stepper(9, 4)


def forced(source, targets):
    return SteppedPairs(STEPPER).log_probs(id_pairs.flat([source] * len(targets)), id_pairs.flat(targets)).tolist()


def ranked(sources=SOURCES, **config):
    return BeamSearch(STEPPER, BeamConfig(**config))(sources)


KEYS = {"sum": lambda words, log_p: log_p, "mean": lambda words, log_p: log_p / (len(words) + 1)}


@pytest.mark.parametrize("score", KEYS)
def test_a_width_of_all_prefixes_is_an_exhaustive_search(score):
    everything = ranked(width=200, best=len(TARGETS), max_words=3, length_score=score)
    for source, hypotheses in zip(SOURCES, everything, strict=True):
        expected = dict(zip(TARGETS, forced(source, TARGETS), strict=True))
        ended = [hypothesis for hypothesis in hypotheses if hypothesis.ended]
        assert [h.words for h in ended] == sorted(TARGETS, key=lambda w: -KEYS[score](w, expected[w]))
        assert [h.log_prob for h in ended] == pytest.approx([expected[h.words] for h in ended], abs=1e-12)


def next_log_probs(source, words):
    encoded, _ = STEPPER.encode(*id_pairs.flat([source]))
    prefixes = STEPPER.start(encoded)
    for word in words:
        prefixes = STEPPER.step(encoded, prefixes, torch.tensor([0]), torch.tensor([word]))
    return STEPPER.next_log_probs(encoded, prefixes)[0].tolist()


def released(source, width, limit, banned=()):
    """The search of the released code, a hypothesis at a time; ended ones with log p, and what the limit left."""
    live, ended = [((), 0.0)], []
    for step in range(limit + 1):
        longer = [
            ((*words, word), total + log_p)
            for words, total in live
            for word, log_p in enumerate(next_log_probs(source, words))
            if word not in banned
        ]
        chosen = sorted(longer, key=lambda pair: -pair[1])[:width]
        ended += [(words[:-1], total) for words, total in chosen if words[-1] == END_ID]
        goes_on = [pair for pair in chosen if pair[0][-1] != END_ID]
        width -= len(chosen) - len(goes_on)
        if not width or step == limit:
            break
        live = goes_on
    left = [(goes_on[0][0][:-1], dict(live)[goes_on[0][0][:-1]])] if width else []
    return sorted(ended, key=lambda pair: -pair[1] / (len(pair[0]) + 1)), left


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("limit", [0, 2, 6])
@pytest.mark.parametrize("banned", [(), (UNKNOWN_ID,)])
def test_the_mean_is_searched_as_the_released_code_does(width, limit, banned):
    config = {"width": width, "best": 9, "max_words": limit, "allow_unknown": not banned}
    for source, hypotheses in zip(SOURCES, ranked(**config, length_score="mean"), strict=True):
        ended, left = released(source, width, limit, banned)
        assert [h.words for h in hypotheses] == [words for words, _ in ended + left]
        assert [h.log_prob for h in hypotheses] == pytest.approx([total for _, total in ended + left], abs=1e-12)
        assert [h.ended for h in hypotheses] == [True] * len(ended) + [False] * len(left)
        assert len(ended) == width or left


@pytest.mark.parametrize("score", KEYS)
@pytest.mark.parametrize("factor", [1, 3])
def test_each_source_has_a_limit_of_its_own(score, factor):
    config = {"width": 3, "best": 2, "length_score": score}
    together = ranked(**config, words_per_source_word=factor, max_words=1)
    for source, hypotheses in zip(SOURCES, together, strict=True):
        alone = ranked([source], **config, max_words=factor * (len(source) + 1))
        assert [hypotheses] == alone
        assert max(len(h.words) for h in hypotheses) <= factor * (len(source) + 1)
    assert factor == 3 or any(not h.ended for hypotheses in together for h in hypotheses)
