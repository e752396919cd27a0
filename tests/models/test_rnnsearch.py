"""RNNsearch against the scalar equations, and its gradients against finite differences."""

import itertools
import math

import numpy as np
import pytest
import torch

from moses_rnn.models.batches import Batch
from moses_rnn.models.hardware import COMPILED
from moses_rnn.models.native_learning import NativeKernel
from moses_rnn.models.rnnsearch import RnnSearch, RnnSearchConfig
from moses_rnn.models.softmax import WordSample
from moses_rnn.models.vocabulary import END_ID
from moses_rnn.native import native_core
from tests.models import reference_rnnsearch as reference
from tests.models.networks import SEARCH_SIZES, search_network, weights_of

SOURCES = [[2, 3, 4, 5], [6, 0], [7], []]
TARGETS = [[2, 3, 0], [4, 5], [6], []]
SWITCHES = list(itertools.product(("paper", "groundhog"), (0, 3)))
PAPER = {"hidden_size": 1000, "embedding_size": 620, "alignment_size": 1000, "maxout_size": 500}
SMALL = {"hidden_size": 256, "embedding_size": 128, "alignment_size": 256, "maxout_size": 128}


def log_probs(model, sources, targets, source_of=None):
    """log p of each pair; both lists longest first."""
    target_batch = Batch.from_lists(targets)
    source_of = torch.arange(len(targets)) if source_of is None else torch.tensor(source_of)
    words = model.word_log_probs(Batch.from_lists(sources), target_batch, source_of)
    return torch.zeros(len(targets), dtype=words.dtype).index_add(0, target_batch.rows(), words)


@pytest.mark.parametrize(("phases", "rank"), SWITCHES)
def test_every_switch_agrees_with_the_scalar_equations(phases, rank):
    model = search_network(phases, rank)
    targets = Batch.from_lists(TARGETS)
    values = model.word_log_probs(Batch.from_lists(SOURCES), targets, torch.arange(len(TARGETS)))
    for i, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        ids = [*source, END_ID], [*target, END_ID]
        whole = reference.distributions(weights_of(model), *ids, {"phases": phases})
        expected = [math.log(p[word]) for p, word in zip(whole, ids[1], strict=True)]
        assert values[targets.rows() == i].tolist() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("phases", "rank"), SWITCHES)
def test_random_pairs_equal_the_scalar_equations_in_float32(phases, rank):
    model = search_network(phases, rank, dtype=torch.float32)
    random = np.random.default_rng(3)
    lengths = random.integers(0, 8, size=(40, 2))
    pairs = [(random.integers(2, 9, size=a).tolist(), random.integers(2, 8, size=b).tolist()) for a, b in lengths]
    sources = sorted((s for s, _ in pairs), key=len, reverse=True)
    targets = sorted(((t, sources.index(s)) for s, t in pairs), key=lambda pair: -len(pair[0]))
    values = log_probs(model, sources, [t for t, _ in targets], [i for _, i in targets])
    for value, (target, i) in zip(values.tolist(), targets, strict=True):
        ids = [*sources[i], END_ID], [*target, END_ID]
        assert value == pytest.approx(reference.log_prob(weights_of(model), *ids, {"phases": phases}), rel=1e-4)


@pytest.mark.parametrize(("phases", "rank"), SWITCHES)
def test_every_word_of_the_shortlist_together_is_certain(phases, rank):
    model = search_network(phases, rank)
    words = [[word] for word in range(SEARCH_SIZES["target_vocabulary_size"]) if word != END_ID]
    targets = Batch.from_lists(words)
    first = model.word_log_probs(Batch.from_lists(SOURCES), targets, torch.zeros(len(words), dtype=torch.int64))
    end = log_probs(model, SOURCES, [[]], [0])
    assert (first[: len(words)].exp().sum() + end.exp().sum()).item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("phases", ["paper", "groundhog"])
def test_a_score_depends_on_its_pair_alone(phases):
    model = search_network(phases)
    together = log_probs(model, SOURCES, TARGETS).tolist()
    alone = [log_probs(model, [s], [t]).item() for s, t in zip(SOURCES, TARGETS, strict=True)]
    assert together == pytest.approx(alone, rel=1e-12)


def test_the_phases_are_different_functions():
    paper, groundhog = search_network("paper"), search_network("groundhog")
    assert not torch.allclose(log_probs(paper, SOURCES, TARGETS), log_probs(groundhog, SOURCES, TARGETS))


def put(model, name, tensor):
    """Have a network compute with a tensor; torch.func cannot, where a layer is called "forward"."""
    for part in name.split(".")[:-1]:
        model = model._modules[part]
    model._parameters[name.split(".")[-1]] = tensor


@pytest.mark.parametrize(("phases", "rank"), SWITCHES)
def test_gradients_are_those_of_finite_differences(phases, rank):
    model = search_network(phases, rank)
    names, values = zip(*model.named_parameters(), strict=True)

    def of_weights(*weights):
        for name, tensor in zip(names, weights, strict=True):
            put(model, name, tensor)
        return log_probs(model, SOURCES, TARGETS).sum()

    assert torch.autograd.gradcheck(of_weights, values, fast_mode=True)


@pytest.mark.parametrize("phases", ["paper", "groundhog"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
def test_fused_and_native_work_give_the_same(phases):
    model = search_network(phases, dtype=torch.float32)
    expected = log_probs(model, SOURCES, TARGETS)
    kernels = [COMPILED] + [NativeKernel(core=core) for core in [native_core()] if core]
    for kernel in kernels:
        model.use_kernel(kernel)
        torch.testing.assert_close(log_probs(model, SOURCES, TARGETS), expected, rtol=1e-5, atol=1e-5)


def test_bfloat16_products_are_close():
    model = search_network(dtype=torch.float32, scale=0.3)
    batches = Batch.from_lists(SOURCES), Batch.from_lists(TARGETS), torch.arange(4)
    rounded = model.word_log_probs(*batches, torch.bfloat16)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, model.word_log_probs(*batches), rtol=0.05, atol=0.05)


def test_words_can_be_sampled_for_the_normalisation():
    model = search_network()
    every = torch.arange(SEARCH_SIZES["target_vocabulary_size"])
    sample = WordSample(every, torch.zeros(len(every), dtype=torch.float64))
    batches = Batch.from_lists(SOURCES), Batch.from_lists(TARGETS), torch.arange(4)
    torch.testing.assert_close(model.word_log_probs(*batches, None, sample), model.word_log_probs(*batches))


def test_units_are_left_out_of_embeddings_and_maxout():
    model = search_network()
    shapes = []

    def drop(x):
        shapes.append(tuple(x.shape))
        return x

    model.word_log_probs(Batch.from_lists(SOURCES), Batch.from_lists(TARGETS), torch.arange(4), drop=drop)
    nodes = len(Batch.from_lists(SOURCES).packed()), len(Batch.from_lists(TARGETS).packed())
    assert shapes == [(nodes[0], 3), (nodes[1], 3), (nodes[1], 4)]


def test_the_initial_weights_are_the_papers():
    model = RnnSearch(RnnSearchConfig(500, 400, 64, 32, 48, 16), seed=1)
    tensors = dict(model.named_parameters())
    assert all(not tensor.any() for tensor in tensors.values() if tensor.dim() == 1)
    for name in ("encoder.forward.U", "encoder.backward.U_z", "decoder.U_r"):
        torch.testing.assert_close(tensors[name] @ tensors[name].T, torch.eye(64))
    assert tensors["align.W_a"].std().item() == pytest.approx(0.001, rel=0.1)
    assert tensors["align.U_a"].std().item() == pytest.approx(0.001, rel=0.1)
    assert tensors["decoder.C"].std().item() == pytest.approx(0.01, rel=0.1)
    other = RnnSearch(RnnSearchConfig(500, 400, 64, 32, 48, 16), seed=1)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    ("sizes", "words", "rank", "expected"),
    [
        (PAPER, (30_002, 30_002), 0, 80_445_482),
        (PAPER, (30_002, 30_002), 620, 84_355_722),
        (SMALL, (5919, 6480), 0, 4_195_536),
    ],
)
def test_the_number_of_parameters(sizes, words, rank, expected):
    with torch.device("meta"):
        model = RnnSearch(RnnSearchConfig(*words, **sizes, output_rank=rank), seed=None)
    assert sum(tensor.numel() for tensor in model.parameters()) == expected


def test_the_names_of_the_tensors():
    gru = [f"{letter}{gate}" for letter in "WUb" for gate in ("", "_z", "_r")]
    names = [f"encoder.{side}.{name}" for side in ("forward", "backward") for name in gru]
    names += [f"decoder.{name}" for name in [*gru, "C", "C_z", "C_r", "V", "b_V", "O_h", "O_y", "O_c", "b_O", "b_G"]]
    names += ["encoder.embedding", "decoder.embedding", "align.W_a", "align.U_a", "align.v"]
    assert sorted(search_network().state_dict()) == sorted([*names, "decoder.G"])
    assert sorted(search_network(output_rank=3).state_dict()) == sorted([*names, "decoder.G_r", "decoder.G_l"])
