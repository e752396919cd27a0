"""Sampling, held against whole distributions that the scalar equations give."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.translation.search import Sampler, SamplingConfig, first_above
from tests.networks import reference
from tests.networks.id_pairs import score
from tests.networks.networks import weights_of
from tests.translation.writers import SOURCES, every_target, flat, sampler, stepper, words_of, writer


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


def test_the_seed_decides():
    first, again, other = (words_of(sampler(seed=seed)(SOURCES)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_log_prob_stays_the_models_when_unknown_words_are_forbidden():
    found = sampler(allow_unknown=False)(SOURCES)
    pairs = [(source, list(h.words)) for source, of in zip(SOURCES, found, strict=True) for h in of]
    np.testing.assert_allclose([h.log_prob for h in flat(found)], score(stepper(), pairs), atol=1e-11)


@pytest.mark.parametrize("max_words", [0, 1, 4])
def test_samples_without_an_end_are_marked(max_words):
    model, source = writer(end=-1.5), SOURCES[0]
    config = SamplingConfig(samples=200, max_words=max_words)
    (found,) = Sampler(EncDecStepper(model, dtype=torch.float64), config)([source])
    weights = weights_of(model)
    assert {len(h.words) for h in found if not h.ended} == {max_words}
    assert {len(h.words) for h in found if h.ended} <= set(range(max_words + 1))
    assert {h.ended for h in found} == {True, False}
    for hypothesis in {h.words: h for h in found}.values():
        ids = [*hypothesis.words, END_ID]
        steps = reference.distributions(weights, [*source, END_ID], ids, SWITCHES["paper"])
        counted = zip(steps, ids if hypothesis.ended else hypothesis.words, strict=hypothesis.ended)
        assert hypothesis.log_prob == pytest.approx(sum(math.log(p[word]) for p, word in counted), abs=1e-11)


def test_a_low_temperature_takes_the_likeliest_word():
    for tiny in (1e-3, 1e-300):
        found = sampler(samples=5, temperature=tiny)(SOURCES)
        assert [len(set(of_source)) for of_source in found] == [1] * len(SOURCES)


def test_the_first_word_above_a_share_is_found_by_rows():
    """Against a look at word after word, for any number of words."""
    random = np.random.default_rng(1)
    for words in (1, 2, 3, 7, 8, 9, 100):
        weights = random.random((5, words)) * (random.random((5, words)) < 0.7)
        weights[:, random.integers(words)] = 1.0
        rows, shares = random.integers(0, 5, 200), random.random(200)
        cumulated = torch.from_numpy(weights).cumsum(1)
        expected = [
            next(
                word for word, total in enumerate(cumulated[row].tolist()) if total > share * cumulated[row, -1].item()
            )
            for row, share in zip(rows, shares, strict=True)
        ]
        assert first_above(cumulated, torch.from_numpy(rows), torch.from_numpy(shares)).tolist() == expected
