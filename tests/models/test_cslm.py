"""The CSLM against its equations, its folder against damage."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.checkpoint import load_checkpoint, save_checkpoint
from moses_rnn.models.cslm import CSLM, Cslm, CslmConfig, n_grams_of
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.folders import finish_saving
from tests.models import reference
from tests.models.checkpoints import cslm_checkpoint
from tests.models.networks import CSLM_CONFIG, CSLM_VOCABULARY, cslm_network, some_n_grams, weights_of


def test_log_p_is_that_of_the_equations():
    model, n_grams = cslm_network(), some_n_grams(50)
    weights = weights_of(model)
    expected = [reference.n_gram_log_prob(weights, context, word) for *context, word in n_grams.tolist()]
    given = torch.from_numpy(n_grams)
    log_p, _ = model.log_probs(given[:, :-1], given[:, -1])
    assert log_p.tolist() == pytest.approx(expected, abs=1e-5)


def test_the_paper_s_sizes_are_the_defaults():
    shapes = {name: tuple(tensor.shape) for name, tensor in Cslm(CslmConfig(100), seed=None).state_dict().items()}
    assert shapes == {
        "embedding": (101, 512),
        "W_1": (1536, 6 * 512),
        "b_1": (1536,),
        "W_2": (1024, 1536),
        "b_2": (1024,),
        "G": (100, 1024),
        "b_G": (100,),
    }


@pytest.mark.parametrize("bound", [0.01, 0.1])  # the paper's, which is the class's too, and another
def test_all_weights_begin_uniform_within_a_bound(bound):
    model = Cslm(CslmConfig(500, 7, 32, 64, 48), seed=1)
    if bound != 0.01:
        model.initialise(1, bound)
    weights = torch.cat([tensor.detach().flatten() for tensor in model.parameters()])
    assert weights.abs().max() <= bound
    assert weights.mean().abs() < bound / 100
    assert weights.std() == pytest.approx(2 * bound / math.sqrt(12), rel=0.01)


def test_n_grams_end_at_their_positions():
    flat = np.array([9, 9, 4, 5, 1, 9, 9, 6, 1])  # <s> <s> a b </s> <s> <s> c </s>
    found = n_grams_of(flat, np.array([2, 3, 4, 7, 8]), 3)
    assert found.tolist() == [[9, 9, 4], [9, 4, 5], [4, 5, 1], [9, 9, 6], [9, 6, 1]]


def test_a_folder_gives_back_what_was_saved(tmp_path):
    model = cslm_network()
    save_checkpoint(tmp_path, cslm_checkpoint(model, CSLM_VOCABULARY, {"texts": ["train.fr"]}))
    loaded = load_checkpoint(tmp_path, CSLM)
    assert (loaded.model.config, loaded.target_vocabulary.words) == (CSLM_CONFIG, CSLM_VOCABULARY.words)
    assert loaded.provenance == {"texts": ["train.fr"]}
    assert sorted(loaded.hashes) == ["model.safetensors", "target.vocab"]
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.model.state_dict()[name], tensor)
    finish_saving(tmp_path, CSLM)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors", "target.vocab"]


CONFIGS = [
    ({"network": "rnnlm"}, "expected network to be 'cslm', as moses-rnn-cslm train writes it, found 'rnnlm'"),
    ({"order": 1}, "expected order to be a whole number from 2 to 64, found 1"),
    ({"order": True}, "expected order to be a whole number from 2 to 64, found True"),
    ({"first_size": 0}, "expected first_size to be a whole number from 1 to 16777216, found 0"),
    ({"second_size": 10**9}, "expected second_size to be a whole number from 1 to 16777216, found 1000000000"),
    ({"vocabulary_size": 5}, "expected vocabulary_size to be 6, the words of target.vocab, found 5"),
    ({"vocabulary_size": None}, "expected vocabulary_size to be a whole number from 1 to 16777216, found None"),
    ({"embedding_size": 7}, "expected embedding to be float32 \\(7, 7\\), found torch.float32 \\(7, 3\\)"),
]


@pytest.mark.parametrize(("changes", "message"), CONFIGS, ids=lambda value: str(value)[:30])
def test_a_config_that_fits_nothing_is_refused(tmp_path, changes, message):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path, CSLM)


def test_one_kind_of_network_is_not_taken_for_the_other(tmp_path):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    (tmp_path / "source.vocab").write_bytes(CSLM_VOCABULARY.to_bytes())
    with pytest.raises(
        CheckpointError, match="expected network to be none, as in an RNN Encoder-Decoder's config, found 'cslm'"
    ):
        load_checkpoint(tmp_path, ENCDEC)


def test_a_vocabulary_of_another_size_is_refused(tmp_path):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    config = json.loads((tmp_path / "config.json").read_text())
    del config["files"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "target.vocab").write_bytes(b"<unk>\n</s>\nle\n")
    with pytest.raises(CheckpointError, match="expected (embedding|G) to be float32"):
        load_checkpoint(tmp_path, CSLM)


def test_an_unknown_size_of_config_is_written(tmp_path):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    written = json.loads((tmp_path / "config.json").read_text())
    assert {key: written[key] for key in dataclasses.asdict(CSLM_CONFIG)} == dataclasses.asdict(CSLM_CONFIG)
