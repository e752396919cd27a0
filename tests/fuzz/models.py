"""Targets that are models: the folder of one."""

import contextlib
import json
import tempfile
from pathlib import Path

import atheris

from moses_rnn.scorers.open import open_model

with atheris.instrument_imports(include=["moses_rnn"]):
    from moses_rnn.errors import CheckpointError
    from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
    from moses_rnn.networks.vocabulary import Vocabulary
    from moses_rnn.scorers.open import finish_saving, save_model

from tests.networks.checkpoints import encdec_checkpoint

PLACE = Path(tempfile.mkdtemp(prefix="moses-rnn-fuzz-"))
CONFIGURED = ("config.json", ".config.json.new", "model.safetensors", "source.vocab")


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
            open_model(folder)
    finally:
        for path in folder.iterdir():
            path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)


def config_seeds() -> list[bytes]:
    """Each file of a sound folder, which is left in its place."""
    folder = PLACE / "model"
    vocabulary = Vocabulary([b"<unk>", b"</s>", b"a"])
    save_model(folder, encdec_checkpoint(EncDec(EncDecConfig(3, 3, 2, 2, 2, 2), seed=1), vocabulary, vocabulary))
    names = (name.removeprefix(".").removesuffix(".new") for name in CONFIGURED)
    return [bytes([i]) + (folder / name).read_bytes() for i, name in enumerate(names)]
