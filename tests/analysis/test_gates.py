"""Means of gates over steps, the extreme units and their words."""

import numpy as np
import pytest

from moses_rnn.analysis import gates as module
from moses_rnn.analysis.gates import BEGINNING, measure_gates
from moses_rnn.analysis.inspection import decoder_gates, encoder_gates
from tests.analysis.tiny import checkpoint

SOURCES, TARGETS = [b"a b", b"c", b"a zzz"], [b"u v", b"w", b"u"]
IDS = [[2, 3], [4], [2, 0]], [[2, 3], [4], [2]]


def test_means_are_over_steps_and_the_first_has_nothing_to_reset():
    found = measure_gates(checkpoint(), SOURCES)
    gates = encoder_gates(checkpoint().network, IDS[0])  # a a c, b <unk> </s>, </s> </s>
    later = slice(3, None)
    assert (found.phrases, found.steps) == (3, 8)
    np.testing.assert_allclose(found.z, gates.z.mean(0), atol=1e-6)
    np.testing.assert_allclose(found.r, gates.r[later].mean(0), atol=1e-6)
    np.testing.assert_allclose(found.update_active, (gates.z > 0.5).sum(0) / 8, atol=1e-12)
    np.testing.assert_allclose(found.reset_active, (gates.r[later] < 0.5).sum(0) / 5, atol=1e-12)


# variant, how many of the words that the decoder reads on its way are shown: as many of the highest as of the lowest
DECODERS = [("paper", {"u", "v", "w", BEGINNING}, 4), ("groundhog", {"u", "v", "w"}, 2)]


@pytest.mark.parametrize(("variant", "read", "shown"), DECODERS)
def test_a_decoder_has_a_state_from_the_beginning(variant, read, shown, monkeypatch):
    for name, value in {"UNITS": 1, "MIN_TIMES": 1, "WORDS": 9}.items():
        monkeypatch.setattr(module, name, value)
    model = checkpoint(variant)
    found = measure_gates(model, SOURCES, TARGETS)
    gates = decoder_gates(model.network, *IDS)
    np.testing.assert_allclose(found.r, gates.r.mean(0), atol=1e-6)
    words = {word for word, _ in found.resetting[0].highest + found.resetting[0].lowest}
    assert words <= read
    assert len(words) == shown
