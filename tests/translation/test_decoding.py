"""Sampling and search, held against whole distributions that the scalar equations give."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from moses_rnn.inference import steps as inference
from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.models.encdec import SWITCHES
from moses_rnn.models.vocabulary import END_ID, UNKNOWN_ID, Vocabulary
from moses_rnn.translation import hypotheses as decoding
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch, best_of_each
from moses_rnn.translation.sampling import Sampler, SamplingConfig, first_above
from tests.models import reference
from tests.models.checkpoints import encdec_checkpoint, make_producer
from tests.models.networks import CUSTOM, SIZES, encdec_network, weights_of

SOURCES = [[2, 3, 4], [], [6, 0], [7, 7, 7, 7], [2, 3]]
WORDS = [i for i in range(SIZES["target_vocabulary_size"]) if i != END_ID]
SOURCE = Vocabulary([b"<unk>", b"</s>", *(b"s%d" % i for i in range(2, SIZES["source_vocabulary_size"]))])
TARGET = Vocabulary([b"<unk>", b"</s>", *(b"t%d" % i for i in range(2, SIZES["target_vocabulary_size"]))])
IDS = {"ids": lambda switches: "-".join(switches.values())}


def writer(switches=SWITCHES["paper"], end=1.0):
    """A network whose phrases are neither all alike nor endless; `end` is the bias of ``</s>``."""
    model = encdec_network(switches)
    with torch.no_grad():
        model.decoder.G_l.mul_(0.25)
        model.decoder.b_G.zero_()[END_ID] = end
        model.decoder.b_G[UNKNOWN_ID] = 0.5
    return model


def stepper(switches=SWITCHES["paper"], dtype=torch.float64):
    return EncDecStepper(writer(switches), dtype=dtype)


def sampler(switches=SWITCHES["paper"], dtype=torch.float64, **config):
    return Sampler(stepper(switches, dtype), SamplingConfig(**config))


def search(switches=SWITCHES["paper"], dtype=torch.float64, **config):
    return BeamSearch(stepper(switches, dtype), BeamConfig(**config))


def phrase(ids, vocabulary):
    return b" ".join(vocabulary.words[i] for i in ids)


def scores(switches, sources, found, precision="fp64"):
    """The producer's log p of what was written for sources."""
    producer = make_producer(encdec_checkpoint(writer(switches), SOURCE, TARGET), precision=precision)
    pairs = [
        (phrase(source, SOURCE), phrase(h.words, TARGET)) for source, of in zip(sources, found, strict=True) for h in of
    ]
    return producer.log_probs(*zip(*pairs, strict=True)).ravel()


def flat(found):
    return [hypothesis for of_source in found for hypothesis in of_source]


def every_target(longest):
    return [words for length in range(longest + 1) for words in itertools.product(WORDS, repeat=length)]


def exact(switches, source, longest):
    """log p of every target of at most so many words, by the scalar equations."""
    weights = weights_of(writer(switches))
    return {
        words: reference.log_prob(weights, [*source, END_ID], [*words, END_ID], switches)
        for words in every_target(longest)
    }


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


@pytest.mark.parametrize("switches", CUSTOM, **IDS)
@pytest.mark.parametrize(
    ("dtype", "precision", "tolerance"), [(torch.float64, "fp64", 1e-11), (torch.float32, "fp32", 1e-4)]
)
def test_a_samples_log_prob_is_the_producers(switches, dtype, precision, tolerance):
    """Discrepancy D10: y_1 is sampled as it is scored."""
    found = sampler(switches, dtype, samples=200, temperature=1.3, max_words=200)(SOURCES)
    assert all(hypothesis.ended for hypothesis in flat(found))
    log_probs = [hypothesis.log_prob for hypothesis in flat(found)]
    np.testing.assert_allclose(log_probs, scores(switches, SOURCES, found, precision), rtol=0, atol=tolerance)


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


@pytest.mark.parametrize("switches", CUSTOM, **IDS)
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
    monkeypatch.setattr(inference, "LOGITS_AT_ONCE", 3 * SIZES["target_vocabulary_size"])
    monkeypatch.setattr(decoding, "PREFIXES_AT_ONCE", 60)
    assert words_of(find(SOURCES)) == words_of(together)
    np.testing.assert_allclose([h.log_prob for h in flat(together)], [h.log_prob for h in flat(alone)], rtol=1e-12)


def words_of(found):
    return [[(hypothesis.words, hypothesis.ended) for hypothesis in of_source] for of_source in found]


@pytest.mark.parametrize("maker", MAKERS)
def test_equal_sources_get_equal_targets_and_no_sources_none(maker):
    find = MAKERS[maker]()
    first, second = find([SOURCES[0], SOURCES[0]])
    assert first == second
    assert find([]) == []


def test_the_seed_decides():
    first, again, other = (words_of(sampler(seed=seed)(SOURCES)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("maker", MAKERS)
def test_unknown_words_can_be_forbidden(maker):
    assert UNKNOWN_ID in {word for h in flat(MAKERS[maker]()(SOURCES)) for word in h.words}
    allowed = flat(MAKERS[maker](allow_unknown=False)(SOURCES))
    assert UNKNOWN_ID not in {word for hypothesis in allowed for word in hypothesis.words}


def test_the_log_prob_stays_the_models_when_unknown_words_are_forbidden():
    found = sampler(allow_unknown=False)(SOURCES)
    np.testing.assert_allclose([h.log_prob for h in flat(found)], scores(SWITCHES["paper"], SOURCES, found), atol=1e-11)


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


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_is_above_zero(temperature):
    with pytest.raises(ValueError, match=f"expected a temperature above 0, found {temperature}"):
        SamplingConfig(temperature=temperature)


def test_a_low_temperature_takes_the_likeliest_word():
    for tiny in (1e-3, 1e-300):
        found = sampler(samples=5, temperature=tiny)(SOURCES)
        assert [len(set(of_source)) for of_source in found] == [1] * len(SOURCES)


WEIGHTS = [0.0, 2.0, 0.0, 1.0, 1.0, 0.0]
SHARES = {0.0: 1, 0.49: 1, 0.5: 3, 0.74: 3, 0.75: 4, 1 - 2**-53: 4}


@pytest.mark.parametrize("share", SHARES)
def test_words_without_weight_are_never_drawn(share):
    cumulated = torch.tensor([WEIGHTS, WEIGHTS[::-1]]).double().cumsum(1)
    assert first_above(cumulated, torch.tensor([0]), torch.tensor([share], dtype=torch.float64)).tolist() == [
        SHARES[share]
    ]


def test_the_best_of_each_come_in_order():
    totals = torch.tensor([-1.0, -5.0, -2.0, -0.5, -3.0, -4.0])
    sources = torch.tensor([0, 2, 0, 2, 0, 2])
    assert best_of_each(totals, sources, 2).tolist() == [0, 2, 3, 5]
