"""The table of a run: opened once, read in chunks of lines that are scored together."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.shards import count_lines, read_part
from moses_rnn.files.streams import Meter, fingerprint, read_blocks
from moses_rnn.score.options import ScoringOptions
from moses_rnn.table.phrase_table import LineParser, PhraseForm
from moses_rnn.table.table_blocks import TableLines, chunks_between_sources, of_bounded_length, parse_with

MOST_IN_A_ROW = 10_000  # bad lines; a table has not that many
MOST_WAITING_BYTES = 1 << 26  # of bad lines, read and not yet written
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
        """Take a line; a FormatError says that there are too many for a phrase table."""
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
            found = f"consecutive bad lines of {self._waiting_bytes:,} bytes"
        if found:
            raise FormatError(
                error.name, error.line, "a phrase pair from time to time", found, "Is this a phrase table?"
            )

    def until(self, number: int) -> list[bytes]:
        """The lines up to one of that number that were not given out yet."""
        lines, self.written = [], number
        while self._waiting and self._waiting[0][0] <= number:
            lines.append(self._waiting.popleft()[1])
        self._waiting_bytes -= sum(map(len, lines))
        return lines


class InputTable:
    """The table of a run: its first line is read at once, the rest in chunks.

    `identity` tells it from another. `lines` are all that it has and `part` those of a shard, from 0; without a shard
    nobody has counted them. `first` is a sound line, of a `shape` without the columns that are added. `rejects` are the
    invalid lines. `waiting` is called again and again while a pipe has nothing to give; it may raise.
    """

    def __init__(self, options: ScoringOptions, form: PhraseForm, waiting: Callable[[], None]) -> None:
        self.path, self.rejects = options.table, Rejects()
        self._meter = Meter(waiting=waiting)
        self.identity = fingerprint(self.path)
        self.lines, self.part, read = 0, None, read_blocks
        if options.shard:
            self.lines = count_lines(self.path)
            self.part = options.shard.lines_of(self.lines)
            read = partial(read_part, lines=self.part)
        form = PhraseForm(form.source_factor, form.target_factor)
        parser = LineParser(self.path, self.rejects.take if options.rejects else None, form)
        self._blocks = parse_with(parser, read(self.path, meter=self._meter), self.part.start if self.part else 0)
        self._first_block = [*itertools.islice(self._blocks, 1)]
        if parser.first is None or parser.shape is None or not self._first_block:
            of_shard = f" in shard {options.shard}" if options.shard else ""
            raise FormatError(self.path, None, f"at least one line{of_shard}", "none")
        self.first, self.form, self.shape = parser.first, parser.form, parser.shape

    def chunks(self, after: int = 0) -> Iterator[TableLines]:
        """The lines of higher numbers, cut where the source changes; see `chunks_between_sources`."""
        blocks = itertools.chain(self._first_block, self._blocks)
        rest = filter(None, (block.after(after) for block in blocks))
        return of_bounded_length(chunks_between_sources(rest), self.path)

    def share(self, read: int) -> float | None:
        """How much of the table is done once so many lines are, less what was read ahead; None of a pipe."""
        if self.part is not None:
            return (read - self.part.start) / len(self.part)
        return self._meter.share and self._meter.share * read / self._meter.lines_read

    def check_unchanged(self) -> None:
        """Raise InputError if the table was written to meanwhile."""
        if "pipe" not in self.identity and fingerprint(self.path) != self.identity:
            raise InputError(f"{self.path}: was changed while it was read; nothing was written")
