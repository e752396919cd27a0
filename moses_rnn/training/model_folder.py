"""A model folder while a run trains in it: one run at a time, its state and log, the best weights so far."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from moses_rnn.errors import CheckpointError, OutputError, shown_value
from moses_rnn.files.outputs import open_locked, writing
from moses_rnn.networks.config import CONFIG, Architecture, vocabulary_file
from moses_rnn.scorers.open import Model, finish_saving, read_record, save_model
from moses_rnn.training.corpus import POSITIONS, RECORD
from moses_rnn.training.state import Progress, RunState, check_choices, load_state, save_state

STATE_FOLDER = "training"  # inside the model folder; only needed to continue training
STATE_FILE = "state.safetensors"
LOG_FILE = "log.jsonl"
LOCK_FILE = "lock"
ARRAYS = ("source.tokens", "source.lengths", "target.tokens", "target.lengths", "text.tokens", "held-out.tokens")
MAPPED = (RECORD, "source.words", "target.words", *POSITIONS)  # beside these arrays, by several processes
STATE_FILES = (STATE_FILE, LOG_FILE, *ARRAYS, *MAPPED)


class ModelFolder:
    """A folder in which a run may train while the `with` statement lasts; a false start leaves nothing behind.

    Set `checkpoint` before training: it is what is written after every best evaluation, its provenance together with
    the run's history. Without one only the state is kept.

    Args:
        path: of the folder, which is made.
        kind: of the network.
        restart: whether to remove first what a run left there.
        leads: whether this is the process that writes; another one of the run only reads the state.
    """

    def __init__(self, path: Path, kind: Architecture, *, restart: bool = False, leads: bool = True) -> None:
        self.path = path
        self.arrays = path / STATE_FOLDER  # folder for the run's arrays
        self.checkpoint: Model | None = None
        self._kind = kind
        self._restart = restart
        self._leads = leads
        self._state = self.arrays / STATE_FILE
        self._log = self.arrays / LOG_FILE
        self._lock: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Take the folder for this run.

        Raises:
            OutputError: it cannot be made or removed, or another run is training there.
            CheckpointError: it holds a model without its run.
        """
        if not self._leads:
            return self
        if self._restart and self.path.exists():
            self._remove_run()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.arrays.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be made: {error.strerror}") from error
        was_locked_before = (self.arrays / LOCK_FILE).exists()
        self._lock = self._locked()
        try:
            finish_saving(self.path, self._kind)
            self._refuse_a_model_alone()
        except BaseException:
            if not was_locked_before:
                self._remove_lock()
            self._lock.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        """Let other runs have it."""
        if not self._leads:
            return
        for name in MAPPED:
            (self.arrays / name).unlink(missing_ok=True)
        if kind and not self._state.exists() and not (self.path / CONFIG).exists():
            self._remove_beginnings()
        if self._lock is not None:
            self._lock.close()

    def check_choices(self, choices: Mapping[str, Any]) -> None:
        """Refuse to continue a run of another network or with other choices; see `state.check_choices`."""
        if not self._leads:
            return
        network = self._kind.key
        with contextlib.suppress(CheckpointError):  # there is no model yet, or a damaged one
            network = read_record(self.path)["network"]
        if network != self._kind.key:
            raise CheckpointError(
                f"{self.path}: expected a model of network {self._kind.key!r}, found {shown_value(network)}",
                advice="--model names another folder; --restart would remove what is there.",
            )
        check_choices(self._state, choices)

    def restore(self, state: RunState) -> bool:
        """Restore what was saved; see `load_state`."""
        return load_state(self._state, state)

    def save(self, state: RunState) -> None:
        """Save the state from which a later run continues; see `save_state`."""
        if self._leads:
            save_state(self._state, state)

    def record(self, progress: Progress, *, is_best: bool) -> None:
        """Keep the figures of the last evaluation in the log, and the weights if they are the best so far."""
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

    def _refuse_a_model_alone(self) -> None:
        if (self.path / CONFIG).exists() and not self._state.exists():
            raise CheckpointError(
                f"{self.path}: expected no model, or one with its training state, found a model alone\n"
                "  --restart replaces it; --model names another folder."
            )

    def _remove_beginnings(self) -> None:
        """Leave nothing of a run that had nothing to save."""
        for name in STATE_FILES:
            (self.arrays / name).unlink(missing_ok=True)
        self._remove_lock()

    def _remove_lock(self) -> None:
        (self.arrays / LOCK_FILE).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # other files are there
            self.arrays.rmdir()
            self.path.rmdir()

    def _remove_run(self) -> None:
        """Remove a model and its training state: the files that this package writes, and no others."""
        files = [self.path / name for name in self._kind.files]
        if not (self.arrays / LOCK_FILE).exists() and not all(path.exists() for path in files):
            raise OutputError(f"{self.path}: is not a model folder; --restart does not remove it")
        if self.arrays.is_dir():
            self._locked().close()
        if (self.path / CONFIG).exists():  # of a network of another kind perhaps
            files += [self.path / vocabulary_file(side) for side in ("source", "target")]
        for path in [*(self.arrays / name for name in STATE_FILES), *files]:
            path.unlink(missing_ok=True)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
