"""Models and training in several processes: results are those of this process, and it keeps its own."""

import multiprocessing
import pickle

import numpy as np
import pytest
import torch

import moses_rnn
from moses_rnn.models.open import open_model
from moses_rnn.native import native_core
from moses_rnn.table.table_blocks import Pairs
from moses_rnn.training.train import train
from moses_rnn.training.trainer import Nobody, Observer
from tests.api.calls import CALLS, PAIRS, TINY, load, write_material

USES = {
    "score": lambda model: model.score(PAIRS * 2000).tolist(),  # several chunks, so several threads
    "explain": lambda model: repr(model.explain("s2 s3", "t2")),
    "sample": lambda model: repr(model.sample(["s2"], 5, max_words=9)),
}
TRAININGS = "train", "train in threads", "train an RNNLM"

# Python warns of every fork beside threads
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def used(model):
    return {name: use(model) for name, use in USES.items()}


def trained(folder, place):
    return [CALLS[name](folder, place) for name in TRAININGS]


def spoil_freed_memory():
    """Write into memory that was freed, as any program may."""
    for seed in range(20):
        [np.random.default_rng(seed).standard_normal(n).astype("f4") for n in range(1, 200)]


@pytest.fixture(scope="module")
def expected_weights(models, tmp_path_factory):
    write_material(models)
    return trained(models, tmp_path_factory.mktemp("expected"))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_give_the_same_results(method, models, expected_weights, tmp_path):
    loaded = [load(models, name) for name in ("rnn", "search")]
    expected = [used(model) for model in loaded]
    torch.set_num_threads(2)
    try:
        torch.ones(512, 512) @ torch.ones(512, 512)  # a forked process lacks the threads that this starts
        with multiprocessing.get_context(method).Pool(1, torch.set_num_threads, (1,)) as pool:
            theirs = [pool.apply_async(used, (model,)).get(timeout=120) for model in loaded]
            weights = pool.apply_async(trained, (models, tmp_path)).get(timeout=120)
    finally:
        torch.set_num_threads(1)
    spoil_freed_memory()
    assert theirs == expected
    assert weights == expected_weights
    assert [used(model) for model in loaded] == expected


def test_forked_processes_answer_whatever_their_number_of_threads(models):
    model = load(models, "search")
    torch.set_num_threads(2)
    try:
        expected = model.score(PAIRS * 2000)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            theirs = pool.apply_async(model.score, (PAIRS * 2000,)).get(timeout=120)
            assert pool.apply(torch.get_num_threads) == 2
    finally:
        torch.set_num_threads(1)
    assert theirs == pytest.approx(expected, rel=1e-5)


def change_in_place(network):
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(2).add_(1)


CHANGES = {
    "shared": torch.nn.Module.share_memory,
    "converted": lambda network: network.to(torch.float64),
    "changed in place": change_in_place,
    "pickled": pickle.dumps,
    "sent": multiprocessing.reduction.ForkingPickler.dumps,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["rnn", "search", "cslm", "rnnlm"])
def test_a_scorer_keeps_the_weights_of_which_it_was_made(name, change, models):
    model, pairs = open_model(models / name, of_pairs=False), Pairs.of([(s.encode(), t.encode()) for s, t in PAIRS])
    compute = model.choose_compute()
    scorer = model.make_scorer(compute)
    expected = scorer.log_probs(pairs).tolist()
    CHANGES[change](model.network)
    spoil_freed_memory()
    assert scorer.log_probs(pairs).tolist() == expected
    if change != "changed in place":
        assert model.make_scorer(compute).log_probs(pairs).tolist() == expected


class Sharer(Observer):
    """Moves the network's memory while it is trained."""

    def stepped(self, trainer, loss):
        trainer.model.share_memory()
        spoil_freed_memory()


class Converter(Observer):
    def stepped(self, trainer, loss):
        trainer.model.to(torch.float64)


OPTIONS = {"maxout_size": 4, "output_rank": 3, "shortlist": 20, "held_out": 10, **TINY}


@pytest.mark.parametrize("optimiser", ["adam", "adadelta"])
def test_training_follows_weights_to_other_memory(optimiser, models, tmp_path):
    write_material(models)
    for name, observer in (("alone", Nobody), ("shared", Sharer)):
        train(models / "learn", model=tmp_path / name, observer=observer(), optimiser=optimiser, **OPTIONS)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("alone", "shared")]
    assert weights[0] == weights[1]


def test_the_core_refuses_what_it_cannot_read(models, tmp_path):
    write_material(models)
    if native_core() is None:
        pytest.skip("the native core was not built, or is switched off")
    with pytest.raises(moses_rnn.MosesRnnError, match=r"expected contiguous float32 .* found torch\.float64"):
        train(models / "learn", model=tmp_path / "model", observer=Converter(), **OPTIONS)
