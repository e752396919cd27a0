"""A trained network as a folder: config.json, model.safetensors, source.vocab, target.vocab.

No pickle is read or written. Everything is checked before it is believed: hashes, sizes, finiteness.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from moses_rnn.errors import CheckpointError, shown_value, writing
from moses_rnn.models.encdec import SWITCHES, EncDec, EncDecConfig
from moses_rnn.models.vocabulary import Vocabulary

FORMAT = 1
CONFIG, MODEL, SOURCE_VOCABULARY, TARGET_VOCABULARY = "config.json", "model.safetensors", "source.vocab", "target.vocab"
PENDING_CONFIG = ".config.json.new"
MODEL_FILES = (CONFIG, MODEL, SOURCE_VOCABULARY, TARGET_VOCABULARY)
MAX_SIZE = 1 << 24  # no size of a network is larger; refused before anything is allocated
MAX_TEXT = 1 << 28  # bytes of config.json or a vocabulary
MAX_HEADER = 1 << 20  # bytes of a safetensors header: names and shapes
SIZE_KEYS = ("hidden_size", "embedding_size", "maxout_size", "output_rank")
SWITCH_VALUES = {
    "summary": ("tanh", "last"),
    "first_step": ("zero-embedding", "initial-state"),
    "decoder_reset": ("after", "before"),
}


@dataclass(frozen=True)
class Checkpoint:
    """A network with its vocabularies.

    `direction` says which column of a table the network reads: "source-to-target" gives p(target | source),
    "target-to-source" p(source | target). `provenance` is what training wished to remember.
    """

    model: EncDec
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    direction: str = "source-to-target"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)  # of the files it was loaded from


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint folder, replacing the one there.

    config.json names the hashes of the other files. It is prepared under another name first, so that a death between
    the two renames is mended by `finish_saving`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        SOURCE_VOCABULARY: checkpoint.source_vocabulary.to_bytes(),
        TARGET_VOCABULARY: checkpoint.target_vocabulary.to_bytes(),
        MODEL: save_tensors(_float32(checkpoint.model.state_dict())),
    }
    config = {
        "format": FORMAT,
        **dataclasses.asdict(checkpoint.model.config),
        "direction": checkpoint.direction,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
        "provenance": dict(checkpoint.provenance),
    }
    replace_file(folder / PENDING_CONFIG, (json.dumps(config, indent=2) + "\n").encode())
    for name, data in contents.items():
        replace_file(folder / name, data)
    (folder / PENDING_CONFIG).replace(folder / CONFIG)
    _sync(folder)


def finish_saving(folder: Path) -> None:
    """Complete a save that was killed after its last file but before its config; a no-op otherwise."""
    pending = folder / PENDING_CONFIG
    if not pending.exists():
        return
    try:
        _read_folder(folder, (PENDING_CONFIG,))
    except CheckpointError:
        pending.unlink()
    else:
        pending.replace(folder / CONFIG)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file beside its place and rename it there, durably: the old content or the new, never a part."""
    part = path.with_name(f".{path.name}.part")
    with writing(path):
        part.unlink(missing_ok=True)  # of a run that died, or a link to something else
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def load_checkpoint(folder: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Read and check a checkpoint folder.

    Raises:
        CheckpointError: anything is missing, damaged, not finite, of another format, or does not fit together.
    """
    config, files, hashes = _read_folder(folder)
    vocabularies = [_vocabulary(folder / name, files[name]) for name in (SOURCE_VOCABULARY, TARGET_VOCABULARY)]
    sizes = _network_config(config, [len(vocabulary) for vocabulary in vocabularies])
    tensors = _tensors(folder / MODEL, files[MODEL])
    _check_tensors(folder / MODEL, tensors, sizes)
    model = _without_weights(sizes)
    model.load_state_dict(tensors, assign=True)
    return Checkpoint(
        model=model.to(device).eval().requires_grad_(False),
        source_vocabulary=vocabularies[0],
        target_vocabulary=vocabularies[1],
        direction=config.get("direction", "source-to-target"),
        provenance=config.get("provenance", {}),
        hashes=hashes,
    )


def _float32(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in tensors.items()}


def _read_folder(
    folder: Path, configs: tuple[str, ...] = (CONFIG, PENDING_CONFIG, CONFIG)
) -> tuple[dict[str, Any], dict[str, bytes], dict[str, str]]:
    """The config, the other files and their hashes, fitting together.

    A training run may be replacing the files, or have died between its last two renames: then the config that fits is
    the one waiting beside, and a second look finds it or the finished change.
    """
    if not folder.is_dir():
        advice = (
            "\n  Only folders of moses-rnn-train are read; pickle-based files never are." if folder.exists() else ""
        )
        found = "a file" if folder.exists() else "nothing"
        raise CheckpointError(f"{folder}: expected a model folder, found {found}{advice}")
    problem: CheckpointError | None = None
    for name in configs:
        try:
            config = _read_config(folder / name)
            files = {file: _read(folder / file, MAX_TEXT) for file in (SOURCE_VOCABULARY, TARGET_VOCABULARY)}
            words = [data.count(b"\n") + 1 for data in files.values()]
            files[MODEL] = _read(folder / MODEL, _largest_model(config, words))
            hashes = {file: hashlib.sha256(data).hexdigest() for file, data in files.items()}
            _check_hashes(folder, name, config, hashes)
        except CheckpointError as error:
            problem = problem or error
        else:
            return config, files, hashes
    assert problem is not None
    raise problem


def _network_config(config: Mapping[str, Any], words: list[int]) -> EncDecConfig:
    choices = {key: config[key] for key in (*SIZE_KEYS, "variant", *SWITCH_VALUES)}
    return EncDecConfig(source_vocabulary_size=words[0], target_vocabulary_size=words[1], **choices)


def _largest_model(config: Mapping[str, Any], words: list[int]) -> int:
    """Bytes of float32 weights of that many, and some for their names; nothing is allocated to find out."""
    weights = _without_weights(_network_config(config, words)).state_dict().values()
    return 4 * sum(int(tensor.numel()) for tensor in weights) + MAX_HEADER


def _read(path: Path, most: int) -> bytes:
    """A regular file's content, of a bounded size."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            found = f"{status.st_size:,} bytes" if stat.S_ISREG(status.st_mode) else "something else"
            raise CheckpointError(f"{path}: expected a file of at most {most:,} bytes, found {found}")
        return path.read_bytes()
    except OSError as error:
        advice = (
            "\n  Was training stopped before its first evaluation? The same command goes on."
            if path.name == CONFIG
            else ""
        )
        raise CheckpointError(f"{path}: expected a file of a model folder, found: {error.strerror}{advice}") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(_read(path, MAX_TEXT))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: expected JSON, found: {error}") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(config).__name__}")
    _check_config(path, config)
    return config


def _check_config(path: Path, config: dict[str, Any]) -> None:
    def expect(key: str, valid: bool, expected: str) -> None:
        if not valid:
            raise CheckpointError(f"{path}: expected {key} to be {expected}, found {shown_value(config.get(key))}")

    expect("format", config.get("format") == FORMAT, f"{FORMAT}, the format this version reads")
    for key in SIZE_KEYS:
        size = config.get(key)
        expect(key, type(size) is int and 0 < size <= MAX_SIZE, f"a whole number from 1 to {MAX_SIZE}")
    for key, values in SWITCH_VALUES.items():
        expect(key, config.get(key) in values, " or ".join(map(repr, values)))
    variant = config.get("variant")
    named = (
        isinstance(variant, str)
        and variant in SWITCHES
        and all(config[key] == value for key, value in SWITCHES[variant].items())
    )
    expect("variant", named or variant == "custom", "the name of its three switches (paper, groundhog, else custom)")
    direction = config.get("direction", "source-to-target")
    expect("direction", direction in ("source-to-target", "target-to-source"), "a known direction")
    expect("files", isinstance(config.get("files", {}), dict), "hashes by file name")


def _check_hashes(folder: Path, config_name: str, config: dict[str, Any], hashes: dict[str, str]) -> None:
    """Only a config of other makers may lack the hashes; one that waits for its files never does."""
    expected_hashes = config.get("files", {})
    if (expected_hashes or config_name == PENDING_CONFIG) and expected_hashes.keys() != hashes.keys():
        raise CheckpointError(
            f"{folder / config_name}: expected files to have the hashes of {', '.join(sorted(hashes))}, found those of "
            f"{shown_value(sorted(expected_hashes))}"
        )
    for name, expected in expected_hashes.items():
        if hashes[name] != expected:
            raise CheckpointError(
                f"{folder / name}: expected SHA-256 {str(expected)[:64]} as in {CONFIG}, found {hashes[name]}\n"
                "  The file was changed or damaged; training again from its state mends it."
            )


def _vocabulary(path: Path, data: bytes) -> Vocabulary:
    try:
        return Vocabulary.from_bytes(data)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _tensors(path: Path, data: bytes) -> dict[str, Tensor]:
    try:
        return load_tensors(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a number type that torch has none for
        pickled = data.startswith((b"PK\x03\x04", b"\x80", b"\x93NUMPY"))
        found = "a pickle-based file, which is not read" if pickled else f"{error}"
        raise CheckpointError(f"{path}: expected safetensors, found: {found}") from error


def _without_weights(config: EncDecConfig) -> EncDec:
    """A network of shapes only: nothing is allocated, nothing drawn."""
    with torch.device("meta"):
        return EncDec(config, seed=None)


def _check_tensors(path: Path, tensors: dict[str, Tensor], config: EncDecConfig) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in _without_weights(config).state_dict().items()}
    if tensors.keys() != expected.keys():
        wrong = sorted(tensors.keys() ^ expected.keys())
        raise CheckpointError(
            f"{path}: expected the tensors of a {config.variant} network, differing in {str(wrong)[:200]}"
        )
    for name, shape in expected.items():
        tensor = tensors[name]
        if tuple(tensor.shape) != shape or tensor.dtype != torch.float32:
            raise CheckpointError(
                f"{path}: expected {name} to be float32 {shape}, found {tensor.dtype} {tuple(tensor.shape)}"
            )
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{path}: expected finite weights, found NaN or infinity in {name}")
