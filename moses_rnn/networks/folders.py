"""What kinds of network there are, and the files of their folders: config.json, model.safetensors and vocabularies."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from moses_rnn.errors import CheckpointError, shown_value, writing
from moses_rnn.files.outputs import sync_directory
from moses_rnn.files.streams import check_folder, parse_json
from moses_rnn.networks.config import Config
from moses_rnn.networks.learning_curves import NATS, Measure
from moses_rnn.networks.vocabulary import Vocabulary

FORMAT = 1
CONFIG, MODEL = "config.json", "model.safetensors"
PENDING_CONFIG = ".config.json.new"
FIRST_NETWORK = "encdec"  # whose config.json has no key "network"
MAX_TEXT = 1 << 28  # bytes of config.json or a vocabulary
SOURCE_TO_TARGET, TARGET_TO_SOURCE = DIRECTIONS = "source-to-target", "target-to-source"

Json = dict[str, Any]


@dataclass(frozen=True)
class Architecture:
    """A kind of network: a row of NETWORKS.

    It has a stepper, from which scoring and search follow, or else what scores pairs, or words of targets alone.
    """

    key: str  # in config.json
    title: str  # in messages
    name: str  # of its score
    sides: tuple[str, ...]  # that have a vocabulary: "source" and "target", or one of them
    config: type[Config]
    module: Callable[..., nn.Module]  # of a config and the seed of its initial weights
    stepper: Callable[..., Any] | None = None  # a `Stepper` of a module, a device and the type of products
    pairs: Callable[..., Any] | None = None  # a `PairNetwork` of the same, and of what too long pairs score
    words: Callable[..., Any] | None = None  # a `WordNetwork` of the same as a stepper
    native: Callable[..., Any] | None = None  # a `PairNetwork` of a module, the native core and a precision
    ends: str = "both </s> included"  # which end symbols count in a score of pairs
    unbounded: bool = False  # whether that is no log-probability
    format: int = FORMAT  # of config.json
    measure: Measure = NATS  # what it is judged by

    @property
    def reads_sources(self) -> bool:
        """Whether it is a network of pairs, not of targets alone."""
        return "source" in self.sides

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all files of a folder."""
        return (CONFIG, MODEL, *map(vocabulary_file, self.sides))


def vocabulary_file(side: str) -> str:
    """The name of a vocabulary's file."""
    return f"{side}.vocab"


def save_folder(
    folder: Path, record: Json, network: nn.Module, vocabularies: Mapping[str, Vocabulary], provenance: Json
) -> None:
    """Write a model folder, replacing the one there.

    config.json names the hashes of the other files. It is prepared under another name first, so that a death between
    the two renames is mended by `finish_saving`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    contents = {vocabulary_file(side): vocabulary.to_bytes() for side, vocabulary in vocabularies.items()}
    weights = network.state_dict().items()
    contents[MODEL] = save_tensors({name: w.detach().to("cpu", torch.float32).contiguous() for name, w in weights})
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    record = {**record, "files": hashes, "provenance": provenance}
    replace_file(folder / PENDING_CONFIG, (json.dumps(record, indent=2) + "\n").encode())
    for name, data in contents.items():
        replace_file(folder / name, data)
    (folder / PENDING_CONFIG).replace(folder / CONFIG)
    sync_directory(folder)


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


def read_file(path: Path, most: int = MAX_TEXT) -> bytes:
    """A regular file's content, of a bounded size.

    Raises:
        CheckpointError: it is larger, or cannot be read.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            found = f"{status.st_size:,} bytes" if stat.S_ISREG(status.st_mode) else "something else"
            raise CheckpointError(f"{path}: expected a file of at most {most:,} bytes, found {found}")
        return path.read_bytes()
    except OSError as error:
        stopped = "Was training stopped before its first evaluation? The same command continues."
        raise CheckpointError(
            f"{path}: expected a file of a model folder, found: {error.strerror}",
            advice=stopped if path.name == CONFIG else "",
        ) from error


def read_json(path: Path) -> Json:
    """A config.json, unchecked.

    Raises:
        CheckpointError: it cannot be read, or is no JSON object.
    """
    try:
        record = parse_json(read_file(path))
    except ValueError as error:
        raise CheckpointError(f"{path}: expected JSON, found: {error}") from error
    if not isinstance(record, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(record).__name__}")
    return record


def read_record(folder: Path) -> Json:
    """What a folder's config.json says, unchecked; a save that died before its last rename left another name.

    Raises:
        CheckpointError: it cannot be read.
    """
    check_folder(folder)
    path, pending = folder / CONFIG, folder / PENDING_CONFIG
    return {"network": FIRST_NETWORK, **read_json(pending if pending.exists() and not path.exists() else path)}


def find_architecture(path: Path, record: Json, architectures: Collection[Architecture]) -> Architecture:
    """The one that a config.json names by its network and format."""
    network, number = record.get("network", FIRST_NETWORK), record.get("format")
    formats = {row.format: row for row in architectures if row.key == network}
    if not formats:
        known = " or ".join(sorted({row.key for row in architectures}))
        raise CheckpointError(f"{path}: expected network to be {known}, found {shown_value(network)}")
    if type(number) is not int or number not in formats:
        known = f"{' or '.join(map(str, sorted(formats)))}, the format this version reads"
        raise CheckpointError(f"{path}: expected format to be {known}, found {shown_value(number)}")
    return formats[number]


def check_hashes(path: Path, record: Json, files: Mapping[str, bytes]) -> dict[str, str]:
    """Of the files, which are those that config.json names; only one of other makers may lack them."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    recorded = record.get("files", {})
    if (recorded or path.name == PENDING_CONFIG) and recorded.keys() != hashes.keys():
        raise CheckpointError(
            f"{path}: expected files to have the hashes of {', '.join(sorted(hashes))}, found those of "
            f"{shown_value(sorted(recorded))}"
        )
    for name, expected in recorded.items():
        if hashes[name] != expected:
            raise CheckpointError(
                f"{path.parent / name}: expected SHA-256 {str(expected)[:64]} as in {CONFIG}, found {hashes[name]}",
                advice="The file was changed or damaged; training again from its state mends it.",
            )
    return hashes


def read_vocabulary(folder: Path, record: Json, side: str, files: Mapping[str, bytes]) -> Vocabulary:
    """The words of a side, as many as config.json says."""
    file = vocabulary_file(side)
    try:
        vocabulary = Vocabulary.from_bytes(files[file])
    except CheckpointError as error:
        raise CheckpointError(f"{folder / file}: {error.message}", advice=error.advice) from error
    for key in (f"{side}_vocabulary_size", "vocabulary_size"):  # a CSLM's has no side
        if (given := record.get(key, len(vocabulary))) != len(vocabulary):
            expected = f"{key} to be {len(vocabulary)}, the words of {file}"
            raise CheckpointError(f"{folder / CONFIG}: expected {expected}, found {shown_value(given)}")
    return vocabulary


def read_tensors(path: Path, data: bytes, shapes: Mapping[str, Tensor], title: str) -> dict[str, Tensor]:
    """The weights of a network of such shapes; finite float32."""
    try:
        tensors = load_tensors(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a number type that torch has none for
        pickled = data.startswith((b"PK\x03\x04", b"\x80", b"\x93NUMPY"))
        found = "a pickle-based file, which is not read" if pickled else f"{error}"
        raise CheckpointError(f"{path}: expected safetensors, found: {found}") from error
    if tensors.keys() != shapes.keys():
        wrong = str(sorted(tensors.keys() ^ shapes.keys()))[:200]
        raise CheckpointError(f"{path}: expected the tensors of a {title}, differing in {wrong}")
    for name, tensor in tensors.items():
        shape, given = tuple(shapes[name].shape), tuple(tensor.shape)
        if given != shape or tensor.dtype != torch.float32:
            raise CheckpointError(f"{path}: expected {name} to be float32 {shape}, found {tensor.dtype} {given}")
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{path}: expected finite weights, found NaN or infinity in {name}")
    return tensors
