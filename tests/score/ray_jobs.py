"""Jobs for workers of a cluster: small, and some of them deadly."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Doubling:
    """Doubles numbers; each process that began is noted in a folder."""

    folder: str = ""
    seconds: float = 0.0

    def begin(self, device):
        if self.folder:
            with (Path(self.folder) / str(os.getpid())).open("a") as file:
                file.write(device)
        return self.work

    def work(self, item):
        time.sleep(self.seconds)
        return 2 * item

    def name_of(self, item):
        return f"item {item}"


@dataclass(frozen=True)
class Dying(Doubling):
    """Kills its process over an item, each time, or only the first time."""

    over: int = 0
    always: bool = False

    def work(self, item):
        died = Path(self.folder) / "died"
        if item == self.over and (self.always or not died.exists()):
            died.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * item


@dataclass(frozen=True)
class Failing(Doubling):
    """Cannot begin, or fails at an item."""

    error: Exception | None = None
    at: int | None = None

    def begin(self, device):
        if self.at is None:
            raise self.error
        return self.work

    def work(self, item):
        if item == self.at:
            raise self.error
        return item
