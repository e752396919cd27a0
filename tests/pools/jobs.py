"""Jobs for workers in other processes: small, and some of them deadly."""

import os
import signal
import time
from dataclasses import dataclass
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
