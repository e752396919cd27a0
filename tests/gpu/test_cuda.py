"""The same numbers on a CUDA device."""

import warnings

import numpy as np
import pytest
import torch

from moses_rnn.models.open import open_model
from moses_rnn.networks import steps
from moses_rnn.networks.batches import Batch
from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.networks.tries import build_trie, copy_levels
from moses_rnn.translation.search import BeamConfig, BeamSearch, Sampler, SamplingConfig
from tests.commands import run, settings
from tests.conftest import LEARNED, TINY
from tests.models import pairs as texts
from tests.models.bigrams import BigramStepper, random_network
from tests.networks.checkpoints import encdec_checkpoint, make_scorer
from tests.networks.id_pairs import flat, random_pairs, score
from tests.networks.networks import CUSTOM, encdec_network

pytestmark = pytest.mark.gpu

PAIRS = random_pairs(200)


@pytest.fixture(autouse=True)
def cuda():
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")


@pytest.mark.parametrize("variant", SWITCHES)
def test_scores_are_those_of_the_cpu(variant):
    model = encdec_network(SWITCHES[variant], dtype=torch.float32)
    checkpoint, pairs = encdec_checkpoint(model, texts.SOURCE, texts.TARGET), texts.random_pairs(500)
    scores = [texts.of_pairs(make_scorer(checkpoint, device), pairs) for device in ("cpu", "cuda")]
    np.testing.assert_allclose(*scores, atol=1e-4)


@pytest.mark.parametrize("at_once", [1 << 24, 24, 8])
@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_steppers_agree_however_much_is_done_at_once(monkeypatch, switches, at_once):
    model = encdec_network(switches)
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE_ELSEWHERE", at_once)
    values = score(EncDecStepper(model, "cuda", torch.float64), PAIRS)
    np.testing.assert_allclose(values, score(EncDecStepper(model, dtype=torch.float64), PAIRS), rtol=1e-9)


def test_what_steppers_inherit_agrees():
    on_cpu, on_gpu = (BigramStepper(random_network(9, 8), device, torch.float64) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(score(on_gpu, PAIRS), score(on_cpu, PAIRS), rtol=1e-9)


def test_odd_pairs_agree():
    model = encdec_network(SWITCHES["paper"])
    for pairs in ([([2, 3], [4])], [([], [])], [([2], []), ([], [3])]):
        values = score(EncDecStepper(model, "cuda", torch.float64), pairs)
        np.testing.assert_allclose(values, score(EncDecStepper(model, dtype=torch.float64), pairs), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scoring_waits_once(dtype):
    """torch warns of every wait that it knows: here of the copy of the scores to the processor, and of no other."""
    stepper = EncDecStepper(encdec_network(SWITCHES["paper"], dtype=torch.float32), "cuda", dtype)
    score(stepper, PAIRS)  # libraries and memory are set up
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            score(stepper, PAIRS)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert sum("called a synchronizing CUDA operation" in str(message.message) for message in messages) == 1


def test_copies_in_flight_keep_their_values():
    """Many tries are copied while the device is busy: no pinned memory is given away before it has been read."""
    busy = torch.ones(4096, 4096, device="cuda")
    tries = [build_trie(*flat([target for _, target in random_pairs(500, seed=seed)])) for seed in range(40)]
    for _ in range(20):
        busy = busy @ busy * 0
    copies = [copy_levels(trie.levels, torch.device("cuda")) for trie in tries]
    for trie, copied in zip(tries, copies, strict=True):
        for level, tensors in zip(trie.levels, copied, strict=True):
            for array, tensor in zip(level, tensors, strict=True):
                assert tensor.device.type == "cuda"
                assert tensor.tolist() == array.tolist()


WRITERS = {
    "sampling": lambda stepper: Sampler(stepper, SamplingConfig(samples=20)),
    "beam search": lambda stepper: BeamSearch(stepper, BeamConfig(width=5, best=3, max_words=4)),
    "mean": lambda stepper: BeamSearch(stepper, BeamConfig(5, 3, words_per_source_word=2, length_score="mean")),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_what_is_written_is_that_of_the_cpu(write):
    model, sources = encdec_network(SWITCHES["paper"]), [source for source, _ in PAIRS[:8]]
    on_cpu, on_gpu = (write(EncDecStepper(model, device, torch.float64))(sources) for device in ("cpu", "cuda"))
    for expected, targets in zip(on_cpu, on_gpu, strict=True):
        assert [(target.words, target.ended) for target in targets] == [(t.words, t.ended) for t in expected]
        log_probs = [target.log_prob for target in targets]
        np.testing.assert_allclose(log_probs, [target.log_prob for target in expected], rtol=1e-9)


def test_a_search_among_candidates_is_that_of_the_cpu():
    model, sources = encdec_network(SWITCHES["paper"]), [source for source, _ in PAIRS[:8]]
    words, allowed = torch.tensor([0, 1, 2, 5, 7]), torch.ones(8, 5, dtype=torch.bool)
    allowed[::2, 3] = False
    targets = []
    for device in ("cpu", "cuda"):
        search = BeamSearch(EncDecStepper(model, device, torch.float64), BeamConfig(width=5, best=3, max_words=4))
        targets.append(search(sources, steps.Candidates(words.to(device), allowed.to(device))))
    for expected, of_gpu in zip(*targets, strict=True):
        assert [target.words for target in of_gpu] == [target.words for target in expected]
        log_probs = [target.log_prob for target in of_gpu]
        np.testing.assert_allclose(log_probs, [target.log_prob for target in expected], rtol=1e-9)


def test_a_partition_is_learned_as_on_the_cpu():
    gradients = []
    for device in ("cpu", "cuda"):
        model = encdec_network(SWITCHES["paper"]).to(device)
        sources, targets = (Batch.from_lists(side, device) for side in ([[2, 3, 4], [5]], [[2, 5], [7]]))
        partition = torch.tensor([0, 1, 2, 5, 7], device=device)
        log_probs = model.word_log_probs(sources, targets, torch.arange(2, device=device), partition=partition)
        log_probs.sum().backward()
        gradients.append([log_probs, *(tensor.grad for tensor in model.parameters())])
    for expected, of_gpu in zip(*gradients, strict=True):
        torch.testing.assert_close(of_gpu.cpu(), expected.cpu(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_trains_and_scores(table, tmp_path, precision):
    model = tmp_path / "model"
    file = settings(tmp_path, precision=precision)
    run("train", table, *TINY, "--model", model, "--device", "cuda", *file, *LEARNED)
    assert open_model(model).provenance["device"] == "cuda"
    done = run("score", table, "--model", model, "--device", "cuda", "-o", tmp_path / "t.gz")
    assert "3,000 lines scored" in done.stderr
