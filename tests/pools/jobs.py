"""Jobs for workers in other processes: small, and some of them deadly."""

import os
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path


@dataclass(frozen=True)
class Doubling:
    """Doubles numbers; where it began is noted in a file beside others."""

    folder: str = ""
    seconds: float = 0.0

    def begin(self, place):
        if self.folder:
            (Path(self.folder) / str(os.getpid())).write_text(place)

        def work(item):
            time.sleep(self.seconds)
            return 2 * item

        return work


@dataclass(frozen=True)
class Dying:
    """Kills its process over an item, each time, or only the first time."""

    over: int
    folder: str
    always: bool = False

    def begin(self, place):
        def work(item):
            died = Path(self.folder) / "died"
            if item == self.over and (self.always or not died.exists()):
                died.write_text("")
                os.kill(os.getpid(), signal.SIGKILL)
            return 2 * item

        return work


@dataclass(frozen=True)
class DyingOverEach:
    """Kills its process over every item, so many times each."""

    times: int
    folder: str

    def begin(self, place):
        def work(item):
            deaths = Path(self.folder) / str(item)
            died = len(deaths.read_text()) if deaths.exists() else 0
            if died < self.times:
                deaths.write_text("x" * (died + 1))
                os.kill(os.getpid(), signal.SIGKILL)
            return 2 * item

        return work


@dataclass(frozen=True)
class DyingMidAnswer:
    """Kills its process the first time with half of an answer's bytes written, which is more than a pipe holds."""

    folder: str

    def begin(self, place):
        def work(item):
            died = Path(self.folder) / "died"
            if not died.exists():
                died.write_text("")
                Connection._send = write_half_and_die
            return bytes([item]) * 1_000_000

        return work


def write_half_and_die(connection, buf, write=os.write):
    """In the place of `multiprocessing.connection.Connection._send`."""
    half = memoryview(buf)[: len(buf) // 2]
    while half:
        half = half[write(connection.fileno(), half) :]
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Unanswerable:
    """Answers what cannot be sent, or raises it."""

    raises: bool

    def begin(self, place):
        def work(item):
            if self.raises:
                raise Local(item)
            return lambda: item

        class Local(Exception):
            """Cannot be pickled: nobody finds it by its name."""

        return work


@dataclass(frozen=True)
class Failing:
    """Cannot begin, or fails at an item."""

    error: Exception
    at: int | None = None

    def begin(self, place):
        if self.at is None:
            raise self.error

        def work(item):
            if item == self.at:
                raise self.error
            return item

        return work
