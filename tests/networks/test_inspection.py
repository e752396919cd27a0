"""Summaries, gates and words of the RNN Encoder-Decoder against the scalar equations."""

import numpy as np
import pytest
import torch

from moses_rnn.networks.encdec import EncDecStepper
from moses_rnn.networks.inspection import (
    PHRASES,
    Gates,
    decoder_gates,
    encoder_gates,
    summaries,
)
from moses_rnn.networks.tries import NOTHING
from moses_rnn.networks.vocabulary import END_ID
from tests.networks import reference
from tests.networks.networks import CUSTOM, encdec_network, weights_of
from tests.scorers.bigrams import random_stepper

every_switch = pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))

# source, target; neither list is sorted by length, one phrase is empty, one occurs twice
PAIRS = [
    ([7], [6]),
    ([2, 3, 4, 5], [2, 3, 0]),
    ([], []),
    ([6, 0], [4, 5]),
    ([7], [4]),
]
SOURCES, TARGETS = ([list(side) for side in sides] for sides in zip(*PAIRS, strict=True))


def scalar_encoder_gates(weights, source):
    words, w = [*source, END_ID], reference.side_of(weights, "encoder")
    steps = reference.encoder_steps(w, [w["embedding"][word] for word in words])
    return [(word, z, r) for word, (z, r, _) in zip(words, steps, strict=True)]


def scalar_decoder_gates(weights, source, target, switches):
    w = reference.side_of(weights, "decoder")
    c = reference.summary(weights, [*source, END_ID], switches)
    h = [np.tanh(x) for x in reference.add(reference.product(w["V"], c), w["b_V"])]
    steps = [(word, w["embedding"][word]) for word in target]
    if switches["first_step"] == "zero-embedding":
        steps.insert(0, (NOTHING, [0.0] * len(w["embedding"][0])))
    for word, e in steps:
        yield word, *reference.gates(w, e, h, c)
        h = reference.gated_step(w, e, h, c, switches["decoder_reset"])


def assert_equal(gates, expected):
    """Expected: for each phrase its steps (word, z, r)."""
    flat = [(i, *step) for i, steps in enumerate(expected) for step in steps]
    gates = Gates(*(part[np.argsort(gates.phrases, kind="stable")] for part in gates))
    assert gates.phrases.tolist() == [i for i, _, _, _ in flat]
    assert gates.words.tolist() == [word for _, word, _, _ in flat]
    np.testing.assert_allclose(gates.z, np.array([z for *_, z, _ in flat]).reshape(gates.z.shape), atol=1e-12)
    np.testing.assert_allclose(gates.r, np.array([r for *_, r in flat]).reshape(gates.r.shape), atol=1e-12)


@every_switch
def test_summaries_and_gates_equal_the_scalar_equations(switches):
    model = encdec_network(switches)
    weights = weights_of(model)
    expected = [reference.summary(weights, [*source, END_ID], switches) for source in SOURCES]
    np.testing.assert_allclose(summaries(EncDecStepper(model, dtype=torch.float64), SOURCES), expected, atol=1e-12)
    assert_equal(encoder_gates(model, SOURCES), [scalar_encoder_gates(weights, source) for source in SOURCES])
    expected = [list(scalar_decoder_gates(weights, source, target, switches)) for source, target in PAIRS]
    assert_equal(decoder_gates(model, SOURCES, TARGETS), expected)


def test_a_phrase_depends_on_no_other():
    model = encdec_network(CUSTOM[0], dtype=torch.float32)
    random = np.random.default_rng(1)
    phrases = [random.integers(2, 9, size=length).tolist() for length in random.integers(0, 6, size=PHRASES + 3)]
    stepper = EncDecStepper(model)
    alone = np.concatenate([summaries(stepper, [phrase]) for phrase in phrases[-9:]])
    np.testing.assert_allclose(summaries(stepper, phrases)[-9:], alone, atol=1e-6)


def test_a_network_may_have_no_summary():
    assert summaries(random_stepper(9, 8), SOURCES) is None
