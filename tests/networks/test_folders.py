"""Model folders: nothing damaged, foreign or half written is taken for a model, and no pickle is opened."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.files.outputs import replace_file
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.scorers.open import finish_saving, open_model, read_record, save_model
from tests.networks.saved import checkpoint, edit_config


@pytest.mark.parametrize(
    ("text", "message"), [("{", "expected JSON, found"), ("[]", "expected a JSON object, found list")]
)
def test_a_config_that_is_none_is_refused(folder, text, message):
    (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=message):
        open_model(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source.vocab"])
def test_what_is_no_file_of_a_sensible_size_is_not_read(folder, name):
    (folder / name).unlink()
    with (folder / name).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(
        CheckpointError, match=rf"{name}: expected a file of at most [\d,]+ bytes, found 1,099,511,627,776 bytes"
    ):
        open_model(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(
        CheckpointError, match=rf"{name}: expected a file of at most [\d,]+ bytes, found something else"
    ):
        open_model(folder)


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def write_evil(kind, path, trace):
    if kind == "pt":
        torch.save({"encoder.W": Evil(trace)}, path)
    elif kind == "npz":
        with path.open("wb") as file:
            np.savez(file, W=np.array([Evil(trace)], dtype=object), allow_pickle=True)
    elif kind == "npy":
        with path.open("wb") as file:
            np.save(file, np.array([Evil(trace)], dtype=object), allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(Evil(trace)))


@pytest.mark.parametrize("kind", ["pt", "npz", "npy", "pickle"])
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
        match="found a file\n  Models are folders that moses-rnn-train, -nmt train or -cslm train have made; pickles",
    ):
        open_model(tmp_path / "model")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    "change", [lambda d: d[:-1], lambda d: d[:100], lambda d: b"", lambda d: d + b"x", lambda d: bytes(len(d))]
)
def test_weights_cut_short_or_prolonged_are_refused_even_without_hashes(folder, change):
    data = (folder / "model.safetensors").read_bytes()
    edit_config(folder, files={})
    (folder / "model.safetensors").write_bytes(change(data))
    with pytest.raises(CheckpointError, match="model.safetensors: expected safetensors, found"):
        open_model(folder)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\nsecret\n", "expected a vocabulary to begin with <unk> and </s>, found other lines"),
        (b"<unk>\n</s>\na ||| secret ||| 1\nb\n", "expected a word on line 3 of a vocabulary, found something else\n"),
        (b"<unk>\n</s>\na\n\n", "expected a word on line 4 of a vocabulary, found something else\n"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(folder, tmp_path, data, message):
    (tmp_path / "other").write_bytes(data)
    (folder / "source.vocab").unlink()
    (folder / "source.vocab").symlink_to(tmp_path / "other")
    edit_config(folder, files={})
    with pytest.raises(CheckpointError, match=f"source.vocab: {message}") as refused:
        open_model(folder)
    assert "secret" not in str(refused.value)


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


@pytest.mark.parametrize("files", [{"model.safetensors": "0"}, {"../../etc/passwd": "0"}])
def test_hashes_are_of_the_three_files(folder, files):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "files": files}))
    with pytest.raises(
        CheckpointError, match="config.json: expected files to have the hashes of model.safetensors, source"
    ):
        open_model(folder)


def test_files_of_two_models_do_not_mix(folder, tmp_path):
    """Fault 45: a vocabulary of another model, another order of its lines."""
    path = folder / "target.vocab"
    first, second, *words = path.read_bytes().split(b"\n")
    for lines in ([first, second, *reversed(words)], [first, second, *words[:-2], b"other"]):
        path.write_bytes(b"\n".join(lines))
        with pytest.raises(CheckpointError, match="target.vocab: expected SHA-256"):
            open_model(folder)


def test_messages_do_not_repeat_a_whole_hostile_config(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": "x" * 1_000_000}))
    with pytest.raises(CheckpointError) as raised:
        open_model(folder)
    assert len(str(raised.value)) < 1000


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


def test_a_file_is_replaced_as_a_whole(tmp_path):
    """What a run that died has left in the way is no hindrance, and a link is not followed."""
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"old")
    other.write_bytes(b"other")
    (tmp_path / ".file.part").symlink_to(other)
    replace_file(path, b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"file": b"new", "other": b"other"}


def test_the_network_is_named_by_the_config_wherever_it_stands(folder):
    assert read_record(folder)["network"] == "encdec"
    edit_config(folder, network="cslm")
    assert read_record(folder)["network"] == "cslm"
    (folder / "config.json").rename(folder / ".config.json.new")  # as after a first save that died
    assert read_record(folder)["network"] == "cslm"
