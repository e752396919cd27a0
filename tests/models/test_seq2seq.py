"""The deep LSTM against the scalar equations, its gradients against finite differences."""

import numpy as np
import pytest
import torch
from torch.nn.functional import linear

from moses_rnn.errors import CheckpointError
from moses_rnn.models.batches import Batch
from moses_rnn.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from moses_rnn.models.hardware import COMPILED
from moses_rnn.models.native_learning import NativeKernel
from moses_rnn.models.seq2seq import SEQ2SEQ, Seq2Seq, Seq2SeqConfig, reverse_words
from moses_rnn.models.softmax import WordSample
from moses_rnn.models.vocabulary import END_ID
from moses_rnn.native import native_core
from tests.inference.id_pairs import random_pairs
from tests.models import reference_seq2seq as reference
from tests.models.networks import SEQ2SEQ_SWITCHES, TWO_LAYERS, seq2seq_network, weights_of
from tests.models.saved import SOURCE, TARGET, edit_config

SOURCES = [[2, 3, 4, 5], [6, 0], [7], []]
TARGETS = [[2, 3, 0], [4, 5], [6], []]
FORWARD = {**TWO_LAYERS, "source_order": "forward"}


def name_of(switches):
    return "-".join(map(str, switches.values()))


def log_probs(model, sources, targets, source_of=None, **how):
    """log p of each pair; both lists longest first."""
    batch = Batch.from_lists(targets)
    source_of = torch.arange(len(targets)) if source_of is None else torch.tensor(source_of)
    words = model.word_log_probs(Batch.from_lists(sources), batch, source_of, **how)
    return torch.zeros(len(targets), dtype=words.dtype).index_add(0, batch.rows(), words)


def distributions(model, sources, targets):
    """For each pair the distributions of its words, from one batch."""
    batch, decoder = Batch.from_lists(targets), model.decoder
    h = decoder(model.encoder(Batch.from_lists(sources), torch.float64), batch, torch.float64)
    p = linear(h, decoder.G, decoder.b_G).softmax(dim=1)
    return [p[batch.rows() == row].tolist() for row in range(len(targets))]


@pytest.mark.parametrize("switches", SEQ2SEQ_SWITCHES, ids=name_of)
def test_every_switch_agrees_with_the_scalar_equations(switches):
    model = seq2seq_network(switches)
    weights, found = weights_of(model), distributions(model, SOURCES, TARGETS)
    scores = log_probs(model, SOURCES, TARGETS).tolist()
    for i, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        ids = [*source, END_ID], [*target, END_ID]
        np.testing.assert_allclose(found[i], reference.distributions(weights, *ids, switches), atol=1e-12)
        np.testing.assert_allclose(np.sum(found[i], axis=1), 1)
        assert scores[i] == pytest.approx(reference.log_prob(weights, *ids, switches), abs=1e-10)


@pytest.mark.parametrize("switches", SEQ2SEQ_SWITCHES, ids=name_of)
def test_random_pairs_equal_the_scalar_equations_in_float32(switches):
    model = seq2seq_network(switches, dtype=torch.float32)
    pairs = random_pairs(40)
    sources = sorted((s for s, _ in pairs), key=len, reverse=True)
    targets = sorted(((t, sources.index(s)) for s, t in pairs), key=lambda pair: -len(pair[0]))
    scores = log_probs(model, sources, [t for t, _ in targets], [i for _, i in targets])
    weights = weights_of(model)
    for score, (target, i) in zip(scores.tolist(), targets, strict=True):
        expected = reference.log_prob(weights, [*sources[i], END_ID], [*target, END_ID], switches)
        assert score == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("switches", SEQ2SEQ_SWITCHES, ids=name_of)
def test_a_score_depends_on_its_pair_alone(switches):
    """Not on who is in the batch with it, on their lengths, nor on their order."""
    model = seq2seq_network(switches, dtype=torch.float32)
    together = log_probs(model, SOURCES, TARGETS).tolist()
    alone = [log_probs(model, [s], [t]).item() for s, t in zip(SOURCES, TARGETS, strict=True)]
    assert together == pytest.approx(alone, rel=1e-5)
    others = log_probs(model, [[8] * 9, *SOURCES], [[7] * 9, *TARGETS], [0, 1, 2, 3, 4]).tolist()
    assert others[1:] == pytest.approx(alone, rel=1e-5)
    crossed = log_probs(model, SOURCES, TARGETS, [3, 2, 1, 0]).tolist()
    pairs = zip(SOURCES[::-1], TARGETS, strict=True)
    assert crossed == pytest.approx([log_probs(model, [s], [t]).item() for s, t in pairs], rel=1e-5)


class LogLikelihood(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self):
        return log_probs(self.model, SOURCES, TARGETS).sum()


@pytest.mark.parametrize("switches", SEQ2SEQ_SWITCHES, ids=name_of)
def test_gradients_are_those_of_finite_differences(switches):
    likelihood = LogLikelihood(seq2seq_network(switches))
    names, values = zip(*likelihood.named_parameters(), strict=True)

    def of_weights(*weights):
        return torch.func.functional_call(likelihood, dict(zip(names, weights, strict=True)), ())

    assert torch.autograd.gradcheck(of_weights, values, fast_mode=True)


def gradients_of(model, **how):
    model.zero_grad()
    log_probs(model, SOURCES, TARGETS, **how).sum().backward()
    return torch.cat([tensor.grad.flatten() for tensor in model.parameters()])


def test_bf16_products_are_near_those_of_float32():
    model = seq2seq_network(dtype=torch.float32)
    gradients = [gradients_of(model, product_dtype=dtype) for dtype in (torch.float32, torch.bfloat16)]
    assert log_probs(model, SOURCES, TARGETS, product_dtype=torch.bfloat16).dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(*gradients, dim=0) > 0.99
    assert not torch.equal(*gradients)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
def test_fused_and_unfused_work_give_the_same_gradients():
    model = seq2seq_network(dtype=torch.float32)
    eager = gradients_of(model)
    model.use_kernel(COMPILED)
    torch.testing.assert_close(gradients_of(model), eager, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")
def test_the_native_core_gives_the_same_gradients():
    model = seq2seq_network(dtype=torch.float32)
    eager = gradients_of(model)
    model.use_kernel(NativeKernel(core=native_core()))
    torch.testing.assert_close(gradients_of(model), eager, rtol=1e-4, atol=1e-4)


def test_a_sample_of_all_words_gives_the_whole_sum():
    """Each word drawn once, and expected once: the estimate is exact."""
    model = seq2seq_network()
    every = WordSample(torch.arange(8), torch.zeros(8).double())
    sampled = log_probs(model, SOURCES, TARGETS, sample=every)
    torch.testing.assert_close(sampled, log_probs(model, SOURCES, TARGETS))


def test_units_are_left_out_of_layers_and_of_what_predicts():
    """Of a^l_t of each layer and of h'^L_i, and of nothing that goes from step to step."""
    shapes = []

    def drop(x):
        shapes.append(tuple(x.shape))
        return x

    model = seq2seq_network({**TWO_LAYERS, "layers": 3})
    log_probs(model, SOURCES, TARGETS, drop=drop)
    read, written = (sum(len(phrase) + 1 for phrase in side) for side in (SOURCES, TARGETS))
    assert shapes == [(read, 3), (read, 5), (read, 5), (written, 3), (written, 5), (written, 5), (written, 5)]
    without = log_probs(model, SOURCES, TARGETS, drop=torch.zeros_like)
    assert not torch.equal(without, log_probs(model, SOURCES, TARGETS))


# --- what the encoder hands over ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("part", ["h", "m"])
def test_each_layer_begins_where_the_same_layer_has_ended(layer, part):
    model, target = seq2seq_network(TWO_LAYERS), Batch.from_lists([[2, 3]])
    states = model.encoder(Batch.from_lists([[2, 3, 4]]), torch.float64)
    whole = model.decoder(states, target, torch.float64)
    states[layer] = states[layer]._replace(**{part: torch.zeros_like(getattr(states[layer], part))})
    lacking = model.decoder(states, target, torch.float64)
    assert not torch.isclose(whole, lacking, rtol=1e-4).any()


def test_reversed_reads_the_reverse_of_forward():
    backwards = [source[::-1] for source in SOURCES]
    models = seq2seq_network(TWO_LAYERS), seq2seq_network(FORWARD)
    scores = [log_probs(model, sources, TARGETS) for model, sources in zip(models, (backwards, SOURCES), strict=True)]
    assert torch.equal(*scores)
    assert not torch.equal(log_probs(models[0], SOURCES, TARGETS), scores[1])


def test_words_are_reversed_and_the_end_is_not():
    batch = reverse_words(Batch.from_lists(SOURCES))
    assert batch.active == Batch.from_lists(SOURCES).active
    assert batch.ids.tolist() == [[5, 4, 3, 2, 1], [0, 6, 1, 1, 1], [7, 1, 1, 1, 1], [1, 1, 1, 1, 1]]
    assert reverse_words(Batch.from_lists([[]])).ids.tolist() == [[1]]


# --- weights ------------------------------------------------------------------------------------------------------------


def shapes_of(**config):
    with torch.device("meta"):
        tensors = Seq2Seq(Seq2SeqConfig(**config), seed=None).state_dict()
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def test_tensors_are_those_of_the_checkpoint_format():
    K_s, K, E, H = 7, 6, 3, 5
    expected = {"encoder.embedding": (K_s, E), "decoder.embedding": (K, E), "decoder.G": (K, H), "decoder.b_G": (K,)}
    for side in ("encoder", "decoder"):
        for layer, inputs in (("layer1", E), ("layer2", H)):
            for gate in "ifmo":
                expected |= {f"{side}.{layer}.W_{gate}": (H, inputs), f"{side}.{layer}.U_{gate}": (H, H)}
                expected[f"{side}.{layer}.b_{gate}"] = (H,)
    sizes = {"source_vocabulary_size": K_s, "target_vocabulary_size": K, "hidden_size": H, "embedding_size": E}
    assert shapes_of(**sizes, layers=2, peepholes=False) == expected
    sides = (f"{side}.layer{layer}.p_{gate}" for side in ("encoder", "decoder") for layer in (1, 2) for gate in "ifo")
    assert shapes_of(**sizes, layers=2) == expected | dict.fromkeys(sides, (H,))


SMALL = {"hidden_size": 256, "embedding_size": 128, "layers": 2}


@pytest.mark.parametrize(
    ("words", "sizes", "count"), [((160_002, 80_002), {}, 384_142_002), ((5_919, 6_480), SMALL, 5_094_608)]
)
def test_the_number_of_parameters(words, sizes, count):
    """160 000 000 + 2 · 80 000 000 of words and 64 000 000 recurrent ones are the paper's own figures (section 3.4)."""
    shapes = shapes_of(source_vocabulary_size=words[0], target_vocabulary_size=words[1], **sizes)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == count


def test_initial_weights_are_the_papers():
    config = Seq2SeqConfig(300, 200, hidden_size=30, embedding_size=20, layers=2)
    model = Seq2Seq(config, seed=1)
    for name, tensor in model.named_parameters():
        assert tensor.abs().max() <= 0.08, name
        assert tensor.abs().max() > 0.06, name
    every = torch.cat([tensor.flatten() for tensor in model.parameters()])
    assert every.std().item() == pytest.approx(0.08 / 3**0.5, rel=0.02)
    same, other = (Seq2Seq(config, seed=seed).decoder.G for seed in (1, 2))
    assert torch.equal(model.decoder.G, same)
    assert not torch.equal(model.decoder.G, other)
    model.initialise(1, 0.02)
    assert 0.015 < model.decoder.G.abs().max() <= 0.02


# --- its folder ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A model folder."""
    model = Seq2Seq(Seq2SeqConfig(4, 3, hidden_size=5, embedding_size=3, layers=2, source_order="forward"), seed=1)
    words = {"source": SOURCE, "target": TARGET}
    save_checkpoint(tmp_path / "m", Checkpoint(SEQ2SEQ, model, words, "target-to-source"))
    return tmp_path / "m"


def test_a_folder_gives_the_same_network(folder, tmp_path):
    loaded = load_checkpoint(folder, SEQ2SEQ)
    assert loaded.model.config == Seq2SeqConfig(4, 3, 5, 3, 2, "forward")
    assert loaded.inverse
    save_checkpoint(tmp_path / "again", loaded)
    for name in SEQ2SEQ.files():
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


REFUSED = {
    "network": ("rnnsearch", "'seq2seq'"),
    "hidden_size": (0, "a whole number from 1 to 16777216"),
    "embedding_size": (1.5, "a whole number from 1 to 16777216"),
    "layers": (65, "a whole number from 1 to 64"),
    "source_order": ("backward", "'reversed' or 'forward'"),
    "peepholes": (1, "true or false"),
    "unit": ("words", "'sentences' or 'phrases'"),
    "format": (1, "2, the format this version reads"),
    "direction": (None, "'source-to-target' or 'target-to-source'"),
    "rare": ("luong", 'null, or a "kind" and a "window"'),
}


@pytest.mark.parametrize(("key", "value", "expected"), [(key, *row) for key, row in REFUSED.items()], ids=REFUSED)
def test_a_config_that_is_another_networks_is_refused(folder, key, value, expected):
    edit_config(folder, **{key: value})
    with pytest.raises(CheckpointError, match=f"config.json: expected {key} to be {expected}, found"):
        load_checkpoint(folder, SEQ2SEQ)


@pytest.mark.parametrize("changes", [{"layers": 1}, {"layers": 3}, {"peepholes": False}])
def test_tensors_of_other_switches_are_refused(folder, changes):
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=r"expected the tensors of a deep LSTM, differing in"):
        load_checkpoint(folder, SEQ2SEQ)


def test_a_size_that_is_not_its_tensors_is_refused(folder):
    edit_config(folder, hidden_size=6)
    with pytest.raises(CheckpointError, match=r"expected encoder.layer1.W_i to be float32 \(6, 3\), found"):
        load_checkpoint(folder, SEQ2SEQ)
