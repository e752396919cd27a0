"""Lines of a table that cannot be scored, for a file of their own."""

from __future__ import annotations

from collections import deque

from moses_rnn.errors import FormatError

MOST_IN_A_ROW = 10_000  # lines; a table has not that many bad ones
MOST_WAITING_BYTES = 1 << 26  # read and not yet written
MOST_MESSAGES = 3


class Rejects:
    """Collects lines in their order, and gives them out with the chunk of good lines that comes after them.

    `last` is the number of the last line that came; lines up to number `written` are passed over. `messages` say what
    is wrong with the first few.
    """

    def __init__(self) -> None:
        self.last = self.written = 0
        self.messages: list[str] = []
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = self._in_a_row = 0

    def take(self, line: bytes, error: FormatError) -> None:
        """Take a line.

        Raises:
            FormatError: there are too many of them for a phrase table.
        """
        if error.line is None or error.line <= self.written:
            return
        if len(self.messages) < MOST_MESSAGES:
            self.messages.append(str(error).split("\n")[0])
        self._in_a_row = self._in_a_row + 1 if error.line == self.last + 1 else 1
        self.last = error.line
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

    def until(self, number: int) -> list[bytes]:
        """The lines up to one of that number that were not given out yet."""
        lines, self.written = [], number
        while self._waiting and self._waiting[0][0] <= number:
            lines.append(self._waiting.popleft()[1])
        self._waiting_bytes -= sum(map(len, lines))
        return lines
