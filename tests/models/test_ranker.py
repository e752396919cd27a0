"""The ranker against the scalar equations, and its gradients against finite differences."""

import json

import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.native_learning import NativeKernel
from moses_rnn.models.ranker import RANKER, Ranker, RankerConfig, hinge
from moses_rnn.native import native_core
from tests.models import reference_ranker as reference
from tests.models.networks import ranker_network, weights_of
from tests.models.saved import SOURCE, TARGET, edit_config

SLOTS = 4
SOURCES = [[2, 3, 4, 5], [6, 0, 2], [7], []]
TARGETS = [[2, 3, 0, 7], [4, 5, 3], [6], []]  # as many words as slots, one less, and fewer
WRONG = [[2, 3, 0, 6], [4, 5, 2], [7], []]


def slotted(phrases, null, slots=SLOTS):
    return torch.tensor([[*phrase, *[null] * (slots - len(phrase))] for phrase in phrases])


def scores(model, sources=SOURCES, targets=TARGETS, **options):
    slots = model.config.slots
    return model.scores(slotted(sources, 9, slots), slotted(targets, 8, slots), **options)


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, {"abs": 1e-10}), (torch.float32, {"rel": 1e-4})])
@pytest.mark.parametrize("slots", [4, 5, 7])
def test_equals_the_scalar_equations(slots, dtype, off):
    model = ranker_network(slots, dtype=dtype)
    expected = [reference.score(weights_of(model), *pair, slots) for pair in zip(SOURCES, TARGETS, strict=True)]
    assert scores(model).tolist() == pytest.approx(expected, **off)


def test_the_loss_equals_the_scalar_one():
    model = ranker_network(scale=2.0)
    expected = [
        reference.loss(weights_of(model), *triple, SLOTS)
        for order in ((TARGETS, WRONG), (WRONG, TARGETS))
        for triple in zip(SOURCES, *order, strict=True)
    ]
    assert {cost > 0 for cost in expected} == {True, False}
    right, wrong = scores(model), scores(model, targets=WRONG)
    assert [*hinge(right, wrong).tolist(), *hinge(wrong, right).tolist()] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("right", "wrong", "cost"),
    [(2.0, 0.5, 0.0), (1.75, 0.75, 0.0), (1.5, 0.75, 0.25), (0.5, 0.5, 1.0), (-1.0, 0.5, 2.5)],
)
def test_a_hinge_by_hand_on_both_sides_of_the_margin(right, wrong, cost):
    values = torch.tensor([right], requires_grad=True), torch.tensor([wrong], requires_grad=True)
    loss = hinge(*values)
    assert loss.item() == cost
    if cost or right - wrong > 1:  # in the corner there is no gradient
        assert [g.item() for g in torch.autograd.grad(loss, values)] == ([-1, 1] if cost else [0, 0])


def test_a_score_depends_on_its_pair_alone():
    model = ranker_network()
    alone = [scores(model, [s], [t]).item() for s, t in zip(SOURCES, TARGETS, strict=True)]
    assert scores(model).tolist() == pytest.approx(alone, rel=1e-12)


class Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self):
        return hinge(scores(self.model), scores(self.model, targets=WRONG)).sum()


def test_gradients_are_those_of_finite_differences():
    loss = Loss(ranker_network())
    assert loss() > 0
    names, values = zip(*loss.named_parameters(), strict=True)

    def of_weights(*weights):
        return torch.func.functional_call(loss, dict(zip(names, weights, strict=True)), ())

    assert torch.autograd.gradcheck(of_weights, values, fast_mode=True)


@pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")
def test_products_of_the_native_core_change_the_last_digits_alone():
    model = ranker_network(dtype=torch.float32)
    expected = scores(model)
    model.use_kernel(NativeKernel(core=native_core()))
    torch.testing.assert_close(scores(model), expected, rtol=1e-5, atol=1e-5)


def test_initial_weights_are_uniform():
    model = Ranker(RankerConfig(500, 8), seed=1)
    assert all((tensor.abs() <= 0.1).all() for tensor in model.parameters())
    assert model.source.embedding.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.02)
    same, other = (Ranker(RankerConfig(500, 8), seed=seed).W_1 for seed in (1, 2))
    assert torch.equal(same, model.W_1)
    assert not torch.equal(other, model.W_1)


# --- checkpoints --------------------------------------------------------------------------------------------------------


def saved(folder):
    model = Ranker(RankerConfig(len(SOURCE), len(TARGET), 3, 4, 5, "any"), seed=1)
    save_checkpoint(folder, Checkpoint(RANKER, model, {"source": SOURCE, "target": TARGET}))
    return folder


def test_tensors_have_the_names_and_shapes_of_the_format(tmp_path):
    model = load_checkpoint(saved(tmp_path / "m"), RANKER).model
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    embeddings = {"source.embedding": (len(SOURCE) + 1, 4), "target.embedding": (len(TARGET) + 1, 4)}
    assert shapes == {**embeddings, "W_1": (5, 24), "b_1": (5,), "w": (5,), "b_2": (1,)}
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert {key: config[key] for key in ("format", "network", "unit", "slots", "corrupt", "rare")} == {
        "format": 2,
        "network": "ranker",
        "unit": "phrases",
        "slots": 3,
        "corrupt": "any",
        "rare": None,
    }


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    folder = saved(tmp_path / "m")
    before = [path.read_bytes() for path in sorted(folder.iterdir())]
    save_checkpoint(folder, load_checkpoint(folder, RANKER))
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == before
    with pytest.raises(CheckpointError, match="expected format to be 1"):
        load_checkpoint(folder, ENCDEC)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slots": 0}, "expected slots to be a whole number from 1 to 64, found 0"),
        ({"slots": 4}, "expected W_1 to be float32"),
        ({"hidden_size": 7}, "expected W_1 to be float32"),
        ({"embedding_size": "4"}, "expected embedding_size to be a whole number"),
        ({"corrupt": "first"}, "expected corrupt to be 'last' or 'any', found 'first'"),
        ({"unit": "words"}, "expected unit to be"),
        ({"network": "cstm"}, "expected network to be 'ranker'"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path, changes, message):
    folder = saved(tmp_path / "m")
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder, RANKER)


def test_a_description_names_the_sizes():
    assert RankerConfig(9, 8).description == "ranker, 7 slots a side, 896 → 256 → 1, last word replaced"
    assert RankerConfig(9, 8).width == 256
