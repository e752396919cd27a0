"""Lines of a table that are none, kept beside it when the user wants the others scored all the same."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Self

from moses_rnn.errors import FormatError, MosesRnnError
from moses_rnn.formats.journal import BlockOutput

MOST_WAITING = 10_000  # lines in a row; a table has not that many bad ones
MOST_WAITING_BYTES = 1 << 26


class Rejects:
    """Takes rejected lines, and writes each with the block of sound lines that it stands before or within.

    Args:
        output: beside the table; its blocks go along with the table's, so that both can be gone on with.
    """

    def __init__(self, output: BlockOutput) -> None:
        self._output = output
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._written = 0  # number of the last line whose block is written
        self._finished = False  # by a run that died right before its end
        self.messages: list[str] = []  # the first few
        self.lines = 0

    def begin(self, manifest: dict[str, object], blocks: int | None) -> None:
        """Go on beside a table that has so many blocks, or begin; None: beside one that has its final name."""
        if blocks is None and self._output.is_finished():
            with Path(self._output.path).open("rb") as lines:
                self.lines = sum(1 for _ in lines)
            self._finished = True
            return
        note = self._output.begin(manifest, most=blocks) or {"written": 0, "lines": 0}
        self._written, self.lines = note["written"], note["lines"]

    def take(self, line: bytes, error: FormatError) -> None:
        """Take a line.

        Raises:
            MosesRnnError: there are too many of them for a phrase table.
        """
        if self._finished or error.line is None or error.line <= self._written:
            return
        if len(self.messages) < 3:
            self.messages.append(str(error).split("\n")[0])
        self._waiting.append((error.line, line if line.endswith(b"\n") else line + b"\n"))
        self._waiting_bytes += len(line)
        if len(self._waiting) > MOST_WAITING or self._waiting_bytes > MOST_WAITING_BYTES:
            raise MosesRnnError(
                f"{error}\n  These were {len(self._waiting):,} bad lines in a row: is this a phrase table?"
            )

    def write(self, until: int | None = None) -> None:
        """Write a block of what was taken up to a line, perhaps nothing; None: everything."""
        block = []
        while self._waiting and (until is None or self._waiting[0][0] <= until):
            block.append(self._waiting.popleft())
        if until is None and not block:
            return
        data = b"".join(line for _, line in block)
        self._waiting_bytes -= len(data)
        self.lines += len(block)
        self._written = block[-1][0] if until is None else until
        self._output.append(data, {"written": self._written, "lines": self.lines})

    def commit(self) -> None:
        """Give the file its name, if there is something in it."""
        if self.lines and not self._finished:
            self._output.commit()
        else:
            self._output.discard()

    def discard(self) -> None:
        """Leave nothing to be resumed."""
        self._output.discard()

    def __enter__(self) -> Self:
        self._output.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """As the output's."""
        self._output.__exit__(kind)


class NoRejects:
    """Where a rejected line ends the run."""

    take = None
    lines = 0
    messages: tuple[str, ...] = ()

    def begin(self, _manifest: dict[str, object], _blocks: int | None) -> None:
        """Do nothing."""

    def write(self, until: int | None = None) -> None:
        """Do nothing."""

    def commit(self) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""
