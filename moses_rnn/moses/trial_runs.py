"""Runs the steps of trials, one after the other; what fails takes with it only what needs it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from moses_rnn.errors import OutputError, Stopped, writing
from moses_rnn.files.outputs import open_locked
from moses_rnn.moses.trial_steps import SETTINGS_FILE, Step

LOG = "make.log"
LOCK = ".lock"
SECONDS_BETWEEN_LOOKS = 0.5
LINES_OF_A_FAILURE = 10
Failures = dict[Path, str]  # by the folder of a step, the name of the one that failed


@contextlib.contextmanager
def locked(work: Path) -> Iterator[BinaryIO]:
    """The folder of all trials, for one run alone.

    The lock is handed on to make and all that it starts, so that it outlives a run that was killed, until they end.

    Raises:
        OutputError: the folder cannot be made, or another run is at work there.
    """
    with writing(work):
        work.mkdir(parents=True, exist_ok=True)
        lock = open_locked(work / LOCK)
    if lock is None:
        raise OutputError(
            f"{work}: another run is at work there, or what it had started",
            advice="Wait until it ends. What is running: ps -ef | grep moses",
        )
    with lock:
        yield lock


class StepRunner:
    """Runs steps.

    Args:
        make: words to the command line of make.
        lock: is kept open in whatever is started.
        looked: called several times a second while a step runs.
        should_stop: whether to stop.
    """

    def __init__(
        self,
        make: Callable[[Sequence[str]], list[str]],
        lock: BinaryIO,
        looked: Callable[[], None],
        should_stop: Callable[[], bool],
    ) -> None:
        self._make, self._lock, self._looked, self._should_stop = make, lock, looked, should_stop
        self.failures: Failures = {}

    def run(self, step: Step) -> str | None:
        """Run a step, unless one that it needs has failed.

        Returns:
            what went wrong in it; None if nothing did, or if it could not run.

        Raises:
            OutputError: its folder cannot be made.
            Stopped: as requested; the same run continues later.
        """
        if any(folder in self.failures for folder in step.needs):
            self.failures[step.folder] = next(self.failures[f] for f in step.needs if f in self.failures)
            return None
        failure = self._made(step)
        if failure is not None:
            self.failures[step.folder] = step.name
        return failure

    def _made(self, step: Step) -> str | None:
        with writing(step.folder):
            step.folder.mkdir(parents=True, exist_ok=True)
            (step.folder / SETTINGS_FILE).write_text(json.dumps(step.settings, indent=2) + "\n", encoding="utf-8")
        path = step.folder / LOG
        with writing(path), path.open("ab") as log:
            code = self._code_of(self._make(["--silent", *step.words]), log)
        if code == 0:
            return None
        end = path.read_bytes().decode("utf-8", "replace").rstrip("\n").split("\n")[-LINES_OF_A_FAILURE:]
        return "\n".join([f"{step.name}: make ended with code {code}; the whole log: {path}", *end])

    def _code_of(self, command: list[str], log: BinaryIO) -> int:
        """Run a command in a process group of its own, and end it with all that it started if asked to stop."""
        with subprocess.Popen(  # noqa: S603, the pipeline
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[self._lock.fileno()],
        ) as process:
            while True:
                try:
                    code = process.wait(SECONDS_BETWEEN_LOOKS)
                except subprocess.TimeoutExpired:
                    self._looked()
                    if self._should_stop():
                        _interrupt(process)
                        raise Stopped("stopped; the same command continues") from None
                else:
                    if code and self._should_stop():
                        raise Stopped("stopped; the same command continues")
                    return code


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """What Ctrl-C does: make and all programs get one SIGINT each, upon which networks are saved."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    process.wait()
