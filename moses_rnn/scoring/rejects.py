"""Invalid lines of a table, kept beside it when the user wants the others scored all the same."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Self

from moses_rnn.errors import FormatError
from moses_rnn.files.journal import BlockOutput, discard_leftover

MOST_IN_A_ROW = 10_000  # lines; a table has not that many bad ones
MOST_WAITING_BYTES = 1 << 26  # read and not yet written


class Rejects:
    """Takes rejected lines, and writes each with the block of sound lines that it stands before or within.

    Args:
        output: beside the table; its blocks go along with the table's, so that both can be resumed.
    """

    def __init__(self, output: BlockOutput) -> None:
        self._output = output
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._written = 0  # number of the last line whose block is written
        self._last = self._in_a_row = 0
        self._finished = False  # by a run that died right before its end
        self.messages: list[str] = []  # the first few
        self.lines = 0

    def begin(self, manifest: dict[str, object], blocks: int | None) -> None:
        """Go on beside a table that has so many blocks, or begin; None: beside one that has its final name."""
        if blocks is None and self._output.is_finished():
            with Path(self._output.path).open("rb") as lines:
                self.lines = sum(1 for _ in lines)
            self._finished = True
            self._waiting.clear()  # taken while the first line was looked for; they stand in that file
            return
        note = self._output.begin(manifest, most=blocks) or {"written": 0, "lines": 0}
        self._written, self.lines = note["written"], note["lines"]
        while self._waiting and self._waiting[0][0] <= self._written:  # taken while the first line was looked for
            self._waiting_bytes -= len(self._waiting.popleft()[1])

    def take(self, line: bytes, error: FormatError) -> None:
        """Take a line.

        Raises:
            FormatError: there are too many of them for a phrase table.
        """
        if self._finished or error.line is None or error.line <= self._written:
            return
        if len(self.messages) < 3:
            self.messages.append(str(error).split("\n")[0])
        self._in_a_row = self._in_a_row + 1 if error.line == self._last + 1 else 1
        self._last = error.line
        kept = line if line.endswith(b"\n") else line + b"\n"
        self._waiting.append((error.line, kept))
        self._waiting_bytes += len(kept)
        if self._in_a_row > MOST_IN_A_ROW:
            found = f"{self._in_a_row:,} bad lines in a row"
            raise FormatError(error.name, error.line, "a phrase pair now and then", found, "Is this a phrase table?")
        if self._waiting_bytes > MOST_WAITING_BYTES:
            found = f"bad lines of {self._waiting_bytes:,} bytes one after the other"
            raise FormatError(error.name, error.line, "a phrase pair now and then", found, "Is this a phrase table?")

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
        self._output.append(self._output.pack(data), {"written": self._written, "lines": self.lines})

    def commit(self) -> None:
        """Give the file its name, if there is something in it."""
        if self.lines and not self._finished:
            self._output.commit()
            return
        self._output.discard()
        if not self.lines:  # those of an older table may be replaced, and nothing takes their place
            Path(self._output.path).unlink(missing_ok=True)

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
    """Where a rejected line ends the run.

    Args:
        path: where an earlier run may have left some; None for a table on standard output.
    """

    take = None
    lines = 0
    messages: tuple[str, ...] = ()

    def __init__(self, path: str | None) -> None:
        self._path = path

    def begin(self, _manifest: dict[str, object], _blocks: int | None) -> None:
        """Do nothing."""

    def write(self, until: int | None = None) -> None:
        """Do nothing."""

    def commit(self) -> None:
        """Remove what an interrupted run left of rejects that nobody asks for any more."""
        if self._path is not None:
            discard_leftover(self._path)

    def discard(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""
