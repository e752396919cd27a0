"""Other cells against the scalar equations, their gradients against finite differences, and what each is known by."""

import json

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.batches import Batch
from moses_rnn.models.cells import CELLS, ENCDEC_OF_CELLS, PLAIN, CellConfig, CellEncDec, PlainRecurrence, begun
from moses_rnn.models.checkpoint import Checkpoint, kind_of, load_checkpoint, save_checkpoint
from moses_rnn.models.dropout import drop_units
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.native_learning import NativeKernel
from moses_rnn.models.variants import SWITCHES
from moses_rnn.models.vocabulary import END_ID
from moses_rnn.native import native_core
from tests.models import reference_cells as reference
from tests.models.networks import CELL_SWITCHES, PAPERS, SIZES, cell_network, encdec_network, weights_of
from tests.models.saved import SOURCE, TARGET, checkpoint, edit_config

SOURCES = [[2, 3, 4, 5], [6, 0], [7], []]
TARGETS = [[2, 3, 0], [4, 5], [6], []]
PAIRS = list(zip(SOURCES, TARGETS, strict=True))


def name_of(switches):
    return "-".join(map(str, filter(None, switches.values())))


def log_probs(model, sources=SOURCES, targets=TARGETS, **options):
    """log p of each pair; both lists longest first."""
    batch = Batch.from_lists(targets)
    words = model.word_log_probs(Batch.from_lists(sources), batch, torch.arange(len(targets)), **options)
    return torch.zeros(len(targets), dtype=words.dtype).index_add(0, batch.rows(), words)


def of_cell(cell, **config):
    """A network as it begins to learn, with a cell and the paper's summary and first step."""
    model = CellEncDec(CellConfig(**SIZES, cell=cell, **config), seed=None)
    model.initialise(3, 0.5)
    return model


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, {"abs": 1e-10}), (torch.float32, {"rel": 1e-4})])
@pytest.mark.parametrize("switches", CELL_SWITCHES, ids=name_of)
def test_equals_the_scalar_equations(switches, dtype, off):
    model = cell_network(switches, dtype=dtype)
    weights = weights_of(model)
    for value, (source, target) in zip(log_probs(model).tolist(), PAIRS, strict=True):
        assert value == pytest.approx(
            reference.log_prob(weights, [*source, END_ID], [*target, END_ID], switches), **off
        )


class LogLikelihood(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self):
        return log_probs(self.model).sum()


@pytest.mark.parametrize("switches", CELL_SWITCHES[: len(CELL_SWITCHES) // 4], ids=name_of)
def test_gradients_are_those_of_finite_differences(switches):
    likelihood = LogLikelihood(cell_network(switches))
    names, values = zip(*likelihood.named_parameters(), strict=True)

    def of_weights(*weights):
        return torch.func.functional_call(likelihood, dict(zip(names, weights, strict=True)), ())

    assert torch.autograd.gradcheck(of_weights, values, fast_mode=True)


@pytest.mark.parametrize("switches", CELL_SWITCHES, ids=name_of)
def test_a_score_depends_on_its_pair_alone(switches):
    model = cell_network(switches)
    alone = [log_probs(model, [source], [target]).item() for source, target in PAIRS]
    assert log_probs(model).tolist() == pytest.approx(alone, rel=1e-12)


def learned(model, steps=3):
    """The network after some steps of descent with dropout, and what it cost before each."""
    costs = []
    for step in range(steps):
        model.zero_grad()
        cost = -log_probs(model, drop=drop_units(0.2, step, torch.device("cpu"))).sum()
        cost.backward()
        costs.append(cost.item())
        with torch.no_grad():
            for tensor in model.parameters():
                tensor.sub_(0.1 * tensor.grad)
    return model, costs


def test_no_leaks_are_tanh_to_the_bit_while_it_learns_too():
    tanh, costs = learned(of_cell("tanh"))
    leaky, leaky_costs = learned(of_cell("leaky", leaky_share=0.0))
    assert leaky_costs == costs
    for name, tensor in tanh.state_dict().items():
        assert torch.equal(leaky.state_dict()[name], tensor), name
    others, other_costs = learned(of_cell("leaky", leaky_share=0.5))
    assert other_costs != leaky_costs
    assert not torch.equal(others.encoder.W, leaky.encoder.W)


def test_leaks_are_drawn_once_and_never_learned():
    for share, leaking in ((0.0, 0), (0.25, 1), (0.5, 3), (1.0, 5)):  # of 5 units
        model, _ = learned(of_cell("leaky", leaky_share=share))
        for part in (model.encoder, model.decoder):
            assert ((part.alpha[:leaking] >= 0.02) & (part.alpha[:leaking] <= 0.2)).all()
            assert not part.alpha[leaking:].any()
            assert torch.equal(part.alpha, getattr(of_cell("leaky", leaky_share=share), name_in(model, part)).alpha)
    assert not torch.equal(model.encoder.alpha, model.decoder.alpha)
    assert not torch.equal(CellEncDec(model.config, seed=4).encoder.alpha, model.encoder.alpha)


def name_in(model, part):
    return next(name for name, each in model.named_children() if each is part)


def test_units_that_leak_nothing_new_keep_their_first_state():
    model = of_cell("leaky", leaky_share=1.0)
    h_0 = torch.randn(3, 5)
    model.encoder.alpha.fill_(1.0)
    x = torch.randn(6, 5)
    states = model.encoder.recurrence(torch.float32).states(x, None, h_0, [3, 2, 1])
    assert torch.equal(states, torch.cat([h_0, h_0[:2], h_0[:1]]))


def test_a_memory_that_is_neither_forgotten_nor_written_stays():
    step = PLAIN["lstm"].step
    m, big = torch.randn(2, 5), torch.full((2, 5), 1e4)
    sums = torch.cat([-big, big, torch.randn(2, 5), torch.zeros(2, 5)], 1)  # i = 0, f = 1
    _, kept = step(sums, torch.zeros_like(sums), None, (torch.randn(2, 5), m))
    assert torch.equal(kept, m)


def test_a_relu_begins_by_keeping_what_it_has():
    model = of_cell("relu")
    assert torch.equal(model.encoder.U, torch.eye(5))
    assert torch.equal(model.decoder.U, torch.eye(5))
    h_0 = torch.rand(2, 5)
    states = model.encoder.recurrence(torch.float32).states(torch.zeros(4, 5), None, h_0, [2, 2])
    assert torch.equal(states, torch.cat([h_0, h_0]))


def test_an_lstm_begins_by_remembering_and_with_an_empty_memory():
    model = of_cell("lstm-peephole", forget_bias=1.5)
    for part in (model.encoder, model.decoder):
        assert part.b_f.tolist() == [1.5] * 5
        assert not part.b_i.any()
        assert not part.p_f.any()
    h_0 = torch.ones(2, 5)
    assert [tensor.sum().item() for tensor in begun(PLAIN["lstm"], h_0)] == [10, 0]


def test_recurrent_matrices_are_orthogonal_as_the_papers():
    for cell, names in (("tanh", ["U"]), ("lstm", ["U_i", "U_f", "U_m", "U_o"])):
        encoder = of_cell(cell, forget_bias=1.0 if cell == "lstm" else None).encoder
        for name in names:
            U = getattr(encoder, name)
            torch.testing.assert_close(U @ U.T, torch.eye(5), atol=1e-5, rtol=0)


def test_a_gate_before_the_product_is_the_papers_network():
    gated = cell_network({**SWITCHES["paper"], "cell": "gru", "encoder_reset": "before"})
    assert torch.equal(log_probs(gated), log_probs(encdec_network(SWITCHES["paper"])))


@pytest.mark.parametrize("switches", [*PAPERS.values(), CELL_SWITCHES[5]], ids=name_of)
def test_rounded_products_are_near_those_of_float32(switches):
    model = cell_network(switches, dtype=torch.float32, scale=0.3)
    exact, rough = log_probs(model), log_probs(model, product_dtype=torch.bfloat16)
    assert rough.dtype == torch.float32
    assert 0 < (exact - rough).abs().mean() < 0.05


@pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")
@pytest.mark.parametrize("switches", PAPERS.values(), ids=name_of)
def test_products_of_the_native_core_change_the_last_digits_alone(switches):
    gradients = []
    for kernel in (None, NativeKernel(core=native_core())):
        model = cell_network(switches, dtype=torch.float32, scale=0.3)
        if kernel:
            model.use_kernel(kernel)
        log_probs(model).sum().backward()
        gradients.append(torch.cat([tensor.grad.flatten() for tensor in model.parameters()]))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


def test_no_step_before_the_first_word_leaves_nothing_to_compute():
    model = cell_network({**PAPERS["lstm"], "first_step": "initial-state"})
    assert log_probs(model, [[2]], [[]]).isfinite().all()
    recurrence = PlainRecurrence(PLAIN["tanh"], torch.eye(5), None, torch.float32)
    assert recurrence.states(torch.zeros(0, 5), None, torch.zeros(2, 5), []).shape == (0, 5)


# --- checkpoints --------------------------------------------------------------------------------------------------------

LSTM_SUMS = {f"{part}.{name}_{gate}" for part in ("encoder", "decoder") for name in "WUb" for gate in "ifmo"}
CONTEXT = {f"decoder.C_{gate}" for gate in "ifmo"}
PEEPHOLES = {f"{part}.p_{gate}" for part in ("encoder", "decoder") for gate in "ifo"}
ONE_SUM = {f"{part}.{name}" for part in ("encoder", "decoder") for name in "WUb"} | {"decoder.C"}
TENSORS = {
    "tanh": ONE_SUM,
    "relu": ONE_SUM,
    "leaky": ONE_SUM | {"encoder.alpha", "decoder.alpha"},
    "lstm": LSTM_SUMS | CONTEXT,
    "lstm-peephole": LSTM_SUMS | CONTEXT | PEEPHOLES,
}
COMMON = {"encoder.embedding", "encoder.V", "encoder.b_V", "decoder.embedding", "decoder.V", "decoder.b_V"}
COMMON |= {f"decoder.{name}" for name in ("O_h", "O_c", "O_y", "b_O", "G_r", "G_l", "b_G")}


@pytest.mark.parametrize("cell", TENSORS)
def test_tensors_have_the_names_and_shapes_of_the_format(cell):
    shapes = {name: tuple(tensor.shape) for name, tensor in cell_network(PAPERS[cell]).state_dict().items()}
    assert shapes.keys() == COMMON | TENSORS[cell]
    H, E = SIZES["hidden_size"], SIZES["embedding_size"]
    of_letter = {"W": (H, E), "U": (H, H), "C": (H, H), "b": (H,), "p": (H,), "alpha": (H,)}
    assert all(shapes[name] == of_letter[name.split(".")[1].split("_")[0]] for name in TENSORS[cell])


def saved(folder, cell="leaky", **switches):
    meant = {"leaky": {"leaky_share": 0.5}, "lstm": {"forget_bias": 1.0}}.get(cell, {})
    resets = {"decoder_reset": "after", "encoder_reset": "after"} if cell == "gru" else {"decoder_reset": None}
    sizes = {"hidden_size": 4, "embedding_size": 3, "maxout_size": 2, "output_rank": 5}
    config = CellConfig(len(SOURCE), len(TARGET), **sizes, cell=cell, **meant, **resets, **switches)
    model = CellEncDec(config, seed=1)
    save_checkpoint(folder, Checkpoint(ENCDEC_OF_CELLS, model, {"source": SOURCE, "target": TARGET}))
    return folder


@pytest.mark.parametrize("cell", ["gru", "relu", "leaky", "lstm"])
def test_a_checkpoint_comes_back_as_it_was(tmp_path, cell):
    folder = saved(tmp_path / "m", cell)
    config = json.loads((folder / "config.json").read_text())
    assert (config["format"], config["network"], config["unit"], config["cell"]) == (2, "encdec", "phrases", cell)
    assert (config["direction"], config["rare"], config["variant"]) == ("source-to-target", None, "paper")
    assert (config["encoder_reset"], config["decoder_reset"]) == (("after", "after") if cell == "gru" else (None, None))
    loaded = load_checkpoint(folder, kind_of(folder, [ENCDEC, ENCDEC_OF_CELLS]))
    assert (loaded.unit, loaded.model.config.cell) == ("phrases", cell)
    before = [(folder / name).read_bytes() for name in ("model.safetensors", "config.json")]
    save_checkpoint(folder, loaded)
    assert [(folder / name).read_bytes() for name in ("model.safetensors", "config.json")] == before


def test_a_reader_of_format_1_refuses_it(tmp_path):
    folder = saved(tmp_path / "m")
    with pytest.raises(CheckpointError, match="expected format to be 1, the format this version reads, found 2"):
        load_checkpoint(folder, ENCDEC)
    edit_config(folder, format=1)
    with pytest.raises(CheckpointError, match=r"expected decoder_reset to be 'after' or 'before', found"):
        load_checkpoint(folder, ENCDEC)


def test_what_was_written_before_there_were_cells_is_read_as_ever(tmp_path):
    save_checkpoint(tmp_path, checkpoint())
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["format"] == 1
    assert not {"cell", "encoder_reset", "leaky_share", "forget_bias", "network", "unit"} & config.keys()
    assert kind_of(tmp_path, [ENCDEC, ENCDEC_OF_CELLS]) is ENCDEC
    edit_config(tmp_path, network="encdec")  # which format 1 may leave out
    assert kind_of(tmp_path, [ENCDEC, ENCDEC_OF_CELLS]) is ENCDEC
    assert load_checkpoint(tmp_path).model.config.variant == "paper"
    edit_config(tmp_path, format=3)
    with pytest.raises(CheckpointError, match="expected format to be 1, the format this version reads, found 3"):
        load_checkpoint(tmp_path, kind_of(tmp_path, [ENCDEC, ENCDEC_OF_CELLS]))


@pytest.mark.parametrize(
    ("cell", "changes", "message"),
    [
        ("leaky", {"network": ...}, "expected network to be 'encdec', found None"),
        ("leaky", {"unit": "words"}, "expected unit to be 'sentences' or 'phrases', found 'words'"),
        ("leaky", {"cell": "elman"}, "expected cell to be 'gru' or 'tanh' or .*, found 'elman'"),
        ("leaky", {"cell": ["gru"]}, "expected cell to be 'gru' or"),
        ("leaky", {"cell": "tanh"}, "expected leaky_share to be null, which tanh cells do not have, found 0.5"),
        ("leaky", {"cell": "tanh", "leaky_share": None}, "expected the tensors of a paper RNN Encoder-Decoder, differing in .*alpha"),
        ("leaky", {"leaky_share": None}, "expected leaky_share to be a number from 0 to 1, found None"),
        ("leaky", {"leaky_share": 1.5}, "expected leaky_share to be a number from 0 to 1, found 1.5"),
        ("leaky", {"leaky_share": True}, "expected leaky_share to be a number"),
        ("leaky", {"leaky_share": float("nan")}, "expected leaky_share to be a number"),
        ("leaky", {"forget_bias": 1.0}, "expected forget_bias to be null, which leaky cells do not have, found 1.0"),
        ("lstm", {"forget_bias": None}, "expected forget_bias to be a number from -1000 to 1000, found None"),
        ("lstm", {"forget_bias": 10**400}, "expected forget_bias to be a number from -1000 to 1000, found"),
        ("lstm", {"cell": "lstm-peephole"}, "differing in .*decoder.p_f"),
        ("lstm", {"encoder_reset": "after"}, "expected encoder_reset to be None, found 'after'"),
        ("lstm", {"decoder_reset": "after"}, "expected decoder_reset to be None, found 'after'"),
        ("lstm", {"variant": "groundhog"}, "expected variant to be the name of its three switches"),
        ("lstm", {"variant": []}, "expected variant to be the name of its three switches"),
        ("gru", {"encoder_reset": None}, "expected encoder_reset to be 'before' or 'after', found None"),
        ("gru", {"hidden_size": 5}, "expected encoder.W to be float32"),
    ],
)  # fmt: skip
def test_a_config_that_does_not_fit_is_refused(tmp_path, cell, changes, message):
    folder = saved(tmp_path / "m", cell)
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder, ENCDEC_OF_CELLS)


def test_a_description_names_the_cell():
    assert set(CELLS) == {"gru", *PLAIN}
    assert of_cell("relu").config.description == "relu cells, paper variant, H 5"


def test_sizes_count_as_the_equations_do():
    numbers = {cell: sum(tensor.numel() for tensor in cell_network(PAPERS[cell]).parameters()) for cell in PAPERS}
    H, E = 5, 3
    step = H * (E + H + 1) + H * (E + 2 * H + 1)
    assert numbers["lstm"] - numbers["tanh"] == 3 * step
    assert numbers["lstm-peephole"] - numbers["lstm"] == 6 * H
    assert numbers["leaky"] == numbers["tanh"] == numbers["relu"]
    assert np.isclose(numbers["tanh"], numbers["lstm"] - 3 * step)
