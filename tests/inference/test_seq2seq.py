"""The deep LSTM arranged for scoring, against the scalar equations and the network that learns; and what it can learn."""

import numpy as np
import pytest
import torch

from moses_rnn.inference.seq2seq import Seq2SeqStepper, SteppedStack, reverse_each
from moses_rnn.inference.steps import Stepper, node_blocks
from moses_rnn.models.batches import Batch
from moses_rnn.models.hardware import COMPILED
from moses_rnn.models.seq2seq import Seq2Seq, Seq2SeqConfig
from moses_rnn.models.vocabulary import END_ID
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from tests.inference.id_pairs import flat, random_pairs, score
from tests.inference.pretended_device import DEVICE, pretended_device
from tests.models import reference_seq2seq as reference
from tests.models.networks import SEQ2SEQ_SWITCHES, seq2seq_network, weights_of

SOURCES = [[2, 3, 4], [], [6, 0], [2]]


def name_of(switches):
    return "-".join(map(str, switches.values()))


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, {"abs": 1e-10}), (torch.float32, {"rel": 1e-4})])
@pytest.mark.parametrize("switches", SEQ2SEQ_SWITCHES, ids=name_of)
def test_equals_the_scalar_equations(switches, dtype, off):
    model, pairs = seq2seq_network(switches, dtype=dtype), random_pairs(30)
    values, weights = score(Seq2SeqStepper(model, dtype=dtype), pairs), weights_of(model)
    for value, (source, target) in zip(values, pairs, strict=True):
        assert value == pytest.approx(
            reference.log_prob(weights, [*source, END_ID], [*target, END_ID], switches), **off
        )


@pytest.mark.parametrize("switches", SEQ2SEQ_SWITCHES, ids=name_of)
def test_equals_the_network_that_learns(switches):
    model, pairs = seq2seq_network(switches), random_pairs(60)
    values = score(Seq2SeqStepper(model, dtype=torch.float64), pairs)
    for value, (source, target) in zip(values, pairs, strict=True):
        learnt = model.word_log_probs(Batch.from_lists([source]), Batch.from_lists([target]), torch.tensor([0]))
        assert value == pytest.approx(learnt.sum().item(), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_words_after_a_prefix_are_those_of_its_distribution(dtype):
    stepper = Seq2SeqStepper(seq2seq_network(dtype=dtype), dtype=dtype)
    terms, _ = stepper.read(*flat(SOURCES))
    rows = torch.tensor([0, 1, 1, 2, 3, 3, 3])
    prefixes = stepper.step(terms, stepper.start(terms), rows, torch.tensor([2, 3, 4, 5, 6, 7, 0]))
    assert prefixes.sources.tolist() == rows.tolist()
    torch.testing.assert_close(stepper.next_log_probs(terms, prefixes).exp().sum(1), torch.ones(7).double())
    above, words = torch.tensor([0, 0, 2, 3, 3, 5]), torch.tensor([1, 4, 0, 2, 7, 1])
    asked = terms, prefixes, above, words, node_blocks(above.numpy(), 7, stepper.words)
    own, inherited = stepper.word_log_probs(*asked), Stepper.word_log_probs(stepper, *asked)
    torch.testing.assert_close(own.double(), inherited, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=0)


def test_terms_and_prefixes_can_be_taken():
    stepper = Seq2SeqStepper(seq2seq_network(), dtype=torch.float64)
    terms, _ = stepper.read(*flat(SOURCES))
    prefixes = stepper.start(terms)
    log_probs = stepper.next_log_probs(terms, prefixes)
    assert torch.equal(stepper.next_log_probs(terms, prefixes.take(slice(1, 3))), log_probs[1:3])
    rows = torch.tensor([3, 0, 3])
    again = stepper.start(terms.take(rows))
    torch.testing.assert_close(stepper.next_log_probs(terms, again), log_probs[rows])


@pytest.mark.parametrize(("order", "stepped"), [("reversed", [2, 2, 2]), ("forward", [3, 2, 2])])
def test_equal_sources_and_beginnings_in_the_order_of_reading_are_read_once(monkeypatch, order, stepped):
    """[2, 3], [4, 3] and [], of which two end alike; the end symbol is a step of its own."""
    model = seq2seq_network({"source_order": order, "peepholes": True, "layers": 2})
    stepper, steps, step = Seq2SeqStepper(model), [], SteppedStack.step
    monkeypatch.setattr(SteppedStack, "step", lambda self, *given: steps.append(len(given[0])) or step(self, *given))
    terms, row_of = stepper.read(*flat([[2, 3], [4, 3], [2, 3], [], [4, 3]]))
    assert [len(state.h) for state in terms.layers] == [3, 3]
    assert row_of[[0, 1]].tolist() == row_of[[2, 4]].tolist()
    assert steps == stepped


def test_words_are_reversed_within_their_sentences():
    assert reverse_each(*flat([[2, 3, 4], [], [5], [6, 7]])).tolist() == [4, 3, 2, 5, 7, 6]
    assert reverse_each(*flat([[]])).tolist() == []


def test_bfloat16_products_stay_near():
    model, pairs = seq2seq_network(dtype=torch.float32), random_pairs(300)
    exact = score(Seq2SeqStepper(model, dtype=torch.float64), pairs)
    rough = score(Seq2SeqStepper(model, dtype=torch.bfloat16), pairs)
    assert 0 < np.abs(rough - exact).mean() < 0.02


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
def test_compiled_and_eager_work_agree():
    model, pairs = seq2seq_network(dtype=torch.float32), random_pairs(100)
    fused = Seq2SeqStepper(model, kernel=COMPILED)
    np.testing.assert_allclose(score(fused, pairs), score(Seq2SeqStepper(model), pairs), rtol=1e-5)


def test_sharing_changes_nothing():
    stepper, pairs = Seq2SeqStepper(seq2seq_network(dtype=torch.float32)), random_pairs(100)
    alone = np.concatenate([score(stepper, [pair]) for pair in pairs])
    np.testing.assert_allclose(score(stepper, pairs), alone, rtol=1e-5)
    np.testing.assert_allclose(score(stepper, pairs[::-1])[::-1], alone, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scoring_waits_once_at_the_end(dtype):
    """Sources and targets go to the device in one copy each."""
    model, pairs = seq2seq_network(dtype=torch.float32), random_pairs(80)
    with pretended_device() as device:
        stepper = Seq2SeqStepper(model, DEVICE, dtype)
        device.events.clear()
        values = score(stepper, pairs)
    assert device.waits_only_at_the_end()
    assert device.arrivals == 2
    assert np.array_equal(values, score(Seq2SeqStepper(model, dtype=dtype), pairs))


def test_what_a_beam_finds_has_its_own_score():
    stepper = Seq2SeqStepper(seq2seq_network(), dtype=torch.float64)
    written = BeamSearch(stepper, BeamConfig(width=5, best=3, max_words=4))(SOURCES)
    pairs = [
        (source, h.words, h.log_prob) for source, each in zip(SOURCES, written, strict=True) for h in each if h.ended
    ]
    assert len(pairs) > 4
    scores = score(stepper, [(source, list(words)) for source, words, _ in pairs])
    np.testing.assert_allclose([log_prob for *_, log_prob in pairs], scores, rtol=1e-10)


# --- copying ------------------------------------------------------------------------------------------------------------


def some_words(random, count, letters, lengths):
    """Distinct words of random letters, longest first."""
    drawn = {tuple(random.integers(2, 2 + letters, size=random.integers(*lengths))) for _ in range(count)}
    return sorted((list(map(int, word)) for word in sorted(drawn)), key=len, reverse=True)


def learn_to_copy(model, held_out, steps, draw):
    """Learn from words that are not held out, by Adam, the last third of the steps a quarter as large."""
    unseen = set(map(tuple, held_out))
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 0.01 if 3 * step < 2 * steps else 0.0025
        batch = Batch.from_lists([word for word in draw() if tuple(word) not in unseen])
        optimiser.zero_grad()
        (-model.word_log_probs(batch, batch, torch.arange(batch.active[0])).mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimiser.step()


COPYING = {  # letters, lengths, hidden units, steps
    "2 to 3 of 4 letters": (4, (2, 4), 48, 200),
    "3 to 8 of 12 letters": (12, (3, 9), 96, 1000),
}


@pytest.mark.parametrize(
    ("letters", "lengths", "hidden_size", "steps"),
    [pytest.param(*row, id=name, marks=[pytest.mark.slow] if row[-1] > 500 else []) for name, row in COPYING.items()],
)
def test_it_learns_to_copy_words_that_it_has_not_seen(letters, lengths, hidden_size, steps):
    random = np.random.default_rng(1)
    held_out = some_words(random, 300 if letters > 4 else 30, letters, lengths)
    model = Seq2Seq(Seq2SeqConfig(letters + 2, letters + 2, hidden_size, 32, layers=1), seed=1)
    learn_to_copy(model, held_out, steps, lambda: some_words(random, 64, letters, lengths))
    written = BeamSearch(Seq2SeqStepper(model), BeamConfig(width=1, best=1, max_words=lengths[1]))(held_out)
    right = [list(best.words) == word and best.ended for (best,), word in zip(written, held_out, strict=True)]
    assert np.mean(right) >= 0.95


@pytest.mark.parametrize("switches", SEQ2SEQ_SWITCHES, ids=name_of)
def test_a_summary_is_h_of_all_layers_after_the_source(switches):
    model = seq2seq_network(switches)
    stepper, weights = Seq2SeqStepper(model, dtype=torch.float64), weights_of(model)
    terms, row_of = stepper.read(*flat(SOURCES))
    for source, row in zip(SOURCES, row_of, strict=True):
        states = reference.encoded(weights, [*source, END_ID], switches)
        expected = [value for h, _ in states for value in h]
        assert stepper.summaries(terms)[row].tolist() == pytest.approx(expected, abs=1e-12)
