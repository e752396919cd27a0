"""Networks of other cells arranged for scoring and search, against the scalar equations, in each precision."""

import numpy as np
import pytest
import torch

from moses_rnn.inference.cells import CellStepper, SteppedCell, cell_stepper
from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.inference.steps import Stepper, node_blocks
from moses_rnn.models.hardware import EAGER
from moses_rnn.models.vocabulary import END_ID
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from tests.inference.id_pairs import flat, random_pairs, score
from tests.inference.pretended_device import DEVICE, pretended_device
from tests.models import reference_cells as reference
from tests.models.networks import CELL_SWITCHES, PAPERS, cell_network, weights_of

AFTER = CELL_SWITCHES[5]  # a gated cell of which both resets act after the product
SOME = [*PAPERS.values(), AFTER]


def name_of(switches):
    return "-".join(map(str, filter(None, switches.values())))


def stepper(model, dtype=torch.float64):
    return cell_stepper(model, "cpu", dtype, EAGER)


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, {"abs": 1e-10}), (torch.float32, {"rel": 1e-4})])
@pytest.mark.parametrize("switches", CELL_SWITCHES, ids=name_of)
def test_equals_the_scalar_equations(switches, dtype, off):
    model, pairs = cell_network(switches, dtype=dtype), random_pairs(25)
    values, weights = score(stepper(model, dtype), pairs), weights_of(model)
    for value, (source, target) in zip(values, pairs, strict=True):
        assert value == pytest.approx(
            reference.log_prob(weights, [*source, END_ID], [*target, END_ID], switches), **off
        )


def test_a_cell_has_the_stepper_that_knows_it():
    assert isinstance(stepper(cell_network(PAPERS["tanh"])), CellStepper)
    before = cell_network({**AFTER, "encoder_reset": "before"})
    assert type(stepper(before)) is EncDecStepper
    assert isinstance(stepper(cell_network(AFTER)), EncDecStepper)


@pytest.mark.parametrize("switches", SOME, ids=name_of)
def test_words_after_a_prefix_are_those_of_its_distribution(switches):
    side = stepper(cell_network(switches))
    terms, _ = side.read(*flat([[2, 3, 4], [], [6, 0], [2]]))
    rows = torch.tensor([0, 1, 1, 2, 3, 3, 3])
    prefixes = side.step(terms, side.start(terms), rows, torch.tensor([2, 3, 4, 5, 6, 7, 0]))
    assert prefixes.sources.tolist() == rows.tolist()
    torch.testing.assert_close(side.next_log_probs(terms, prefixes).exp().sum(1), torch.ones(7).double())
    above, words = torch.tensor([0, 0, 2, 3, 3, 5]), torch.tensor([1, 4, 0, 2, 7, 1])
    asked = terms, prefixes, above, words, node_blocks(above.numpy(), 7, side.words)
    own, inherited = side.word_log_probs(*asked), Stepper.word_log_probs(side, *asked)
    torch.testing.assert_close(own.double(), inherited, rtol=1e-12, atol=0)
    log_probs = side.next_log_probs(terms, side.start(terms))
    taken = side.start(terms.take(torch.tensor([3, 0])))
    torch.testing.assert_close(side.next_log_probs(terms.take(torch.tensor([3, 0])), taken), log_probs[[3, 0]])
    assert torch.equal(
        side.next_log_probs(terms, prefixes.take(slice(1, 3))), side.next_log_probs(terms, prefixes)[1:3]
    )


@pytest.mark.parametrize("switches", SOME, ids=name_of)
def test_sharing_changes_nothing(switches):
    side, pairs = stepper(cell_network(switches, dtype=torch.float32), torch.float32), random_pairs(60)
    alone = np.concatenate([score(side, [pair]) for pair in pairs])
    np.testing.assert_allclose(score(side, pairs), alone, rtol=1e-5)
    np.testing.assert_allclose(score(side, pairs[::-1])[::-1], alone, rtol=1e-5)


def test_a_beginning_that_sources_share_is_read_once(monkeypatch):
    side, steps, step = stepper(cell_network(PAPERS["lstm"])), [], SteppedCell.step
    monkeypatch.setattr(SteppedCell, "step", lambda self, *given: steps.append(len(given[0])) or step(self, *given))
    side.read(*flat([[2, 3], [2, 4], [2, 3], [2]]))
    assert steps == [1, 3, 2]  # 2; 3, 4 and </s>; two </s>


@pytest.mark.parametrize("switches", SOME, ids=name_of)
def test_bfloat16_products_stay_near(switches):
    model, pairs = cell_network(switches, dtype=torch.float32, scale=0.4), random_pairs(200)
    exact = score(stepper(model), pairs)
    rough = score(stepper(model, torch.bfloat16), pairs)
    assert 0 < np.abs(rough - exact).mean() < 0.03


@pytest.mark.parametrize("cell", ["leaky", "lstm-peephole"])
def test_scoring_waits_once_at_the_end(cell):
    model, pairs = cell_network(PAPERS[cell], dtype=torch.float32), random_pairs(80)
    with pretended_device() as device:
        side = cell_stepper(model, DEVICE, torch.float32, EAGER)
        device.events.clear()
        values = score(side, pairs)
    assert device.waits_only_at_the_end()
    assert np.array_equal(values, score(stepper(model, torch.float32), pairs))


@pytest.mark.parametrize("cell", ["relu", "lstm"])
def test_what_a_beam_finds_has_its_own_score(cell):
    side, sources = stepper(cell_network(PAPERS[cell])), [[2, 3, 4], [], [6, 0]]
    written = BeamSearch(side, BeamConfig(width=5, best=3, max_words=4))(sources)
    pairs = [(s, h) for s, each in zip(sources, written, strict=True) for h in each if h.ended]
    assert pairs
    scores = score(side, [(source, list(h.words)) for source, h in pairs])
    np.testing.assert_allclose(scores, [h.log_prob for _, h in pairs], atol=1e-10)
