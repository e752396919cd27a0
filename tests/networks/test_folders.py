"""Model folders: nothing damaged, foreign or half written is taken for a model, and no pickle is opened."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.model import Model
from moses_rnn.models.open import finish_saving, open_model, read_record, save_model
from moses_rnn.networks.cells import ENCDEC_OF_CELLS, CellConfig, CellEncDec
from moses_rnn.networks.encdec import ENCDEC
from tests.networks.saved import SIZES, SOURCE, TARGET, checkpoint, edit_config


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path / "m", checkpoint(provenance={"table": "t.gz"}))
    return tmp_path / "m"


HASHES = "expected files to have the hashes of model.safetensors, source"
CONFIGS = [
    ({"summary": "last"}, "expected variant to be paper or groundhog with their three switches, otherwise custom, found 'paper'"),
    ({"files": 3}, "expected files to be hashes by file name, found 3"),
    ({"files": {"model.safetensors": "0"}}, HASHES),
    ({"files": {"../../etc/passwd": "0"}}, HASHES),
    ({"provenance": [3]}, r"expected provenance to be what training recorded, by name, found \[3\]"),
    ({"hidden_size": "x" * 1_000_000}, "expected hidden_size to be a whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), CONFIGS)
def test_a_config_that_does_not_fit_is_refused(folder, changes, message):
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message) as refused:
        open_model(folder)
    assert len(str(refused.value)) < 1000


def test_switches_of_another_cell_are_refused(folder):
    config = CellConfig(len(SOURCE), len(TARGET), **SIZES, cell="leaky", leaky_share=0.5, decoder_reset=None)
    save_model(folder, Model(ENCDEC_OF_CELLS, CellEncDec(config, seed=1), {"source": SOURCE, "target": TARGET}))
    edit_config(folder, cell="tanh")
    with pytest.raises(
        CheckpointError, match="expected leaky_share to be null, because tanh cells do not have it, found 0.5"
    ):
        open_model(folder)


def test_what_was_written_before_there_were_cells_is_read_as_ever(folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["format"] == 1
    assert not {"cell", "encoder_reset", "leaky_share", "forget_bias", "network", "unit"} & config.keys()
    assert open_model(folder).architecture is ENCDEC
    edit_config(folder, network="encdec")  # which format 1 may leave out
    assert open_model(folder).architecture is ENCDEC
    edit_config(folder, files=..., direction=..., provenance=...)  # or as other makers write it
    assert open_model(folder).direction == "source-to-target"


CONTENTS = [
    ("config.json", "{", "expected JSON, found"),
    ("config.json", "[]", "expected a JSON object, found list"),
    *(
        ("model.safetensors", change, "expected safetensors, found")
        for change in (lambda d: d[:-1], lambda d: d[:100], lambda d: b"", lambda d: d + b"x", lambda d: bytes(len(d)))
    ),
    ("source.vocab", "a\nsecret\n", "expected a vocabulary to begin with <unk> and </s>, found other lines"),
]


@pytest.mark.parametrize(("name", "content", "message"), CONTENTS)
def test_a_file_that_is_none_is_refused_even_without_hashes(folder, name, content, message):
    """And its words are not repeated: it may be a link to anything."""
    edit_config(folder, files={})
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content(data))
    with pytest.raises(CheckpointError, match=f"{name}: {message}") as refused:
        open_model(folder)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source.vocab"])
def test_what_is_no_file_of_a_sensible_size_is_not_read(folder, name):
    (folder / name).unlink()
    with (folder / name).open("wb") as file:
        file.truncate(1 << 40)
    message = rf"{name}: expected a file of at most [\d,]+ bytes, found "
    with pytest.raises(CheckpointError, match=message + "1,099,511,627,776 bytes"):
        open_model(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match=message + "something else"):
        open_model(folder)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def write_evil(kind, path, trace):
    if kind == "pt":
        torch.save({"encoder.W": Evil(trace)}, path)
    elif kind == "npy":
        with path.open("wb") as file:
            np.save(file, np.array([Evil(trace)], dtype=object), allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(Evil(trace)))


@pytest.mark.parametrize("kind", ["pt", "npy", "pickle"])
def test_a_pickle_is_not_opened(folder, tmp_path, kind):
    write_evil(kind, folder / "model.safetensors", tmp_path / "trace")
    edit_config(folder, files={})
    with pytest.raises(
        CheckpointError, match="model.safetensors: expected safetensors, found: a pickle-based file, which"
    ):
        open_model(folder)
    write_evil(kind, tmp_path / "model", tmp_path / "trace")
    with pytest.raises(
        CheckpointError,
        match="found a file\n  Models are folders made by moses-rnn-train, moses-rnn nmt train or moses-rnn cslm train; pickles",
    ):
        open_model(tmp_path / "model")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    "pending",
    ["{", "[]", '{"files": {}}', '{"files": {"../x": "1"}}', '{"files": 1}', '"files"', "[" * 100_000, "{}"],
)
def test_a_pending_config_that_is_none_never_replaces_the_model(folder, pending):
    before = (folder / "config.json").read_bytes()
    (folder / ".config.json.new").write_text(pending)
    open_model(folder)
    finish_saving(folder, ENCDEC)
    assert (folder / "config.json").read_bytes() == before
    assert not (folder / ".config.json.new").exists()


class Dead(Exception):
    """Stands for the death of the process."""


NAMES = ["config.json", "model.safetensors", "source.vocab", "target.vocab"]


@pytest.mark.parametrize("renames", range(5))
def test_a_death_between_renames_leaves_a_model_or_says_what_is_wrong(folder, monkeypatch, renames):
    """In turn .config.json.new, two vocabularies, the weights and config.json are renamed into their places."""
    old, new = checkpoint(), checkpoint(seed=2)
    done = []
    rename = Path.replace

    def replace(path, target):
        if len(done) == renames:
            raise Dead
        done.append(Path(target).name)
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(Dead):
        save_model(folder, new)
    monkeypatch.undo()
    assert done == [".config.json.new", "source.vocab", "target.vocab", "model.safetensors"][:renames]
    expected = (new if renames == 4 else old).network.encoder.W  # the vocabularies are the same ones
    assert torch.equal(open_model(folder).network.encoder.W, expected)
    finish_saving(folder, ENCDEC)
    assert torch.equal(open_model(folder).network.encoder.W, expected)
    assert not (folder / ".config.json.new").exists()
    save_model(folder, new)
    assert sorted(path.name for path in folder.iterdir()) == NAMES


def test_a_model_that_replaces_another_has_the_permissions_of_its_files(folder):
    for path in folder.iterdir():
        path.chmod(0o640)
    save_model(folder, checkpoint(seed=2))
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == dict.fromkeys(NAMES, 0o640)


def test_the_network_is_named_by_the_config_wherever_it_stands(folder):
    assert read_record(folder)["network"] == "encdec"
    edit_config(folder, network="cslm")
    assert read_record(folder)["network"] == "cslm"
    (folder / "config.json").rename(folder / ".config.json.new")  # as after a first save that died
    assert read_record(folder)["network"] == "cslm"


def test_what_a_folder_lacks_decides_what_is_advised(folder, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "begun" / "training").mkdir(parents=True)
    advice = {}
    for name in ("other", "begun"):
        with pytest.raises(CheckpointError, match=f"{name}/config.json: ") as caught:
            open_model(tmp_path / name)
        advice[name] = caught.value.advice
    assert advice["other"].startswith("Models are folders made by ")
    assert "the same command continues" in advice["begun"].lower()
    (folder / "target.vocab").write_bytes(b"<unk>\n")
    with pytest.raises(CheckpointError) as caught:
        open_model(folder)
    assert "copy the model again" in caught.value.advice
    (folder / "training").mkdir()  # resuming repairs no model
    with pytest.raises(CheckpointError) as again:
        open_model(folder)
    assert again.value.advice == caught.value.advice
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError) as caught:
        open_model(folder)
    assert caught.value.advice == advice["other"]
