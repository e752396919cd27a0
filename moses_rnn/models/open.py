"""Folders that hold a trained network: read, check and write them.

No pickle is read or written. Hashes, sizes and finiteness are checked before anything is used.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, fields
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from moses_rnn.errors import CheckpointError, InputError, number_of, shown_value
from moses_rnn.files.outputs import rename_over, replace_file, sync_directory
from moses_rnn.files.streams import parse_json
from moses_rnn.models.folder import MADE_BY, check_folder
from moses_rnn.models.model import Model
from moses_rnn.models.pretrained import open_pretrained
from moses_rnn.models.rare_words import RareWords
from moses_rnn.networks.config import (
    CONFIG,
    DIRECTIONS,
    FIRST_NETWORK,
    FORMAT,
    MODEL,
    PENDING_CONFIG,
    SOURCE_TO_TARGET,
    STATE_FOLDER,
    TARGET_TO_SOURCE,
    Architecture,
    Config,
    Json,
    find_architectures,
    vocabulary_file,
)
from moses_rnn.networks.subwords import FILE as SUBWORDS
from moses_rnn.networks.subwords import Subwords
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.options import PretrainedOptions, is_pretrained

MAX_TEXT = 1 << 28  # bytes of config.json or a vocabulary
MAX_HEADER = 1 << 20  # bytes of a safetensors header: names and shapes


def save_model(folder: Path, model: Model) -> None:
    """Write a model folder, replacing the one there.

    config.json has the hashes of the other files. It is first written under another name, so that `finish_saving` can
    repair a save that was killed between the renames.
    """
    kind, record = model.architecture, asdict(model.config)
    if (kind.key, kind.format) != (FIRST_NETWORK, FORMAT):
        record = {"network": kind.key, **record}
    if kind.reads_sources or kind.format > FORMAT:
        record["direction"] = model.direction
    if model.right_to_left:
        record["right_to_left"] = True
    folder.mkdir(parents=True, exist_ok=True)
    contents = {vocabulary_file(side): model.vocabularies[side].to_bytes() for side in kind.sides}
    if isinstance(model.target_vocabulary, Subwords):
        record["subwords"], contents[SUBWORDS] = True, model.target_vocabulary.model
    weights = model.network.state_dict().items()
    contents[MODEL] = save_tensors({name: w.detach().to("cpu", torch.float32).contiguous() for name, w in weights})
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    record = {"format": kind.format, **record, "files": hashes, "provenance": dict(model.provenance)}
    replace_file(folder / PENDING_CONFIG, (json.dumps(record, indent=2) + "\n").encode())
    for name, data in contents.items():
        replace_file(folder / name, data)
    rename_over(folder / PENDING_CONFIG, folder / CONFIG)
    sync_directory(folder)


def finish_saving(folder: Path, architecture: Architecture) -> None:
    """Complete a save that was killed after its last file but before its config; otherwise, do nothing."""
    pending = folder / PENDING_CONFIG
    if pending.exists():
        try:
            _read_model(pending, [architecture])
        except CheckpointError:
            pending.unlink()
        else:
            rename_over(pending, folder / CONFIG)


def read_shortlist(path: Path) -> Vocabulary:
    """Read a vocabulary file, or the vocabulary of a model folder for the table's target language."""
    file = path
    kind: Callable[[bytes], Vocabulary] = Vocabulary.from_bytes
    if path.is_dir():
        record = read_record(path)
        file = path / vocabulary_file("source" if record.get("direction") == TARGET_TO_SOURCE else "target")
        if record.get("subwords"):
            file, kind = path / SUBWORDS, Subwords
    try:
        return kind(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: expected a vocabulary, found: {error.strerror}") from error
    except CheckpointError as error:
        raise InputError(f"{file}: {error.message}", advice=error.advice) from error


def model_files(folder: Path) -> list[str]:
    """Return all files that a model folder of any kind may have."""
    return sorted({str(folder / name) for row in find_architectures() for name in (*row.files, SUBWORDS)})


def open_model(
    folder: Path | str,
    *,
    direction: str | None = None,
    of_pairs: bool = True,
    pretrained: PretrainedOptions | None = None,
) -> Model:
    """Read and check a model folder; `of_pairs` demands a network of pairs, `direction` that direction.

    A training run may be replacing the files, or may have died between its last two renames. Then the pending config is
    the one that fits; if it has just been renamed, the second try of config.json succeeds. With options `pretrained`,
    the folder may also be a pretrained model; see `open_pretrained`.
    """
    if pretrained and is_pretrained(folder):
        return open_pretrained(folder, pretrained)
    folder = Path(folder)
    check_folder(folder)
    problems = []
    for name in (CONFIG, PENDING_CONFIG, CONFIG):
        try:
            model = _read_model(folder / name, find_architectures())
            break
        except CheckpointError as error:
            problems.append(error)
    else:
        raise problems[0]
    if of_pairs:
        check_reads_sources(model)
    if direction not in (None, model.direction):
        raise CheckpointError(
            f"{folder}: expected a model of direction {direction}, found {model.direction}",
            advice="--model takes models from moses-rnn-train, --inverse-model those from moses-rnn-train --inverse.",
        )
    return model


def check_reads_sources(model: Model) -> None:
    """Raise CheckpointError for a language model."""
    if not model.architecture.reads_sources:
        found = f"found: {model.architecture.title}"
        raise CheckpointError(
            f"{model.folder}: expected a network of sources and targets, {found}",
            advice=(
                "moses-rnn cslm perplexity, moses-rnn nbest add --add and moses_rnn.load_language_model take language "
                "models."
            ),
        )


def check_learned(model: Model) -> None:
    """Raise CheckpointError if a network predicts targets no better than word frequencies, or ranks by chance."""
    learned, rival, measure = model.held_out_cost, model.baseline_cost, model.architecture.measure
    if learned is None or rival is None or learned < rival:
        return
    command = "moses-rnn nmt train" if model.learned_sentences else "moses-rnn-train"
    raise CheckpointError(
        f"{model.folder}: expected a model that costs less than {measure.rival}'s {rival:.2f} {measure.unit}, "
        f"found {learned:.2f}",
        advice=(
            f"It has learned nothing useful. Train longer (the same {command} with a larger --max-minutes or "
            "--max-epochs continues), or\ntrain again with another --learning-rate; "
            "--allow-misfit scores with it anyway."
        ),
    )


def check_shortlist(model: Model) -> None:
    """Raise CheckpointError for a language model without a shortlist, which leaves no ``<unk>`` for words to share."""
    if model.of_subwords:
        raise CheckpointError(
            f"{model.folder}: expected a language model of words, found one of subwords",
            advice="It gives every word a probability of its own. Leave out --lm, --rare and --backoff.",
        )


def open_language_model(folder: Path | str) -> Model:
    """Read and check the folder of a language model."""
    model = open_model(folder, of_pairs=False)
    if model.architecture.reads_sources:
        takes = "moses-rnn-score, moses-rnn nbest add and moses_rnn.load take networks of sources and targets."
        found = f"found: {model.architecture.title}"
        raise CheckpointError(f"{model.folder}: expected a language model, {found}", advice=takes)
    return model


def _read_model(path: Path, architectures: Collection[Architecture]) -> Model:
    """Read the model of a config.json, which may have another name; the other files are beside it."""
    folder, record = path.parent, read_json(path)
    architecture = find_architecture(path, record, architectures)
    try:
        config = _config(record, architecture)
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error
    with torch.device("meta"):  # shapes only, no memory and no random numbers
        network = architecture.module(config, seed=None)
    shapes = network.state_dict()
    subwords = [SUBWORDS] if record.get("subwords") else []
    files = {name: read_file(folder / name) for name in (*architecture.files[2:], *subwords)}  # vocabularies
    files[MODEL] = read_file(folder / MODEL, 4 * sum(map(torch.numel, shapes.values())) + MAX_HEADER)
    hashes = check_hashes(path, record, files)
    vocabularies = {side: read_vocabulary(folder, record, side, files) for side in architecture.sides}
    if SUBWORDS in files:
        vocabularies = dict.fromkeys(vocabularies, read_subwords(folder, files[SUBWORDS], vocabularies))
    title = f"{getattr(config, 'variant', '')} {architecture.title}".strip()
    network.load_state_dict(read_tensors(folder / MODEL, files[MODEL], shapes, title), assign=True)
    direction, provenance = record.get("direction", SOURCE_TO_TARGET), record.get("provenance", {})
    network = network.eval().requires_grad_(False)
    right_to_left = record.get("right_to_left", False)
    return Model(architecture, network, vocabularies, direction, provenance, hashes, folder, right_to_left)


def _config(record: Json, architecture: Architecture) -> Config:
    """Check config.json and return the network's part of it; raise ValueError if a key is invalid."""
    direction = record.get("direction", SOURCE_TO_TARGET if architecture.format == FORMAT else None)
    directions = DIRECTIONS if architecture.reads_sources else DIRECTIONS[:1]
    if direction not in directions:
        expected = " or ".join(map(repr, directions))
        raise ValueError(f"expected direction to be {expected}, found {shown_value(direction)}")
    without_rare = not record.get("rare")
    for key, may_differ, kind in (
        ("right_to_left", without_rare and architecture.reads_sources, "network of sources and targets"),
        ("subwords", without_rare, "network"),
    ):
        if type(differs := record.get(key, False)) is not bool or (differs and not may_differ):
            expected = f"false, or true for a {kind} without rare words"
            raise ValueError(f"expected {key} to be {expected}, found {shown_value(differs)}")
    for key, expected in (("files", "hashes by file name"), ("provenance", "what training recorded, by name")):
        if not isinstance(record.get(key, {}), dict):
            raise ValueError(f"expected {key} to be {expected}, found {shown_value(record[key])}")  # noqa: TRY004
    config = architecture.config(**{key.name: record.get(key.name) for key in fields(architecture.config)})
    if (rare := getattr(config, "rare", None)) is not None:
        RareWords.from_record(rare)
    return config


# --- files of a folder ------------------------------------------------------------------------------------------------


def read_file(path: Path, most: int = MAX_TEXT) -> bytes:
    """Read a regular file of at most `most` bytes."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            found = number_of(status.st_size, "byte") if stat.S_ISREG(status.st_mode) else "something else"
            raise CheckpointError(f"{path}: expected a file of at most {most:,} bytes, found {found}")
        return path.read_bytes()
    except OSError as error:
        stopped = "Training stopped before its first evaluation. The same command continues."
        is_unfinished = (path.parent / STATE_FOLDER).is_dir() and not (path.parent / MODEL).exists()
        advice = stopped if is_unfinished else MADE_BY
        raise CheckpointError(
            f"{path}: expected a file of a model folder, found: {error.strerror}",
            advice=advice if path.name == CONFIG and isinstance(error, FileNotFoundError) else "",
        ) from error


def read_json(path: Path) -> Json:
    """Read a config.json without checking its keys."""
    try:
        record = parse_json(read_file(path))
    except ValueError as error:
        raise CheckpointError(f"{path}: expected JSON, found: {error}") from error
    if not isinstance(record, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(record).__name__}")
    return record


def read_record(folder: Path) -> Json:
    """Read a folder's config.json, or the pending one that a killed save left, without checking its keys."""
    check_folder(folder)
    path, pending = folder / CONFIG, folder / PENDING_CONFIG
    return {"network": FIRST_NETWORK, **read_json(pending if pending.exists() and not path.exists() else path)}


def find_architecture(path: Path, record: Json, architectures: Collection[Architecture]) -> Architecture:
    """Return the architecture of a config.json's network and format."""
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
    """Return the files' hashes; raise CheckpointError if they differ from config.json's, which may lack all of them."""
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
                advice="The file was changed or damaged: copy the model again, or train it again.",
            )
    return hashes


def read_vocabulary(folder: Path, record: Json, side: str, files: Mapping[str, bytes]) -> Vocabulary:
    """Parse a side's vocabulary; raise CheckpointError if its size differs from config.json's."""
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


def read_subwords(folder: Path, data: bytes, vocabularies: Mapping[str, Vocabulary]) -> Vocabulary:
    """Parse the sentencepiece model; raise CheckpointError if the vocabularies do not list its pieces."""
    try:
        subwords = Subwords(data)
    except CheckpointError as error:
        raise CheckpointError(f"{folder / SUBWORDS}: {error.message}", advice=error.advice) from error
    for side, vocabulary in vocabularies.items():
        if vocabulary.words != subwords.words:
            file = folder / vocabulary_file(side)
            raise CheckpointError(f"{file}: expected the pieces of {SUBWORDS} in their order, found others")
    return subwords


def read_tensors(path: Path, data: bytes, shapes: Mapping[str, Tensor], title: str) -> dict[str, Tensor]:
    """Load weights; raise CheckpointError unless they are finite float32 tensors of the given shapes."""
    try:
        tensors = load_tensors(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a number type that torch lacks
        pickled = data.startswith((b"PK\x03\x04", b"\x80", b"\x93NUMPY"))
        found = "a pickle-based file, which is never read" if pickled else f"{error}"
        raise CheckpointError(f"{path}: expected safetensors, found: {found}") from error
    if tensors.keys() != shapes.keys():
        wrong = str(sorted(tensors.keys() ^ shapes.keys()))[:200]
        raise CheckpointError(
            f"{path}: expected the tensors of this network ({title}), found missing or unknown ones: {wrong}"
        )
    for name, tensor in tensors.items():
        shape, given = tuple(shapes[name].shape), tuple(tensor.shape)
        if given != shape or tensor.dtype != torch.float32:
            raise CheckpointError(f"{path}: expected {name} to be float32 {shape}, found {tensor.dtype} {given}")
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{path}: expected finite weights, found NaN or infinity in {name}")
    return tensors
