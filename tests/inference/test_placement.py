"""Where tensors are, and where the processor waits for a device, seen without one; and that both can be seen."""

import numpy as np
import pytest
import torch

from moses_rnn.inference import steps
from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.models.variants import SWITCHES
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from moses_rnn.translation.sampling import Sampler, SamplingConfig
from tests.inference.id_pairs import random_pairs, score
from tests.inference.pretended_device import DEVICE, MisplacedError, pretended_device
from tests.models.checkpoints import encdec_checkpoint, make_producer
from tests.models.networks import CUSTOM, encdec_network
from tests.producers import pairs as texts

PAIRS = random_pairs(80)
MODEL = encdec_network(SWITCHES["paper"], dtype=torch.float32)

# --- the package's own work


@pytest.mark.parametrize("at_once", [1 << 20, 24])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_scoring_waits_once_at_the_end(monkeypatch, switches, dtype, at_once):
    """Sources and targets go to the device in one copy each, whatever the number of levels and of blocks."""
    for name in ("LOGITS_AT_ONCE", "LOGITS_AT_ONCE_ELSEWHERE"):
        monkeypatch.setattr(steps, name, at_once)
    model = encdec_network(switches, dtype=torch.float32)
    with pretended_device() as device:
        stepper = EncDecStepper(model, DEVICE, dtype)
        device.events.clear()
        values = score(stepper, PAIRS)
    assert device.waits_only_at_the_end()
    assert device.arrivals == 2
    assert np.array_equal(values, score(EncDecStepper(model, dtype=dtype), PAIRS))


def test_a_producer_waits_once_for_each_chunk():
    checkpoint = encdec_checkpoint(MODEL, texts.SOURCE, texts.TARGET)
    pairs = texts.random_pairs(100)
    with pretended_device() as device:
        producer = make_producer(checkpoint, DEVICE)
        device.events.clear()
        values = texts.of_pairs(producer, pairs)
    assert device.waits_only_at_the_end()
    assert np.array_equal(values, texts.of_pairs(make_producer(checkpoint), pairs))


WRITERS = {
    "sampling": lambda stepper: Sampler(stepper, SamplingConfig(samples=20, temperature=0.7, allow_unknown=False)),
    "beam search": lambda stepper: BeamSearch(stepper, BeamConfig(width=5, best=3, max_words=4)),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_writing_keeps_its_operands_together(write):
    """It waits: what goes on depends on the words so far."""
    sources = [source for source, _ in PAIRS[:8]]
    with pretended_device():
        targets = write(EncDecStepper(MODEL, DEVICE, torch.float64))(sources)
    assert targets == write(EncDecStepper(MODEL, dtype=torch.float64))(sources)


# --- what is noticed: faults in a stepper, and each kind of operation


class Curious(EncDecStepper):
    """Looks at its results within the loop over levels."""

    def step(self, terms, prefixes, rows, words):
        words.tolist()
        return super().step(terms, prefixes, rows, words)


def test_a_wait_in_the_loop_is_noticed():
    with pretended_device() as device:
        score(Curious(MODEL, DEVICE), PAIRS)
    assert not device.waits_only_at_the_end()


@pytest.mark.parametrize("name", ["_output._b_G", "_output._numbers", "_y_e", "_U", "_x_gates_b"])
def test_a_weight_left_behind_is_noticed(name):
    with pretended_device():
        stepper = EncDecStepper(MODEL, DEVICE)
        *owner, name = name.split(".")
        owner = getattr(stepper, *owner) if owner else stepper
        setattr(owner, name, getattr(owner, name).cpu())
        with pytest.raises(MisplacedError, match="on cpu"):
            score(stepper, PAIRS)
