"""Targets that are models: the folder of one, and archives of the released code's weights."""

import contextlib
import io
import json
import tempfile
import zipfile
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["moses_rnn"]):
    from moses_rnn.errors import CheckpointError, InputError
    from moses_rnn.formats.npz import open_npz
    from moses_rnn.models.checkpoint import ENCDEC, load_checkpoint, save_checkpoint
    from moses_rnn.models.encdec import EncDec
    from moses_rnn.models.folders import finish_saving
    from moses_rnn.models.groundhog import network_of, plan_of, words_of
    from moses_rnn.models.variants import EncDecConfig
    from moses_rnn.models.vocabulary import Vocabulary

from tests.models.checkpoints import encdec_checkpoint
from tests.models.groundhog_weights import weights

PLACE = Path(tempfile.mkdtemp(prefix="moses-rnn-fuzz-"))
CONFIGURED = ("config.json", ".config.json.new", "model.safetensors", "source.vocab")
SIDES = ("source", "S"), ("target", "K")


def config(data: bytes) -> None:
    """Any content of any file of a model folder is loaded or refused; the first byte chooses the file."""
    folder = PLACE / "model"
    name = CONFIGURED[data[0] % len(CONFIGURED)] if data else CONFIGURED[0]
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    (folder / name).write_bytes(data[1:])
    if name not in CONFIGURED[:2]:  # without hashes the content itself is looked at
        unhashed = {**json.loads(kept[folder / "config.json"]), "files": {}}
        (folder / "config.json").write_text(json.dumps(unhashed))
    try:
        finish_saving(folder, ENCDEC)
        with contextlib.suppress(CheckpointError):
            load_checkpoint(folder)
    finally:
        for path in folder.iterdir():
            path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)


def config_seeds() -> list[bytes]:
    """Each file of a sound folder, which is left in its place."""
    folder = PLACE / "model"
    vocabulary = Vocabulary([b"<unk>", b"</s>", b"a"])
    save_checkpoint(folder, encdec_checkpoint(EncDec(EncDecConfig(3, 3, 2, 2, 2, 2), seed=1), vocabulary, vocabulary))
    names = (name.removeprefix(".").removesuffix(".new") for name in CONFIGURED)
    return [bytes([i]) + (folder / name).read_bytes() for i, name in enumerate(names)]


def npz(data: bytes) -> None:
    """An archive, a single member or a list of words, by the first byte, is read whole and alike, or refused."""
    path, choice, data = PLACE / "npz", data[:1], data[1:]
    if choice == b"w":
        with contextlib.suppress(ValueError):
            words = words_of(data.split(b"\n"), 1 + data.count(b"\n"), data[0] if data else None)
            assert sorted(words.rows.tolist()) == list(range(len(words.vocabulary)))
        return
    if choice == b"m":  # the archive itself is sound, so that checksums do not hide the member
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("W_enc_transition_0.npy", data)
    else:
        path.write_bytes(data)
    with contextlib.suppress(InputError, ValueError), open_npz(path) as opened:
        arrays = {name: opened.read(name) for name in opened.members}
        for name, member in opened.members.items():
            assert (arrays[name].shape, arrays[name].dtype.str) == member
        plan = plan_of({name: member.shape for name, member in opened.members.items()})
        words = {side: words_of([b"%d" % i for i in range(plan.sizes[of])], plan.sizes[of]) for side, of in SIDES}
        assert all(tensor.isfinite().all() for tensor in network_of(plan, arrays.__getitem__, words).parameters())


def npz_seeds() -> list[bytes]:
    """Members, a list of words, and whole archives."""
    archives = [b"m" + _member(np.ones((2, 3))), b"m" + _member(np.ones(4, np.float32)), b"w-\nUNK\na\nb\n"]
    for network in ("phrases", "search"):
        file = io.BytesIO()
        np.savez(file, **weights(network))
        archives.append(b"a" + file.getvalue())
    return archives


def _member(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()
