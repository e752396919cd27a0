"""How far the reading of a file has come, and a file that keeps count of it."""

from __future__ import annotations

import io
import os
import select
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

# Shows how much is done, lines or the like, and their share of all if it is known
Advanced = Callable[[int, float | None], None]
MILLISECONDS_BETWEEN_LOOKS = 200  # at a pipe that has nothing to give


def show_nothing(_done: int, _share: float | None) -> None:
    """In place of an `Advanced` where nobody looks."""


def _do_nothing() -> None:
    pass


@dataclass
class Meter:
    """Follows the reading of a file.

    `share` is how much of it was read so far, 0 to 1, or None where that cannot be known (a pipe); `bytes_read` counts
    them as they are stored, `lines_read` those that were given out. `waiting` is called several times a second while a
    pipe has nothing to give; it may raise.
    """

    share: float | None = None
    bytes_read: int = 0
    lines_read: int = 0
    waiting: Callable[[], None] = _do_nothing


class MeteredFile(io.FileIO):
    """A file that notes on a meter how much of it was read, and can be interrupted while it waits."""

    def __init__(self, file: str | int, meter: Meter) -> None:
        # Opening a FIFO without O_NONBLOCK waits for its writer, where nothing could interrupt it.
        super().__init__(file, closefd=isinstance(file, str), opener=_open_without_waiting)
        status = os.fstat(self.fileno())
        self._size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        self._may_wait = not stat.S_ISREG(status.st_mode)
        self._poll = select.poll()
        self._poll.register(self.fileno(), select.POLLIN)
        self._meter = meter
        self._head = b""

    def look(self, count: int) -> bytes:
        """The first bytes, which stay to be read; fewer only if there are no more."""
        while len(self._head) < count and (more := self._next(count - len(self._head))):
            self._head += more
        return self._head

    def _next(self, count: int) -> bytes:
        buffer = bytearray(count)
        return bytes(buffer[: self._read_into(buffer)])

    def readinto(self, buffer: Buffer, /) -> int:
        """Read into a buffer; the number of bytes, 0 at the end."""
        if not self._head:
            return self._read_into(buffer)
        view = memoryview(buffer).cast("B")
        given = self._head[: len(view)]
        view[: len(given)] = given
        self._head = self._head[len(given) :]
        return len(given)

    def _read_into(self, buffer: Buffer) -> int:
        count = None
        while count is None:  # a non-blocking descriptor may have nothing after all
            while self._may_wait and not self._poll.poll(MILLISECONDS_BETWEEN_LOOKS):
                self._meter.waiting()
            count = super().readinto(buffer)
        self._meter.bytes_read += count
        if self._size:
            self._meter.share = self._meter.bytes_read / self._size
        return count


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
