"""The door for networks: who computes, and what is annotated; tests/contract has what every row gives."""

import pytest
import torch

from moses_rnn.errors import CheckpointError, MosesRnnError
from moses_rnn.models.model import Model
from moses_rnn.models.open import open_model, save_model
from moses_rnn.models.rare_words import RareWords
from moses_rnn.native import SWITCH, native_core
from moses_rnn.networks.cells import ENCDEC_OF_CELLS
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.encdec import SWITCHES
from tests.models.pairs import SOURCE, TARGET
from tests.models.rare import save_rare_model
from tests.networks.checkpoints import cslm_checkpoint, encdec_checkpoint
from tests.networks.networks import (
    CSLM_VOCABULARY,
    PAPERS,
    cell_network,
    cslm_network,
    encdec_network,
)
from tests.networks.saved import edit_config


@pytest.fixture
def models(tmp_path):
    words = {"source": SOURCE, "target": TARGET}
    save_model(tmp_path / "cslm", cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    inverse = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    save_model(tmp_path / "inverse", encdec_checkpoint(inverse, SOURCE, TARGET, "target-to-source"))
    save_model(tmp_path / "cells", Model(ENCDEC_OF_CELLS, cell_network(PAPERS["lstm"]), words))
    return tmp_path


def test_another_cell_is_computed_by_torch_and_named(models):
    model = open_model(models / "cells")
    assert (model.name, model.title) == ("RNN", "RNN Encoder-Decoder with lstm cells")
    assert not model.choose_compute().native


def test_without_the_native_core_what_needs_it_is_refused(models, monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    model = open_model(models / "inverse")
    assert not model.choose_compute().native
    with pytest.raises(MosesRnnError, match="inverse: expected the native core to compute it, found none"):
        model.make_scorer(Compute(native=True))


@pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")
def test_the_native_core_computes_unless_something_else_is_wanted(models, monkeypatch):
    model = open_model(models / "inverse")
    assert model.choose_compute() == Compute(native=True)
    assert model.choose_compute(precision="fp64") == Compute(precision="fp64")
    assert not open_model(models / "cslm", of_pairs=False).choose_compute().native
    monkeypatch.setenv(SWITCH, "avx2")
    assert model.choose_compute(precision="bf16") == Compute(precision="bf16")


def test_rare_words_are_annotated_as_the_config_says(tmp_path):
    folder = save_rare_model(tmp_path / "m")
    model = open_model(folder)
    assert model.rare == RareWords("posunk", 2)
    save_model(tmp_path / "again", model)
    assert open_model(tmp_path / "again").rare == model.rare
    edit_config(folder, rare={"kind": "luong", "window": 7})
    with pytest.raises(CheckpointError, match=r"config.json: expected a kind of noalign, .*, posunk, found 'luong'"):
        open_model(folder)
