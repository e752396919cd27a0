"""Lines of a table that cannot be scored, for a file of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from moses_rnn.errors import FormatError

MOST_IN_A_ROW = 10_000  # lines; a table has not that many bad ones
MOST_WAITING_BYTES = 1 << 26  # read and not yet written
MOST_MESSAGES = 3


class Rejects:
    """Collects lines in their order, and gives them out with the block of good lines that comes after them.

    `lines` counts those that were given out, up to line `until` of the table; `messages` say what is wrong with the
    first few.
    """

    def __init__(self) -> None:
        self.lines = self.until = 0
        self.messages: list[str] = []
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = self._last = self._in_a_row = 0

    def restore(self, saved: Mapping[str, int]) -> None:
        """Continue from what `counts` has told; some of the lines before may have been taken again."""
        until = saved.get("rejected_until", 0)
        self.rejected_until(until)
        self.lines, self.until = saved.get("rejected", 0), until

    def counts(self) -> dict[str, int]:
        """How far it is; JSON."""
        return {"rejected": self.lines, "rejected_until": self.until}

    def take(self, line: bytes, error: FormatError) -> None:
        """Take a line.

        Raises:
            FormatError: there are too many of them for a phrase table.
        """
        if error.line is None or error.line <= self.until:
            return
        if len(self.messages) < MOST_MESSAGES:
            self.messages.append(str(error).split("\n")[0])
        self._in_a_row = self._in_a_row + 1 if error.line == self._last + 1 else 1
        self._last = error.line
        kept = line if line.endswith(b"\n") else line + b"\n"
        self._waiting.append((error.line, kept))
        self._waiting_bytes += len(kept)
        found = None
        if self._in_a_row > MOST_IN_A_ROW:
            found = f"{self._in_a_row:,} bad lines in a row"
        elif self._waiting_bytes > MOST_WAITING_BYTES:
            found = f"bad lines of {self._waiting_bytes:,} bytes one after the other"
        if found:
            raise FormatError(error.name, error.line, "a phrase pair now and then", found, "Is this a phrase table?")

    def rejected_until(self, number: int | None) -> bytes:
        """The lines that come before a line of the table and were not given out yet; None: all of them."""
        lines = []
        self.until = max(self.until, self._last) if number is None else number
        while self._waiting and self._waiting[0][0] <= self.until:
            lines.append(self._waiting.popleft()[1])
        self.lines += len(lines)
        data = b"".join(lines)
        self._waiting_bytes -= len(data)
        return data
