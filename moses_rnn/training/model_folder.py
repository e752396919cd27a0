"""A model folder during training: it holds one run at a time, its state and log, and the best weights so far.

The state lets a killed run continue: one safetensors file, no pickle.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from moses_rnn.errors import CheckpointError, OutputError, shown_value
from moses_rnn.files.outputs import open_locked, replace_file, writing
from moses_rnn.models.model import Model
from moses_rnn.models.open import finish_saving, open_model, read_record, save_model
from moses_rnn.networks.config import CONFIG, PENDING_CONFIG, STATE_FOLDER, Architecture, vocabulary_file
from moses_rnn.networks.subwords import FILE as SUBWORDS
from moses_rnn.training.corpus import POSITIONS, RECORD


@dataclass
class Progress:
    """The progress of a run, which is saved and restored."""

    epoch: int = 0
    batch: int = 0  # within the epoch
    examples: int = 0  # seen in all epochs
    tokens: int = 0  # predicted words and end symbols in all epochs
    steps: int = 0
    clipped_steps: int = 0
    skipped_steps: int = 0  # the gradient was not finite
    skipped_in_a_row: int = 0  # most recent steps
    seconds: float = 0.0
    examples_at_evaluation: int = 0
    best: float = math.inf  # held-out cost
    without_gain: int = 0  # evaluations since the last gain
    learning_rate: float = 0.0
    finished: str = ""  # the reason, once finished
    history: list[dict[str, float]] = field(default_factory=list)


class RunState(NamedTuple):
    """Everything that determines how a run continues."""

    identity: Mapping[str, Any]  # must be equal in a run that continues from here
    model: nn.Module  # its weights are saved
    optimiser: torch.optim.Optimizer  # its accumulators are saved
    progress: Progress
    average: Mapping[str, Tensor]  # the averaged weights by name; empty if there are none


STATE_FILE = "state.safetensors"
LOG_FILE = "log.jsonl"
LOCK_FILE = "lock"
RESTARTING = "restarting"  # while an earlier run is there that this one will replace
ARRAYS = ("source.tokens", "source.lengths", "target.tokens", "target.lengths", "text.tokens", "held-out.tokens")
MAPPED = (RECORD, "source.words", "target.words", *POSITIONS)  # further files that several processes share
STATE_FILES = (STATE_FILE, LOG_FILE, RESTARTING, *ARRAYS, *MAPPED)


def is_restarting(path: Path) -> bool:
    """Whether a run with `force` has not yet replaced the earlier one."""
    return (path / STATE_FOLDER / RESTARTING).exists()


class ModelFolder:
    """A folder for a training run, as a context manager; a run that fails before its first save leaves nothing.

    Set `checkpoint` before training: it is written after every best evaluation, with the run's history. A process that
    does not lead reads the state but writes nothing.
    """

    def __init__(self, path: Path, kind: Architecture, *, force: bool = False, leads: bool = True) -> None:
        self.path = path
        self.arrays = path / STATE_FOLDER  # folder for the run's arrays
        self.checkpoint: Model | None = None
        self._kind = kind
        self._force = force
        self._leads = leads
        self._state = self.arrays / STATE_FILE
        self._log = self.arrays / LOG_FILE
        self._lock: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Create and lock the folder."""
        if not self._leads:
            return self
        if self._force and self.path.exists():
            self._refuse_other_files()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.arrays.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be made: {error.strerror}") from error
        was_locked_before = (self.arrays / LOCK_FILE).exists()
        self._lock = self._locked()
        try:
            if self._force:
                (self.arrays / RESTARTING).touch()
                self._remove(ARRAYS)  # perhaps of another kind of material; each start writes its own
            else:
                if not was_locked_before:
                    self._refuse_to_replace()
                self._remove([RESTARTING])
                finish_saving(self.path, self._kind)
                self._refuse_a_model_alone()
        except BaseException:
            if not was_locked_before:
                self._remove_lock()
            self._lock.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        """Remove the run's arrays, which each start writes anew, and release the folder for other runs."""
        if not self._leads:
            return
        self._remove((*ARRAYS, *MAPPED))
        if kind and not self._state.exists() and not (self.path / CONFIG).exists():
            self._remove(STATE_FILES)
            self._remove_lock()
        if self._lock is not None:
            self._lock.close()

    def check_choices(self, choices: Mapping[str, Any]) -> None:
        """Raise CheckpointError if the folder's run has another network or other choices; ignore a damaged state."""
        if self._force or not self._leads:
            return
        network = self._kind.key
        with contextlib.suppress(CheckpointError):  # a damaged model
            network = read_record(self.path)["network"] if (self.path / CONFIG).exists() else network
        if network != self._kind.key:
            raise CheckpointError(
                f"{self.path}: expected network to be {self._kind.key!r}, found {shown_value(network)}",
                advice="Name another folder with --model; --force would delete this model.",
            )
        try:
            with safe_open(self._state, framework="pt") as file:
                saved = dict(json.loads(file.metadata()["identity"]))
        except (OSError, SafetensorError, TypeError, KeyError, ValueError, RecursionError):
            return
        _check_identity(self._state, {key: saved.get(key) for key in choices}, choices)

    def save(self, state: RunState) -> None:
        """Write the state atomically: a run killed while writing leaves the previous state.

        With `force`, the first state replaces the earlier run.
        """
        if not self._leads:
            return
        names = [name for name, _ in state.model.named_parameters()]
        tensors = {f"weights.{name}": tensor.detach() for name, tensor in state.model.state_dict().items()}
        tensors |= {f"average.{name}": tensor for name, tensor in state.average.items()}
        for index, values in state.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{names[index]}.{key}": value for key, value in values.items()}
        on_cpu = {name: tensor.cpu().contiguous().clone() for name, tensor in tensors.items()}
        metadata = {
            "progress": json.dumps(dataclasses.asdict(state.progress)),
            "identity": json.dumps(dict(state.identity)),
        }
        metadata["sha256"] = _digest(metadata, on_cpu)
        replace_file(self._state, save_tensors(on_cpu, metadata))
        if self._force:
            self._remove_run()
            self._force = False

    def restore(self, state: RunState) -> bool:
        """Restore the saved state in place; return False if there is none, or with `force`."""
        if self._force or not self._state.exists():
            return False
        try:
            with safe_open(self._state, framework="pt") as file:
                metadata = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, no mapping
            saved_identity, saved_progress = (dict(json.loads(metadata[key])) for key in ("identity", "progress"))
            _check_digest(metadata, tensors)
            _check_identity(self._state, saved_identity, state.identity)
            _restore(state, tensors, Progress(**saved_progress))
        except (SafetensorError, TypeError, KeyError, ValueError, RuntimeError, RecursionError) as error:
            raise CheckpointError(
                f"{self._state}: expected a saved training state, found: {shown_value(str(error))}",
                advice="--force starts over; the best model so far is complete and can score.",
            ) from error
        if self.checkpoint is not None and state.progress.best < math.inf:
            self._check_model()
        self._forget_later_evaluations(state.progress)
        return True

    def record(self, progress: Progress, *, is_best: bool) -> None:
        """Log the last evaluation, and save the weights if they are the best so far."""
        if not self._leads:
            return
        if is_best and self.checkpoint is not None:
            run = {"history": progress.history, "skipped_steps": progress.skipped_steps}
            provenance = {**self.checkpoint.provenance, **run}
            save_model(self.path, replace(self.checkpoint, provenance=provenance))
        with writing(self._log), open(self._log, "a", encoding="utf-8", opener=_no_link) as log:
            log.write(json.dumps({**progress.history[-1], "best": is_best}) + "\n")

    def _locked(self) -> BinaryIO:
        lock = open_locked(self.arrays / LOCK_FILE)
        if lock is None:
            raise OutputError(f"{self.path}: is being trained by another run")
        return lock

    def _check_model(self) -> None:
        """Raise CheckpointError if the best model so far, which a restored run may keep, is lost or damaged."""
        try:
            open_model(self.path, of_pairs=False)
        except CheckpointError as error:
            error.advice = "The training state is complete, but its best model is not. --force starts over."
            raise

    def _refuse_a_model_alone(self) -> None:
        if (self.path / CONFIG).exists() and not self._state.exists():
            raise CheckpointError(
                f"{self.path}: expected no model, or one with its training state, found a model without it\n"
                "  Replace it with --force, or name another folder with --model."
            )

    def _refuse_to_replace(self) -> None:
        """Raise OutputError if a folder without a run has files that a run would replace or remove."""
        if (self.path / CONFIG).exists() or self._state.exists():
            return
        names = [self.path / name for name in (*self._kind.files, SUBWORDS)]
        names += [self.arrays / name for name in STATE_FILES]
        if there := next((path for path in names if path.exists()), None):
            raise OutputError(
                f"{there}: already exists, and training would replace it", advice="Name another folder with --model."
            )

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self.arrays / name).unlink(missing_ok=True)

    def _remove_lock(self) -> None:
        (self.arrays / LOCK_FILE).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # other files are there
            self.arrays.rmdir()
            self.path.rmdir()

    def _forget_later_evaluations(self, progress: Progress) -> None:
        """Remove logged evaluations that the state lacks: the run was killed before it saved them."""
        if self._leads and self._log.exists():
            lines = self._log.read_bytes().splitlines(keepends=True)
            if len(lines) > len(progress.history):
                replace_file(self._log, b"".join(lines[: len(progress.history)]))

    def _refuse_other_files(self) -> None:
        if not self.path.is_dir():
            raise OutputError(f"{self.path}: is not a folder")
        is_ours = (self.arrays / LOCK_FILE).exists() or all((self.path / name).exists() for name in self._kind.files)
        if not is_ours and any(self.path.iterdir()):
            raise OutputError(f"{self.path}: is not a model folder; --force does not delete it")

    def _remove_run(self) -> None:
        """Remove the model and log of the earlier run: only files that this package writes."""
        files = {*self._kind.files, PENDING_CONFIG}
        if (self.path / CONFIG).exists():  # perhaps of another kind of network
            files |= {vocabulary_file("source"), vocabulary_file("target"), SUBWORDS}
        for name in files:
            (self.path / name).unlink(missing_ok=True)
        self._remove((LOG_FILE, RESTARTING))


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _restore(state: RunState, tensors: dict[str, Tensor], progress: Progress) -> None:
    state.model.load_state_dict(_with_prefix(tensors, "weights."))
    for name, tensor in state.average.items():
        tensor.copy_(tensors[f"average.{name}"])
    optimiser, names = state.optimiser.state_dict(), (name for name, _ in state.model.named_parameters())
    optimiser["state"] = {
        index: values for index, name in enumerate(names) if (values := _with_prefix(tensors, f"optimiser.{name}."))
    }
    state.optimiser.load_state_dict(optimiser)
    vars(state.progress).update(vars(progress))


def _check_digest(metadata: dict[str, str], tensors: dict[str, Tensor]) -> None:
    digest = _digest(metadata, tensors)
    if metadata["sha256"] != digest:
        raise ValueError(f"SHA-256 {digest} of its contents, not {metadata['sha256'][:64]}")


def _digest(metadata: dict[str, str], tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 of everything; safetensors has no checksum."""
    digest = hashlib.sha256(f"{metadata['progress']}\n{metadata['identity']}\n".encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _check_identity(path: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    keys = {**wanted, **saved}  # a network of another format has other keys
    values = {key: (saved.get(key), wanted.get(key)) for key in keys}
    differing = [f"{key} {before!r}, now {now!r}" for key, (before, now) in values.items() if before != now]
    if differing:
        raise CheckpointError(
            f"{path}: expected the input and options that this training started with, found others: "
            f"{'; '.join(differing)}",
            advice="Use the same ones to resume, or --force (or another --model) to start over.",
        )


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
