import json
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from moses_rnn.errors import CheckpointError
from moses_rnn.models.checkpoint import ENCDEC, load_checkpoint, save_checkpoint
from moses_rnn.models.encdec import SWITCHES, EncDec, EncDecConfig
from moses_rnn.models.folders import finish_saving
from moses_rnn.models.vocabulary import Vocabulary
from tests.models.checkpoints import encdec_checkpoint

SOURCE = Vocabulary([b"<unk>", b"</s>", b"a", b"b"])
TARGET = Vocabulary([b"<unk>", b"</s>", "été".encode()])
H, E, M, R = 4, 3, 2, 5
SIZES = {"hidden_size": H, "embedding_size": E, "maxout_size": M, "output_rank": R}
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


def checkpoint(variant="paper", seed=1, **changes):
    model = EncDec(EncDecConfig(4, 3, **SIZES, variant=variant, **SWITCHES[variant]), seed=seed)
    return encdec_checkpoint(model, SOURCE, TARGET, **changes)


@pytest.fixture
def folder(tmp_path):
    save_checkpoint(tmp_path / "m", checkpoint(provenance={"table": "t.gz"}))
    return tmp_path / "m"


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config = {key: value for key, value in {**config, **changes}.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("variant", SWITCHES)
def test_what_is_saved_is_loaded(tmp_path, variant):
    saved = checkpoint(variant, direction="target-to-source")
    save_checkpoint(tmp_path / "m", saved)
    loaded = load_checkpoint(tmp_path / "m")
    assert loaded.model.config == saved.model.config
    assert loaded.direction == "target-to-source"
    assert (loaded.source_vocabulary.words, loaded.target_vocabulary.words) == (SOURCE.words, TARGET.words)
    for name, tensor in saved.model.state_dict().items():
        assert torch.equal(tensor, loaded.model.state_dict()[name])


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


@pytest.mark.parametrize("name", ["model.safetensors", "source.vocab", "target.vocab"])
def test_a_changed_file_is_noticed(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[-2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(
        CheckpointError, match=f"{name}: expected SHA-256 [0-9a-f]{{64}} as in config.json, found [0-9a-f]{{64}}"
    ):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source.vocab", "target.vocab"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}: expected a file of a model folder, found: No such file"):
        load_checkpoint(folder)


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
            r"expected the tensors of a custom network, differing in \['encoder.V', 'encoder.b_V'\]",
        ),
        ({"hidden_size": 5}, r"expected \S+ to be float32 \(5,.*, found torch.float32 \(4,"),
        ({"direction": "up"}, "expected direction to be a known direction, found 'up'"),
        ({"files": 3}, "expected files to be hashes by file name, found 3"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, changes, message):
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "expected JSON, found"), ("[]", "expected a JSON object, found list")]
)
def test_a_config_that_is_none_is_refused(folder, text, message):
    (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


def rewrite_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    edit_config(folder, files={})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t["decoder.G_r"].fill_(float("nan")),
            "expected finite weights, found NaN or infinity in decoder.G_r",
        ),
        (lambda t: t.pop("decoder.C"), r"expected the tensors of a paper network, differing in \['decoder.C'\]"),
        (lambda t: t.update(extra=torch.zeros(1)), r"differing in \['extra'\]"),
        (lambda t: t.update({"encoder.b": t["encoder.b"].half()}), "expected encoder.b to be float32"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(folder, change, message):
    rewrite_tensors(folder, change)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source.vocab"])
def test_what_is_no_file_of_a_sensible_size_is_not_read(folder, name):
    (folder / name).unlink()
    with (folder / name).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(
        CheckpointError, match=rf"{name}: expected a file of at most [\d,]+ bytes, found 1,099,511,627,776 bytes"
    ):
        load_checkpoint(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(
        CheckpointError, match=rf"{name}: expected a file of at most [\d,]+ bytes, found something else"
    ):
        load_checkpoint(folder)


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
        load_checkpoint(folder)
    write_evil(kind, tmp_path / "model", tmp_path / "trace")
    with pytest.raises(CheckpointError, match="found a file\n  Only folders of moses-rnn-train are read; pickle-based"):
        load_checkpoint(tmp_path / "model")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    "change", [lambda d: d[:-1], lambda d: d[:100], lambda d: b"", lambda d: d + b"x", lambda d: bytes(len(d))]
)
def test_weights_cut_short_or_prolonged_are_refused_even_without_hashes(folder, change):
    data = (folder / "model.safetensors").read_bytes()
    edit_config(folder, files={})
    (folder / "model.safetensors").write_bytes(change(data))
    with pytest.raises(CheckpointError, match="model.safetensors: expected safetensors, found"):
        load_checkpoint(folder)


def test_a_vocabulary_that_is_none_is_refused(folder):
    (folder / "source.vocab").write_bytes(b"a\nb\n")
    edit_config(folder, files={})
    with pytest.raises(CheckpointError, match="source.vocab: expected a vocabulary to begin with <unk> and </s>"):
        load_checkpoint(folder)


@pytest.mark.parametrize("place", ["nothing", "file"])
def test_no_folder(tmp_path, place):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointError, match=f"{place}: expected a model folder, found (nothing|a file)"):
        load_checkpoint(tmp_path / place)


def test_a_save_that_died_before_its_last_rename_is_completed(folder, tmp_path):
    """The state between the two renames: new weights under the old config, the new config waiting."""
    save_checkpoint(tmp_path / "new", checkpoint(seed=2))
    (tmp_path / "new" / "config.json").rename(folder / ".config.json.new")
    (tmp_path / "new" / "model.safetensors").rename(folder / "model.safetensors")
    assert torch.equal(load_checkpoint(folder).model.encoder.W, checkpoint(seed=2).model.encoder.W)
    finish_saving(folder, ENCDEC)
    assert torch.equal(load_checkpoint(folder).model.encoder.W, checkpoint(seed=2).model.encoder.W)
    assert not (folder / ".config.json.new").exists()


def test_a_save_that_died_earlier_leaves_the_old_model(folder):
    (folder / ".config.json.new").write_text('{"files": {"model.safetensors": "0"}}')
    finish_saving(folder, ENCDEC)
    assert torch.equal(load_checkpoint(folder).model.encoder.W, checkpoint().model.encoder.W)
    assert not (folder / ".config.json.new").exists()


@pytest.mark.parametrize(
    "pending",
    ["{", "[]", '{"files": {}}', '{"files": {"../x": "1"}}', '{"files": 1}', '"files"', "[" * 100_000, "{}"],
)
def test_a_pending_config_that_is_none_never_replaces_the_model(folder, pending):
    before = (folder / "config.json").read_bytes()
    (folder / ".config.json.new").write_text(pending)
    load_checkpoint(folder)
    finish_saving(folder, ENCDEC)
    assert (folder / "config.json").read_bytes() == before
    assert not (folder / ".config.json.new").exists()


def test_a_pending_config_without_hashes_is_not_believed(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / ".config.json.new").write_text(json.dumps({**config, "files": {}, "direction": "target-to-source"}))
    finish_saving(folder, ENCDEC)
    assert load_checkpoint(folder).direction == "source-to-target"


@pytest.mark.parametrize("files", [{"model.safetensors": "0"}, {"../../etc/passwd": "0"}])
def test_hashes_are_of_the_three_files(folder, files):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "files": files}))
    with pytest.raises(
        CheckpointError, match="config.json: expected files to have the hashes of model.safetensors, source"
    ):
        load_checkpoint(folder)


def test_files_of_two_models_do_not_mix(folder, tmp_path):
    """Fault 45: a vocabulary of another model, another order of its lines."""
    path = folder / "target.vocab"
    first, second, *words = path.read_bytes().split(b"\n")
    for lines in ([first, second, *reversed(words)], [first, second, *words[:-2], b"other"]):
        path.write_bytes(b"\n".join(lines))
        with pytest.raises(CheckpointError, match="target.vocab: expected SHA-256"):
            load_checkpoint(folder)


def test_messages_do_not_repeat_a_whole_hostile_config(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": "x" * 1_000_000}))
    with pytest.raises(CheckpointError) as raised:
        load_checkpoint(folder)
    assert len(str(raised.value)) < 1000
