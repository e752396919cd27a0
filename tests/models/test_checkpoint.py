"""Checkpoints: what is saved is loaded, the folder is as published, and a config that does not fit is refused."""

import json

import pytest
import torch
from safetensors.torch import load_file

from moses_rnn.errors import CheckpointError
from moses_rnn.models.checkpoint import load_checkpoint, save_checkpoint
from moses_rnn.models.rnnsearch import RNNSEARCH
from moses_rnn.models.variants import SWITCHES
from tests.models.saved import SIZES, E, H, M, R, checkpoint, edit_config, saved_search

# the table of the checkpoint format, as it is published
PAPER_TENSORS = {
    "encoder.embedding": (4, E), "decoder.embedding": (3, E),
    **{f"{side}.{W}": (H, E) for side in ("encoder", "decoder") for W in ("W", "W_z", "W_r")},
    **{f"{side}.{U}": (H, H) for side in ("encoder", "decoder") for U in ("U", "U_z", "U_r", "V")},
    **{f"{side}.{b}": (H,) for side in ("encoder", "decoder") for b in ("b", "b_z", "b_r", "b_V")},
    **{f"decoder.{C}": (H, H) for C in ("C", "C_z", "C_r")},
    "decoder.O_h": (2 * M, H), "decoder.O_c": (2 * M, H), "decoder.O_y": (2 * M, E), "decoder.b_O": (2 * M,),
    "decoder.G_r": (R, M), "decoder.G_l": (3, R), "decoder.b_G": (3,),
}  # fmt: skip


def test_the_folder_is_as_published(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
        "source.vocab",
        "target.vocab",
    ]
    tensors = load_file(folder / "model.safetensors")
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == PAPER_TENSORS
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}
    assert (folder / "target.vocab").read_bytes() == "<unk>\n</s>\nété\n".encode()
    config = json.loads((folder / "config.json").read_text())
    assert {key: config[key] for key in (*SIZES, "format", "variant", *SWITCHES["paper"])} == {
        **SIZES, "format": 1, "variant": "paper", **SWITCHES["paper"],
    }  # fmt: skip


def test_the_released_codes_variant_has_no_summary_matrix(tmp_path):
    save_checkpoint(tmp_path / "m", checkpoint("groundhog"))
    assert load_file(tmp_path / "m" / "model.safetensors").keys() == PAPER_TENSORS.keys() - {"encoder.V", "encoder.b_V"}


def test_a_folder_without_hashes_can_be_read(folder):
    edit_config(folder, files=..., direction=..., provenance=...)
    assert load_checkpoint(folder).direction == "source-to-target"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "expected format to be 1, the format this version reads, found 2"),
        ({"hidden_size": -1}, "expected hidden_size to be a whole number from 1 to 16777216, found -1"),
        ({"hidden_size": 10**12}, "expected hidden_size to be a whole number"),
        ({"hidden_size": True}, "expected hidden_size to be a whole number"),
        ({"output_rank": ...}, "expected output_rank to be a whole number from 1 to 16777216, found None"),
        ({"summary": "mean"}, "expected summary to be 'tanh' or 'last', found 'mean'"),
        ({"variant": []}, r"expected variant to be the name of its three switches .*, found \[\]"),
        ({"summary": "last"}, "expected variant to be the name of its three switches .*, found 'paper'"),
        (
            {"variant": "custom", "summary": "last"},
            r"expected the tensors of a custom RNN Encoder-Decoder, differing in \['encoder.V', 'encoder.b_V'\]",
        ),
        ({"hidden_size": 5}, r"expected \S+ to be float32 \(5,.*, found torch.float32 \(4,"),
        ({"direction": "up"}, "expected direction to be a known direction, found 'up'"),
        ({"files": 3}, "expected files to be hashes by file name, found 3"),
        ({"provenance": [3]}, r"expected provenance to be what training recorded, by name, found \[3\]"),
        ({"hidden_size": 10**400}, "expected hidden_size to be a whole number"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, changes, message):
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


def test_how_rare_words_were_annotated_comes_back(tmp_path):
    rare = {"kind": "posunk", "window": 7}
    folder = saved_search(tmp_path / "m")
    assert load_checkpoint(folder, RNNSEARCH).rare is None
    edit_config(folder, rare=rare)
    loaded = load_checkpoint(folder, RNNSEARCH)
    save_checkpoint(tmp_path / "again", loaded)
    assert load_checkpoint(tmp_path / "again", RNNSEARCH).rare == loaded.rare == rare


def test_phrases_are_what_older_networks_learned_from(folder):
    assert load_checkpoint(folder).unit == "phrases"
