"""Checkpoints: what is saved is loaded, the folder is as published, and a config that does not fit is refused."""

import pytest

from moses_rnn.errors import CheckpointError
from moses_rnn.scorers.open import open_model, save_model
from moses_rnn.scorers.rare_words import RareWords
from tests.networks.saved import edit_config, saved_search


def test_a_folder_without_hashes_can_be_read(folder):
    edit_config(folder, files=..., direction=..., provenance=...)
    assert open_model(folder).direction == "source-to-target"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": []}, r"expected variant to be 'paper' or 'groundhog' or 'custom', found \[\]"),
        ({"summary": "last"}, "expected variant to be the name of its three switches .*, found 'paper'"),
        (
            {"variant": "custom", "summary": "last"},
            r"expected the tensors of a custom RNN Encoder-Decoder, differing in \['encoder.V', 'encoder.b_V'\]",
        ),
        ({"files": 3}, "expected files to be hashes by file name, found 3"),
        ({"provenance": [3]}, r"expected provenance to be what training recorded, by name, found \[3\]"),
        ({"hidden_size": 10**400}, "expected hidden_size to be a whole number"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, changes, message):
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        open_model(folder)


def test_how_rare_words_were_annotated_comes_back(tmp_path):
    rare = {"kind": "posunk", "window": 7}
    folder = saved_search(tmp_path / "m")
    assert open_model(folder, of_pairs=False).rare is None
    edit_config(folder, rare=rare)
    loaded = open_model(folder, of_pairs=False)
    save_model(tmp_path / "again", loaded)
    assert open_model(tmp_path / "again", of_pairs=False).rare == loaded.rare == RareWords(**rare)
