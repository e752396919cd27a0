"""The continuous-space translation model against the scalar equations, and its gradients against finite differences."""

import json

import pytest
import torch

from moses_rnn.errors import CheckpointError, PairError
from moses_rnn.models.batches import Batch
from moses_rnn.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from moses_rnn.models.cstm import CSTM, Cstm, CstmConfig
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.native_learning import NativeKernel
from moses_rnn.native import native_core
from tests.models import reference_cstm as reference
from tests.models.networks import cstm_network, weights_of
from tests.models.saved import SOURCE, TARGET, edit_config

SLOTS = 4
SOURCES = [[2, 3, 4, 5], [6, 0, 2], [7], []]
TARGETS = [[2, 3, 0, 7], [4, 5, 3], [6], []]  # as many words as slots, one less, and fewer


def log_probs(model, sources=SOURCES, targets=TARGETS, **options):
    """log p of each pair; both lists longest first."""
    batch = Batch.from_lists(targets)
    words = model.word_log_probs(Batch.from_lists(sources), batch, torch.arange(len(targets)), **options)
    rows = torch.cat([torch.arange(count) for count in batch.active[: model.config.slots]])
    return torch.zeros(len(targets), dtype=words.dtype).index_add(0, rows, words)


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, {"abs": 1e-10}), (torch.float32, {"rel": 1e-4})])
@pytest.mark.parametrize("slots", [4, 5, 7])
def test_equals_the_scalar_equations(slots, dtype, off):
    model = cstm_network(slots, dtype=dtype)
    expected = [reference.log_prob(weights_of(model), *pair, slots) for pair in zip(SOURCES, TARGETS, strict=True)]
    assert log_probs(model).tolist() == pytest.approx(expected, **off)


def test_a_score_depends_on_its_pair_alone():
    model = cstm_network()
    alone = [log_probs(model, [s], [t]).item() for s, t in zip(SOURCES, TARGETS, strict=True)]
    assert log_probs(model).tolist() == pytest.approx(alone, rel=1e-12)


def test_words_of_a_target_are_independent():
    """What the RNN Encoder-Decoder is for: here another first word changes nothing for the second."""
    model = cstm_network()
    first, second = (
        model.word_log_probs(Batch.from_lists([[2]]), Batch.from_lists([target]), torch.tensor([0]))
        for target in ([3, 4], [5, 4])
    )
    assert first[0] != second[0]
    assert torch.equal(first[1:], second[1:])


@pytest.mark.parametrize(("source", "target"), [([2] * 5, [2]), ([2], [2] * 5)])
def test_what_has_no_slot_is_refused(source, target):
    with pytest.raises(
        PairError, match="expected phrases of at most 4 words, for which the network has slots, found 5"
    ):
        log_probs(cstm_network(), [source], [target])


class LogLikelihood(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self):
        return log_probs(self.model).sum()


def test_gradients_are_those_of_finite_differences():
    likelihood = LogLikelihood(cstm_network())
    names, values = zip(*likelihood.named_parameters(), strict=True)

    def of_weights(*weights):
        return torch.func.functional_call(likelihood, dict(zip(names, weights, strict=True)), ())

    assert torch.autograd.gradcheck(of_weights, values, fast_mode=True)


@pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")
def test_products_of_the_native_core_change_the_last_digits_alone():
    model = cstm_network(dtype=torch.float32, scale=0.3)
    expected = log_probs(model)
    model.use_kernel(NativeKernel(core=native_core()))
    torch.testing.assert_close(log_probs(model), expected, rtol=1e-5, atol=1e-5)


def test_initial_weights_are_those_of_a_cslm():
    model = Cstm(CstmConfig(500, 8), seed=1)
    assert all((tensor.abs() <= 0.01).all() for tensor in model.parameters())
    assert model.embedding.std().item() == pytest.approx(0.01 / 3**0.5, rel=0.02)
    same, other = (Cstm(CstmConfig(500, 8), seed=seed).G_7 for seed in (1, 2))
    assert torch.equal(same, model.G_7)
    assert not torch.equal(other, model.G_7)


# --- checkpoints --------------------------------------------------------------------------------------------------------


def saved(folder):
    model = Cstm(CstmConfig(len(SOURCE), len(TARGET), 3, 4, 5, 6), seed=1)
    save_checkpoint(folder, Checkpoint(CSTM, model, {"source": SOURCE, "target": TARGET}))
    return folder


def test_tensors_have_the_names_and_shapes_of_the_format(tmp_path):
    model = load_checkpoint(saved(tmp_path / "m"), CSTM).model
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    of_layers = {"embedding": (5, 4), "W_1": (5, 12), "b_1": (5,), "W_2": (6, 5), "b_2": (6,)}
    outputs = {f"G_{k}": (3, 6) for k in (1, 2, 3)} | {f"b_G{k}": (3,) for k in (1, 2, 3)}
    assert shapes == of_layers | outputs
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (config["format"], config["network"], config["unit"], config["slots"]) == (2, "cstm", "phrases", 3)


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    folder = saved(tmp_path / "m")
    before = [path.read_bytes() for path in sorted(folder.iterdir())]
    save_checkpoint(folder, load_checkpoint(folder, CSTM))
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == before
    with pytest.raises(CheckpointError, match="expected format to be 1"):
        load_checkpoint(folder, ENCDEC)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slots": 0}, "expected slots to be a whole number from 1 to 64, found 0"),
        ({"slots": 4}, "differing in .*G_4"),
        ({"first_size": 7}, "expected W_1 to be float32"),
        ({"second_size": "6"}, "expected second_size to be a whole number"),
        ({"unit": "words"}, "expected unit to be"),
        ({"network": "encdec"}, "expected network to be 'cstm'"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path, changes, message):
    folder = saved(tmp_path / "m")
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder, CSTM)


def test_a_description_names_the_sizes():
    assert CstmConfig(9, 8).description == "CSTM, 7 slots, 896 → 512 → 256"
    assert CstmConfig(9, 8).width == 512
