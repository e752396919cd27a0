"""Gates of the RNN Encoder-Decoder and alignments of RNNsearch against the scalar equations."""

import numpy as np
import pytest
import torch

from moses_rnn.analysis.inspection import Gates, decoder_gates, encoder_gates, state_gradients
from moses_rnn.networks.rnnsearch import RnnSearchStepper
from moses_rnn.networks.tries import NOTHING
from moses_rnn.networks.vocabulary import END_ID
from tests.networks import reference, reference_rnnsearch
from tests.networks.id_pairs import flat
from tests.networks.networks import CUSTOM, PAPERS, cell_network, encdec_network, search_network, weights_of

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


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_gates_equal_the_scalar_equations(switches):
    model = encdec_network(switches)
    weights = weights_of(model)
    assert_equal(encoder_gates(model, SOURCES), [scalar_encoder_gates(weights, source) for source in SOURCES])
    expected = [list(scalar_decoder_gates(weights, source, target, switches)) for source, target in PAIRS]
    assert_equal(decoder_gates(model, SOURCES, TARGETS), expected)


@pytest.mark.parametrize("phases", ["paper", "groundhog"])
def test_alignments_equal_the_scalar_equations(phases):
    model = search_network(phases)
    stepper = RnnSearchStepper(model, dtype=torch.float64)
    sources, target = [[2, 3, 4], [5], []], [6, 2]
    encoded, row_of = stepper.encode(*flat(sources))
    for source, row in zip(sources, row_of, strict=True):
        ids = [*source, END_ID], [*target, END_ID]
        expected = reference_rnnsearch.positions(weights_of(model), *ids, {"phases": phases})
        prefixes = stepper.start(encoded)
        for word, (of_word, _) in zip(ids[1], expected, strict=True):
            alpha = stepper.alignment(encoded, prefixes)[row].tolist()
            assert alpha[: len(source) + 1] == pytest.approx(of_word, abs=1e-12)
            assert not any(alpha[len(source) + 1 :])
            every = torch.arange(len(encoded.s_0))
            prefixes = stepper.step(encoded, prefixes, every, torch.full((len(every),), word))


NUDGE = 1e-5


def scalar_gradients(weights, source, target, switches):
    """(k, norm of the numerical gradient) of all t and k, for one pair; a memory counts only if the cell has one."""
    w, c = reference.side_of(weights, "decoder"), reference.summary(weights, [*source, END_ID], switches)
    words, size = [*target, END_ID], len(c)
    read = [[0.0] * len(w["embedding"][0]), *(w["embedding"][word] for word in target)]

    def loss(state, first, last):
        """-log p of word `last`, from the state that predicts word `first`."""
        state = state[:size], state[size:]
        for t in range(first + 1, last + 1):
            state = reference.step(w, read[t], state, c, switches)
        return -np.log(reference.softmax(reference.word_scores(w, state[0], read[last], c))[words[last]])

    state = [np.tanh(x) for x in reference.add(reference.product(w["V"], c), w["b_V"])], [0.0] * size
    for first in range(len(words)):
        if first or switches["first_step"] == "zero-embedding":
            state = reference.step(w, read[first], state, c, switches)
        flat = np.concatenate(state)
        moved = np.eye(len(flat))[: size * (1 + switches.get("cell", "gru").startswith("lstm"))] * NUDGE
        for last in range(first, len(words)):
            up, down = ([loss(list(flat + sign * one), first, last) for one in moved] for sign in (1, -1))
            yield last - first, np.linalg.norm(np.subtract(up, down)) / (2 * NUDGE)


@pytest.mark.parametrize(
    "switches", [*CUSTOM, *PAPERS.values(), {**PAPERS["lstm"], "first_step": "initial-state"}], ids=str
)
def test_gradients_equal_numerical_ones(switches):
    model = cell_network(switches) if "cell" in switches else encdec_network(switches)
    norms, distances = state_gradients(model, SOURCES, TARGETS)
    weights = weights_of(model)
    expected = [found for source, target in PAIRS for found in scalar_gradients(weights, source, target, switches)]
    assert sorted(distances) == sorted(k for k, _ in expected)
    found = sorted(zip(distances.tolist(), norms.tolist(), strict=True))
    np.testing.assert_allclose(found, sorted(expected), rtol=1e-6, atol=1e-8)
