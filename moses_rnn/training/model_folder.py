"""A training run in its folder: one at a time, the best weights so far, the log, nothing left of a false start."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from moses_rnn.errors import CheckpointError, OutputError, writing
from moses_rnn.files.outputs import open_locked
from moses_rnn.models.folders import CONFIG, Kind, finish_saving
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.state import check_choices
from moses_rnn.training.trainer import Observer, Progress, Task, Trainer

STATE_FOLDER = "training"  # inside the model folder; only needed to go on training
STATE_FILE = "state.safetensors"
LOG_FILE = "log.jsonl"
LOCK_FILE = "lock"
ARRAYS = ("source.tokens", "source.lengths", "target.tokens", "target.lengths", "text.tokens", "held-out.tokens")
STATE_FILES = (STATE_FILE, LOG_FILE, *ARRAYS)


class FolderObserver(Observer, Protocol):
    """Who is told how a run goes."""

    def starting(self, trainer: Trainer) -> None:
        """Hear that the first step is next."""


class Prepared(NamedTuple):
    """What a run needs to begin."""

    task: Task
    save: Callable[[Mapping[str, Any]], None]  # writes the checkpoint, given what is to be remembered of the run


def train_in(
    folder: Path,
    kind: Kind,
    prepare: Callable[[Path], Prepared],
    config: TrainingConfig,
    choices: Mapping[str, Any],
    observer: FolderObserver,
    should_stop: Callable[[], bool],
) -> Progress:
    """Train in a model folder, or go on with a run that was stopped there.

    Args:
        folder: after every evaluation it holds the best weights so far.
        kind: of the network.
        prepare: given the folder for the run's arrays, builds network and task.
        config: of the training.
        choices: sizes and options that a run which is continued must share; refused before anything is prepared.
        observer: hears of every step and evaluation.
        should_stop: asked after every step.

    Raises:
        CheckpointError: the folder holds a run with other choices, or a model without its run.
        OutputError: another run is training there.
        MosesRnnError: the training diverged.
    """
    state_folder = folder / STATE_FOLDER
    state_folder.mkdir(parents=True, exist_ok=True)
    lock = open_locked(state_folder / LOCK_FILE)
    if lock is None:
        raise OutputError(f"{folder}: is being trained by another run")
    with lock:
        try:
            finish_saving(folder, kind)
            _check_state(folder)
            check_choices(state_folder / STATE_FILE, choices)
            prepared = prepare(state_folder)
            trainer = Trainer(prepared.task, config, state_folder / STATE_FILE)
            observer.starting(trainer)
            return trainer.run(_Record(folder, prepared, observer), should_stop)
        except BaseException:
            if not (state_folder / STATE_FILE).exists() and not (folder / CONFIG).exists():
                _remove_beginnings(folder)
            raise


def _check_state(folder: Path) -> None:
    if (folder / CONFIG).exists() and not (folder / STATE_FOLDER / STATE_FILE).exists():
        raise CheckpointError(
            f"{folder}: expected no model, or one with its training state, found a model alone\n"
            "  --restart replaces it; --model names another folder."
        )


def _remove_beginnings(folder: Path) -> None:
    """Leave nothing of a run that had nothing to save."""
    state_folder = folder / STATE_FOLDER
    for name in (*STATE_FILES, LOCK_FILE):
        (state_folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # somebody else has put something there
        state_folder.rmdir()
        folder.rmdir()


def remove_run(folder: Path, kind: Kind) -> None:
    """Remove a model and its training state: the files that this package writes, and no others.

    Raises:
        OutputError: it is no model folder, or another run is training there.
    """
    state_folder = folder / STATE_FOLDER
    if not (state_folder / LOCK_FILE).exists() and not all((folder / name).exists() for name in kind.files()):
        raise OutputError(f"{folder}: is no model folder; --restart does not remove it")
    if state_folder.is_dir():
        lock = open_locked(state_folder / LOCK_FILE)
        if lock is None:
            raise OutputError(f"{folder}: is being trained by another run")
        lock.close()
    for path in [state_folder / name for name in STATE_FILES] + [folder / name for name in kind.files()]:
        path.unlink(missing_ok=True)


class _Record:
    """Keeps the best weights and the log, then passes the news on."""

    def __init__(self, folder: Path, prepared: Prepared, observer: FolderObserver) -> None:
        self._log = folder / STATE_FOLDER / LOG_FILE
        self._save = prepared.save
        self._observer = observer
        self.stepped = observer.stepped

    def evaluated(self, progress: Progress, is_best: bool) -> None:
        if is_best:
            self._save({"history": progress.history, "skipped_steps": progress.skipped_steps})
        with writing(self._log), open(self._log, "a", encoding="utf-8", opener=_no_link) as log:
            log.write(json.dumps({**progress.history[-1], "best": is_best}) + "\n")
        self._observer.evaluated(progress, is_best)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
