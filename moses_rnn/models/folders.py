"""Model folders: config.json, model.safetensors and vocabularies; what a network is, its own file says.

No pickle is read or written. Everything is checked before it is believed: hashes, sizes, finiteness.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from moses_rnn.errors import CheckpointError, shown_value, writing
from moses_rnn.files.outputs import sync_directory
from moses_rnn.files.streams import check_folder, parse_json
from moses_rnn.models.learning_curves import NATS, Measure
from moses_rnn.models.vocabulary import Vocabulary

FORMAT = 1
CONFIG, MODEL = "config.json", "model.safetensors"
PENDING_CONFIG = ".config.json.new"
FIRST_NETWORK = "encdec"  # whose config.json has no key "network"
MAX_SIZE = 1 << 24  # no size of a network is larger; refused before anything is allocated
MAX_TEXT = 1 << 28  # bytes of config.json or a vocabulary
MAX_HEADER = 1 << 20  # bytes of a safetensors header: names and shapes

SENTENCES, PHRASES = UNITS = "sentences", "phrases"  # that a network learned from
SOURCE_TO_TARGET, TARGET_TO_SOURCE = DIRECTIONS = "source-to-target", "target-to-source"

Json = dict[str, Any]
Expect = Callable[[str, bool, str], None]  # key, whether its value is valid, what is expected


@dataclass(frozen=True)
class Kind:
    """A kind of network, as far as its folder is concerned.

    Its networks have a `config`, a dataclass of the keys that config.json has for them, with a `width` in hidden units.
    """

    network: str  # as config.json names it
    title: str  # in messages
    sides: tuple[str, ...]  # that have a vocabulary: "source" and "target", or one of them
    check: Callable[[Json, Expect], None]  # of the config's own keys
    build: Callable[[Mapping[str, Any], list[int]], nn.Module]  # by config and sizes of vocabularies
    format: int = FORMAT
    measure: Measure = NATS  # what it is judged by

    @property
    def named(self) -> Json:
        """What config.json has in its name: nothing for the first kind there was."""
        first = (self.network, self.format) == (FIRST_NETWORK, FORMAT)
        return {} if first else {"format": self.format, "network": self.network}

    @property
    def vocabularies(self) -> tuple[str, ...]:
        """Names of the vocabularies' files."""
        return tuple(map(vocabulary_file, self.sides))

    @property
    def taken_by(self) -> str:
        """The commands for its networks, as advice."""
        if "source" not in self.sides:
            return "moses-rnn cslm perplexity and moses-rnn nbest add take language models."
        return (
            "moses-rnn-score takes networks of phrases, moses-rnn nmt networks of sentences, moses-rnn nbest add both."
        )

    def files(self) -> tuple[str, ...]:
        """Names of all files of the folder."""
        return (CONFIG, MODEL, *self.vocabularies)

    def without_weights(self, config: Mapping[str, Any], words: list[int]) -> nn.Module:
        """A network of shapes only: nothing is allocated, nothing drawn."""
        with torch.device("meta"):
            return self.build(config, words)


def vocabulary_file(side: str) -> str:
    """The name of a vocabulary's file."""
    return f"{side}.vocab"


class Loaded(NamedTuple):
    """What a folder holds, checked."""

    config: Json
    vocabularies: list[Vocabulary]
    model: nn.Module
    hashes: dict[str, str]  # of the files


def save_folder(
    folder: Path, model: nn.Module, vocabularies: Mapping[str, Vocabulary], config: Json, provenance: Mapping[str, Any]
) -> None:
    """Write a model folder, replacing the one there.

    config.json names the hashes of the other files. It is prepared under another name first, so that a death between
    the two renames is mended by `finish_saving`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    contents = {name: vocabulary.to_bytes() for name, vocabulary in vocabularies.items()}
    contents[MODEL] = save_tensors(_float32(model.state_dict()))
    whole = {
        "format": FORMAT,  # unless the config names another
        **config,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
        "provenance": dict(provenance),
    }
    replace_file(folder / PENDING_CONFIG, (json.dumps(whole, indent=2) + "\n").encode())
    for name, data in contents.items():
        replace_file(folder / name, data)
    (folder / PENDING_CONFIG).replace(folder / CONFIG)
    sync_directory(folder)


def finish_saving(folder: Path, kind: Kind) -> None:
    """Complete a save that was killed after its last file but before its config; a no-op otherwise."""
    pending = folder / PENDING_CONFIG
    if not pending.exists():
        return
    try:
        _read_folder(folder, kind, (PENDING_CONFIG,))
    except CheckpointError:
        pending.unlink()
    else:
        pending.replace(folder / CONFIG)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file beside its place and rename it there, durably: the old content or the new, never a part."""
    part = path.with_name(f".{path.name}.part")
    with writing(path, len(data)):
        part.unlink(missing_ok=True)  # of a run that died, or a link to something else
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_directory(path.parent)


def load_folder(folder: Path, kind: Kind, device: torch.device | str = "cpu") -> Loaded:
    """Read and check a model folder.

    Raises:
        CheckpointError: anything is missing, damaged, not finite, of another format, or does not fit together.
    """
    config, files, hashes = _read_folder(folder, kind)
    vocabularies = [_vocabulary(folder / name, files[name]) for name in kind.vocabularies]
    model = kind.without_weights(config, [len(vocabulary) for vocabulary in vocabularies])
    tensors = _tensors(folder / MODEL, files[MODEL])
    _check_tensors(folder / MODEL, tensors, model, f"{config.get('variant', '')} {kind.title}".strip())
    _check_words(folder, config, {side: len(known) for side, known in zip(kind.sides, vocabularies, strict=True)})
    model.load_state_dict(tensors, assign=True)
    return Loaded(config, vocabularies, model.to(device).eval().requires_grad_(False), hashes)


def _float32(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in tensors.items()}


def _read_folder(
    folder: Path, kind: Kind, configs: tuple[str, ...] = (CONFIG, PENDING_CONFIG, CONFIG)
) -> tuple[dict[str, Any], dict[str, bytes], dict[str, str]]:
    """The config, the other files and their hashes, fitting together.

    A training run may be replacing the files, or have died between its last two renames: then the config that fits is
    the one waiting beside, and a second look finds it or the finished change.
    """
    check_folder(folder)
    problem: CheckpointError | None = None
    for name in configs:
        try:
            config = _read_json(folder / name)
            _check_config(folder / name, config, kind)
            files = {file: _read(folder / file, MAX_TEXT) for file in kind.vocabularies}
            words = [data.count(b"\n") + 1 for data in files.values()]
            files[MODEL] = _read(folder / MODEL, _largest_model(kind, config, words))
            hashes = {file: hashlib.sha256(data).hexdigest() for file, data in files.items()}
            _check_hashes(folder, name, config, hashes)
        except CheckpointError as error:
            problem = problem or error
        else:
            return config, files, hashes
    assert problem is not None
    raise problem


def _largest_model(kind: Kind, config: Mapping[str, Any], words: list[int]) -> int:
    """Bytes of float32 weights of that many, and some for their names; nothing is allocated to find out."""
    weights = kind.without_weights(config, words).state_dict().values()
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
        stopped = "Was training stopped before its first evaluation? The same command goes on."
        raise CheckpointError(
            f"{path}: expected a file of a model folder, found: {error.strerror}",
            advice=stopped if path.name == CONFIG else "",
        ) from error


def _read_json(path: Path) -> Json:
    try:
        config = parse_json(_read(path, MAX_TEXT))
    except ValueError as error:
        raise CheckpointError(f"{path}: expected JSON, found: {error}") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(config).__name__}")
    return config


def _check_config(path: Path, config: Json, kind: Kind) -> None:
    def expect(key: str, valid: bool, expected: str) -> None:
        if not valid:
            raise CheckpointError(f"{path}: expected {key} to be {expected}, found {shown_value(config.get(key))}")

    expect("format", config.get("format") == kind.format, f"{kind.format}, the format this version reads")
    kind.check(config, expect)
    expect("files", isinstance(config.get("files", {}), dict), "hashes by file name")
    expect("provenance", isinstance(config.get("provenance", {}), dict), "what training recorded, by name")


def read_network(folder: Path) -> Any:
    """The network that a folder's config.json names, whatever that is; of one that names none the first there was.

    Raises:
        CheckpointError: it cannot be read.
    """
    return read_key(folder, "network", FIRST_NETWORK)


def read_key(folder: Path, key: str, otherwise: object = None) -> Any:
    """What config.json has under a key, unchecked, or something else if nothing. Raises as `read_network`."""
    check_folder(folder)
    return _read_json(_config_file(folder)).get(key, otherwise)


def _config_file(folder: Path) -> Path:
    """Where the config stands; a save that died before its last rename has left it under another name."""
    path, pending = folder / CONFIG, folder / PENDING_CONFIG
    return pending if pending.exists() and not path.exists() else path


def is_size(value: object) -> bool:
    """Whether a value can be a size of a network."""
    return type(value) is int and 0 < value <= MAX_SIZE


def check_translation(config: Json, expect: Expect, kind: Kind, switches: Mapping[str, tuple[object, ...]]) -> None:
    """The keys that config.json of every network of format 2 that translates has, and the values of its switches."""
    expect("network", config.get("network") == kind.network, f"{kind.network!r}")
    for key, values in {"unit": UNITS, "direction": DIRECTIONS, **switches}.items():
        expect(key, config.get(key) in values, " or ".join(map(repr, values)))
    rare = config.get("rare")
    known = isinstance(rare, dict) and isinstance(rare.get("kind"), str) and is_size(rare.get("window"))
    expect("rare", rare is None or known, 'null, or a "kind" and a "window"')


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
                f"{folder / name}: expected SHA-256 {str(expected)[:64]} as in {CONFIG}, found {hashes[name]}",
                advice="The file was changed or damaged; training again from its state mends it.",
            )


def _check_words(folder: Path, config: Json, words: Mapping[str, int]) -> None:
    """A size of a vocabulary that config.json has is that of the file."""
    for side, size in words.items():
        for key in (f"{side}_vocabulary_size", "vocabulary_size"):  # a CSLM's has no side
            if (given := config.get(key, size)) != size:
                expected = f"{key} to be {size}, the words of {vocabulary_file(side)}"
                raise CheckpointError(f"{folder / CONFIG}: expected {expected}, found {shown_value(given)}")


def _vocabulary(path: Path, data: bytes) -> Vocabulary:
    try:
        return Vocabulary.from_bytes(data)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error.message}", advice=error.advice) from error


def _tensors(path: Path, data: bytes) -> dict[str, Tensor]:
    try:
        return load_tensors(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a number type that torch has none for
        pickled = data.startswith((b"PK\x03\x04", b"\x80", b"\x93NUMPY"))
        found = "a pickle-based file, which is not read" if pickled else f"{error}"
        raise CheckpointError(f"{path}: expected safetensors, found: {found}") from error


def _check_tensors(path: Path, tensors: dict[str, Tensor], model: nn.Module, network: str) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if tensors.keys() != expected.keys():
        wrong = sorted(tensors.keys() ^ expected.keys())
        raise CheckpointError(f"{path}: expected the tensors of a {network}, differing in {str(wrong)[:200]}")
    for name, shape in expected.items():
        tensor = tensors[name]
        if tuple(tensor.shape) != shape or tensor.dtype != torch.float32:
            raise CheckpointError(
                f"{path}: expected {name} to be float32 {shape}, found {tensor.dtype} {tuple(tensor.shape)}"
            )
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{path}: expected finite weights, found NaN or infinity in {name}")
