"""The RNN Encoder-Decoder against the scalar equations, and its gradients against finite differences."""

import numpy as np
import pytest
import torch
from torch.nn.functional import linear

from moses_rnn.models.batches import Batch
from moses_rnn.models.encdec import EncDec
from moses_rnn.models.hardware import COMPILED
from moses_rnn.models.variants import SWITCHES, EncDecConfig
from moses_rnn.models.vocabulary import END_ID
from tests.models import reference
from tests.models.networks import CUSTOM, SIZES, encdec_network, weights_of

SOURCES = [[2, 3, 4, 5], [6, 0], [7], []]
TARGETS = [[2, 3, 0], [4, 5], [6], []]


def log_probs(model, sources, targets, source_of=None):
    """log p of each pair; both lists longest first."""
    target_batch = Batch.from_lists(targets)
    source_of = torch.arange(len(targets)) if source_of is None else torch.tensor(source_of)
    words = model.word_log_probs(Batch.from_lists(sources), target_batch, source_of)
    return torch.zeros(len(targets), dtype=words.dtype).index_add(0, target_batch.rows(), words)


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_every_switch_agrees_with_the_scalar_equations(switches):
    model = encdec_network(switches)
    found = distributions(model, SOURCES, TARGETS)
    for i, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        expected = reference.distributions(weights_of(model), [*source, END_ID], [*target, END_ID], switches)
        np.testing.assert_allclose(np.array(found[i]), np.array(expected), atol=1e-12)


def distributions(model, sources, targets):
    """For each pair the distributions of its words, from one batch."""
    target_batch = Batch.from_lists(targets)
    decoder, kind = model.decoder, torch.float64
    terms = decoder.terms(model.encoder(Batch.from_lists(sources), kind), kind)
    projected = decoder.read_out(*decoder.nodes(terms, target_batch, kind), kind)
    p = linear(projected, decoder.G_l, decoder.b_G).softmax(dim=1)
    return [p[target_batch.rows() == row].tolist() for row in range(len(targets))]


@pytest.mark.parametrize("variant", SWITCHES)
def test_200_random_pairs_equal_the_scalar_equations_in_float32(variant):
    model = encdec_network(SWITCHES[variant], dtype=torch.float32)
    random = np.random.default_rng(3)
    lengths = random.integers(0, 8, size=(200, 2))
    pairs = [(random.integers(2, 9, size=a).tolist(), random.integers(2, 8, size=b).tolist()) for a, b in lengths]
    sources = sorted((s for s, _ in pairs), key=len, reverse=True)
    targets = sorted(((t, sources.index(s)) for s, t in pairs), key=lambda pair: -len(pair[0]))
    found = log_probs(model, sources, [t for t, _ in targets], [i for _, i in targets])
    for value, (target, i) in zip(found.tolist(), targets, strict=True):
        ids = [*sources[i], END_ID], [*target, END_ID]
        assert value == pytest.approx(reference.log_prob(weights_of(model), *ids, SWITCHES[variant]), abs=1e-4)


@pytest.mark.parametrize("variant", SWITCHES)
def test_every_step_is_a_distribution(variant):
    for words in distributions(encdec_network(SWITCHES[variant]), SOURCES, TARGETS):
        np.testing.assert_allclose(np.sum(words, axis=1), 1)


@pytest.mark.parametrize("variant", SWITCHES)
def test_a_score_depends_on_its_pair_alone(variant):
    model = encdec_network(SWITCHES[variant])
    together = log_probs(model, SOURCES, TARGETS).tolist()
    alone = [log_probs(model, [s], [t]).item() for s, t in zip(SOURCES, TARGETS, strict=True)]
    assert together == pytest.approx(alone, rel=1e-12)


def test_without_reset_the_paper_forgets_the_summary_and_groundhog_keeps_it():
    """Discrepancy D3: r' = 0 gates C c in the paper's decoder, not in the released code."""
    nothing = Batch.from_lists([[]])
    for reset, forgets in (("after", True), ("before", False)):
        model = encdec_network({**SWITCHES["paper"], "decoder_reset": reset})
        with torch.no_grad():
            model.decoder.b_r.fill_(-1e9)  # r' = 0
            model.decoder.C_z.zero_()  # c reaches the state through the candidate alone
            model.decoder.V.zero_()
        states = []
        for c in (torch.zeros(1, 5).double(), torch.ones(1, 5).double()):
            terms = model.decoder.terms(c, torch.float64)
            states.append(model.decoder.nodes(terms, nothing, torch.float64)[0])
        assert torch.equal(*states) == forgets


class LogLikelihood(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self):
        return log_probs(self.model, SOURCES, TARGETS).sum()


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_gradients_are_those_of_finite_differences(switches):
    likelihood = LogLikelihood(encdec_network(switches))
    names, values = zip(*likelihood.named_parameters(), strict=True)

    def of_weights(*weights):
        return torch.func.functional_call(likelihood, dict(zip(names, weights, strict=True)), ())

    assert torch.autograd.gradcheck(of_weights, values, fast_mode=True)


@pytest.mark.parametrize("variant", SWITCHES)
def test_every_single_derivative_is_that_of_finite_differences(variant):
    model = encdec_network(SWITCHES[variant])
    log_probs(model, SOURCES, TARGETS).sum().backward()
    random = np.random.default_rng(1)
    for name, tensor in model.named_parameters():
        place = tuple(int(random.integers(size)) for size in tensor.shape)
        sums = []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                tensor[place] += step
                sums.append(log_probs(model, SOURCES, TARGETS).sum().item())
                tensor[place] -= step
        assert tensor.grad[place].item() == pytest.approx((sums[0] - sums[1]) / 2e-6, rel=1e-5, abs=1e-7), name


def test_bf16_products_are_near_those_of_float32():
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    batches = Batch.from_lists(SOURCES), Batch.from_lists(TARGETS), torch.arange(4)
    gradients = []
    for product in (torch.float32, torch.bfloat16):
        model.zero_grad()
        log_p = model.word_log_probs(*batches, product)
        log_p.sum().backward()
        assert log_p.dtype == torch.float32
        gradients.append(torch.cat([tensor.grad.flatten() for tensor in model.parameters()]))
    assert torch.nn.functional.cosine_similarity(*gradients, dim=0) > 0.99
    assert not torch.equal(*gradients)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
@pytest.mark.parametrize("variant", SWITCHES)
def test_fused_and_unfused_work_give_the_same_gradients(variant):
    model = encdec_network(SWITCHES[variant], dtype=torch.float32)
    gradients = []
    for _ in range(2):
        model.zero_grad()
        log_probs(model, SOURCES, TARGETS).sum().backward()
        gradients.append(torch.cat([tensor.grad.flatten() for tensor in model.parameters()]))
        model.use_kernel(COMPILED)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def test_initial_weights_are_the_papers():
    sizes = {**SIZES, "hidden_size": 60, "source_vocabulary_size": 2000}
    model = EncDec(EncDecConfig(**sizes), seed=1)
    for name in ("encoder.U", "encoder.U_z", "encoder.U_r", "decoder.U", "decoder.U_z", "decoder.U_r"):
        U = model.state_dict()[name]
        torch.testing.assert_close(U @ U.T, torch.eye(60), atol=1e-4, rtol=0)
    embedding = model.encoder.embedding
    assert embedding.std().item() == pytest.approx(0.01, rel=0.05)
    assert all((tensor == 0).all() for tensor in model.parameters() if tensor.dim() == 1)


def test_equal_seeds_give_equal_weights_and_others_do_not():
    first, same, other = (EncDec(EncDecConfig(**SIZES), seed=seed).encoder.W for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_the_papers_sizes_have_its_number_of_parameters():
    """model.md's shapes summed: encoder 15002·100 + 3·1000·(100 + 1000 + 1) + 1000·1001, decoder likewise."""
    config = EncDecConfig(source_vocabulary_size=15002, target_vocabulary_size=15002)
    with torch.device("meta"):
        model = EncDec(config, seed=None)
    encoder = 15002 * 100 + 3 * 1000 * (100 + 1000 + 1) + 1000 * 1001
    gates = 3 * 1000 * (100 + 1000 + 1000 + 1)
    read_out = 1000 * (1000 + 1000 + 100 + 1) + 100 * 500 + 15002 * 101
    assert (
        sum(tensor.numel() for tensor in model.parameters()) == encoder + 15002 * 100 + gates + 1000 * 1001 + read_out
    )
