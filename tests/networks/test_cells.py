"""Other cells beside the paper's: no leaks are none, and folders of both formats are told apart."""

import json

import pytest

from moses_rnn.errors import CheckpointError
from moses_rnn.networks.cells import ENCDEC_OF_CELLS, CellConfig, CellEncDec
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.scorers.open import Model, open_model, save_model
from tests.networks.saved import SOURCE, TARGET, checkpoint, edit_config


def saved(folder):
    sizes = {"hidden_size": 4, "embedding_size": 3, "maxout_size": 2, "output_rank": 5}
    config = CellConfig(len(SOURCE), len(TARGET), **sizes, cell="leaky", leaky_share=0.5, decoder_reset=None)
    save_model(folder, Model(ENCDEC_OF_CELLS, CellEncDec(config, seed=1), {"source": SOURCE, "target": TARGET}))
    return folder


def test_what_was_written_before_there_were_cells_is_read_as_ever(tmp_path):
    save_model(tmp_path, checkpoint())
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["format"] == 1
    assert not {"cell", "encoder_reset", "leaky_share", "forget_bias", "network", "unit"} & config.keys()
    assert open_model(tmp_path).architecture is ENCDEC
    edit_config(tmp_path, network="encdec")  # which format 1 may leave out
    assert open_model(tmp_path).architecture is ENCDEC
    edit_config(tmp_path, format=3)
    with pytest.raises(CheckpointError, match="expected format to be 1 or 2, the format this version reads, found 3"):
        open_model(tmp_path, of_pairs=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "tanh"}, "expected leaky_share to be null, which tanh cells do not have, found 0.5"),
        (
            {"cell": "tanh", "leaky_share": None},
            "expected the tensors of a paper RNN Encoder-Decoder, differing in .*alpha",
        ),
        ({"leaky_share": 1.5}, "expected leaky_share to be a number from 0 to 1 or null, found 1.5"),
        ({"variant": "groundhog"}, "expected variant to be the name of its three switches"),
    ],
)
def test_switches_that_do_not_fit_together_are_refused(tmp_path, changes, message):
    folder = saved(tmp_path / "m")
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        open_model(folder, of_pairs=False)
