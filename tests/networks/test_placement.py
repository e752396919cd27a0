"""Where tensors are, and where the processor waits for a device, seen without one."""

import numpy as np
import pytest
import torch

from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.translation.search import BeamConfig, BeamSearch, Sampler, SamplingConfig
from tests.networks.checkpoints import encdec_checkpoint, make_scorer
from tests.networks.id_pairs import random_pairs
from tests.networks.networks import encdec_network
from tests.networks.pretended_device import DEVICE, pretended_device
from tests.scorers import pairs as texts

PAIRS = random_pairs(80)
MODEL = encdec_network(SWITCHES["paper"], dtype=torch.float32)


def test_a_scorer_waits_once_for_each_chunk():
    checkpoint = encdec_checkpoint(MODEL, texts.SOURCE, texts.TARGET)
    pairs = texts.random_pairs(100)
    with pretended_device() as device:
        scorer = make_scorer(checkpoint, DEVICE)
        device.events.clear()
        values = texts.of_pairs(scorer, pairs)
    assert device.waits_only_at_the_end()
    assert np.array_equal(values, texts.of_pairs(make_scorer(checkpoint), pairs))


WRITERS = {
    "sampling": lambda stepper: Sampler(stepper, SamplingConfig(samples=20, temperature=0.7, allow_unknown=False)),
    "beam search": lambda stepper: BeamSearch(stepper, BeamConfig(width=5, best=3, max_words=4)),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_writing_keeps_its_operands_together(write):
    """It waits: what follows depends on the words so far."""
    sources = [source for source, _ in PAIRS[:8]]
    with pretended_device():
        targets = write(EncDecStepper(MODEL, DEVICE, torch.float64))(sources)
    assert targets == write(EncDecStepper(MODEL, dtype=torch.float64))(sources)
