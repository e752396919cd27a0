"""Where tensors are, and where the processor waits for a device, seen without one; and that both can be seen."""

import numpy as np
import pytest
import torch
from torch.nn.functional import linear

from moses_rnn.inference import steps
from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.inference.trie_scoring import score_trie
from moses_rnn.inference.tries import build_trie
from moses_rnn.models.hardware import EAGER
from moses_rnn.models.variants import SWITCHES
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from moses_rnn.translation.sampling import Sampler, SamplingConfig
from tests.inference.id_pairs import flat, random_pairs, score
from tests.inference.pretended_device import DEVICE, MisplacedError, pretended_device
from tests.models.checkpoints import encdec_checkpoint, make_producer
from tests.models.networks import CUSTOM, encdec_network
from tests.producers import pairs as texts
from tests.producers.bigrams import BigramStepper, random_network

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


def test_what_steppers_inherit_does_not_wait():
    network = random_network(9, 8)
    sources, targets = (flat(side) for side in zip(*PAIRS, strict=True))
    with pretended_device() as device:
        stepper = BigramStepper(network, DEVICE, torch.float64, EAGER)
        terms, term_of = stepper.read(*sources)
        trie = build_trie(*targets, term_of)
        device.events.clear()
        values = score_trie(stepper, terms, trie)[trie.leaf_of]
    assert device.waits_only_at_the_end()
    assert np.array_equal(values, score(BigramStepper(network, "cpu", torch.float64, EAGER), PAIRS))


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


WAITS = {
    "item": lambda ids: ids[0].item(),
    "int": lambda ids: int(ids[0]),
    "truth": lambda ids: bool((ids > 1).any()),
    "tolist": lambda ids: ids.tolist(),
    "cpu": lambda ids: ids.cpu(),
    "copied out of the device": lambda ids: torch.zeros(3, dtype=torch.int64).copy_(ids, non_blocking=True),
    "nonzero": lambda ids: ids.nonzero(),
    "condition alone": lambda ids: torch.where(ids > 1),
    "mask": lambda ids: ids[ids > 1],
    "assigned to a mask": lambda ids: ids.__setitem__(ids > 1, ids[:1]),
    "masked_select": lambda ids: ids.masked_select(ids > 1),
    "unique": lambda ids: ids.unique(),
    "equal": lambda ids: torch.equal(ids, ids),
    "repeated by values": lambda ids: ids.repeat_interleave(ids),
    "pageable": lambda _: torch.arange(3).to(DEVICE, non_blocking=True),
    "pinned, yet blocking": lambda _: torch.empty(3, pin_memory=True).to(DEVICE),
    "pageable, into a tensor": lambda ids: ids.copy_(torch.arange(3), non_blocking=True),
    "a list": lambda _: torch.tensor([1, 2], device=DEVICE),
}
GOES_ON = {
    "sum": lambda ids: (ids + 1).sum(),
    "index": lambda ids: ids[ids],
    "index_select": lambda ids: ids.index_select(0, ids),
    "where": lambda ids: torch.where(ids > 1, ids, 0),
    "masked_fill": lambda ids: ids.masked_fill(ids > 1, 0),
    "made": lambda _: torch.arange(3, device=DEVICE),
    "sizes": lambda ids: torch.zeros(len(ids), ids.shape[0], device=DEVICE),
    "pinned": lambda _: torch.empty(3, pin_memory=True)[1:].to(DEVICE, non_blocking=True),
    "views": lambda ids: [part.add_(1) for part in ids.split([1, 2])],
    "precision": lambda ids: ids.double().to(torch.bfloat16),
}
MISPLACED = {
    "sum": lambda ids: ids + torch.arange(3),
    "index": lambda ids: ids[torch.arange(3)],
    "index_select": lambda ids: ids.index_select(0, torch.arange(3)),
    "indexed": lambda ids: torch.arange(3)[ids],
    "cat": lambda ids: torch.cat([ids, torch.arange(3)]),
    "linear": lambda ids: linear(ids.float()[None], torch.ones(2, 3)),
    "in place": lambda ids: ids.add_(torch.arange(3)),
    "single number": lambda ids: ids + torch.tensor(1),
}


def on_device(operation):
    """Do it with the ids 0, 1, 2."""
    with pretended_device() as device:
        ids = torch.arange(3, device=DEVICE)
        operation(ids)
    return device


@pytest.mark.parametrize("operation", WAITS.values(), ids=WAITS)
def test_waits_are_noticed(operation):
    assert len(on_device(operation).waits) == 1


@pytest.mark.parametrize("operation", GOES_ON.values(), ids=GOES_ON)
def test_what_goes_on_is_no_wait(operation):
    assert on_device(operation).waits == []


@pytest.mark.parametrize("operation", MISPLACED.values(), ids=MISPLACED)
def test_operands_on_two_devices_are_noticed(operation):
    with pytest.raises(MisplacedError, match="on cpu"):
        on_device(operation)


def test_results_are_those_of_the_processor():
    with pretended_device():
        ids = torch.arange(3, device=DEVICE)
        ids[1:].mul_(5)
        assert ids.device == DEVICE
        assert ids.tolist() == [0, 5, 10]
