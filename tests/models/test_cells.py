"""Other cells beside the paper's: no leaks are none, and folders of both formats are told apart."""

import json

import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.cells import CELLS, ENCDEC_OF_CELLS, PLAIN, CellConfig, CellEncDec
from moses_rnn.models.checkpoint import Checkpoint, kind_of, load_checkpoint, save_checkpoint
from moses_rnn.models.dropout import drop_units
from moses_rnn.models.encdec import ENCDEC
from tests.contract.rows import of_translation
from tests.inference.id_pairs import random_pairs
from tests.models.networks import SIZES
from tests.models.saved import SOURCE, TARGET, checkpoint, edit_config


def of_cell(cell, **config):
    """A network as it begins to learn, with a cell and the paper's summary and first step."""
    model = CellEncDec(CellConfig(**SIZES, cell=cell, **config), seed=None)
    model.initialise(3, 0.5)
    return model


def learned(model, steps=3):
    """The network after some steps of descent with dropout, and what it cost before each."""
    costs = []
    for step in range(steps):
        model.zero_grad()
        cost = -of_translation(model, random_pairs(12), drop=drop_units(0.2, step, torch.device("cpu"))).sum()
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


def saved(folder):
    sizes = {"hidden_size": 4, "embedding_size": 3, "maxout_size": 2, "output_rank": 5}
    config = CellConfig(len(SOURCE), len(TARGET), **sizes, cell="leaky", leaky_share=0.5, decoder_reset=None)
    save_checkpoint(
        folder, Checkpoint(ENCDEC_OF_CELLS, CellEncDec(config, seed=1), {"source": SOURCE, "target": TARGET})
    )
    return folder


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
    ("changes", "message"),
    [
        ({"cell": "tanh"}, "expected leaky_share to be null, which tanh cells do not have, found 0.5"),
        (
            {"cell": "tanh", "leaky_share": None},
            "expected the tensors of a paper RNN Encoder-Decoder, differing in .*alpha",
        ),
        ({"leaky_share": 1.5}, "expected leaky_share to be a number from 0 to 1, found 1.5"),
        ({"variant": "groundhog"}, "expected variant to be the name of its three switches"),
    ],
)
def test_switches_that_do_not_fit_together_are_refused(tmp_path, changes, message):
    folder = saved(tmp_path / "m")
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder, ENCDEC_OF_CELLS)


def test_a_description_names_the_cell():
    assert set(CELLS) == {"gru", *PLAIN}
    assert of_cell("relu").config.description == "relu cells, paper variant, H 5"
