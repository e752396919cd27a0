"""The table of a run: opened once, read in chunks of lines that are scored together."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.shards import count_lines, read_part
from moses_rnn.files.streams import Meter, change_stamp, fingerprint, read_blocks
from moses_rnn.score.options import ScoringOptions
from moses_rnn.table.phrase_table import LineParser, PhraseForm, Shape, TableLine
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


@dataclass(frozen=True)
class InputTable:
    """A table whose first line was read.

    `identity` tells it from another, `stamp` whether it was written to. `lines` are all that it has and `part` those of
    a shard, from 0; without a shard nobody has counted them. `rejects` are its invalid lines.
    """

    path: str
    identity: dict[str, object]
    stamp: object
    first: TableLine
    form: PhraseForm
    shape: Shape  # without the columns that are added
    lines: int
    part: range | None
    rejects: Rejects
    _blocks: Iterator[TableLines]
    _meter: Meter

    def chunks(self, after: int = 0) -> Iterator[TableLines]:
        """The lines of higher numbers, cut where the source changes; see `chunks_between_sources`.

        Raises:
            FormatError: a line is not one of a phrase table, or has a phrase of too many words to be held at once.
        """
        blocks = filter(None, (block.after(after) for block in self._blocks))
        return of_bounded_length(chunks_between_sources(blocks), self.path)

    def share(self, read: int) -> float | None:
        """How much of the table is done once so many lines are, less what was read ahead; None of a pipe."""
        if self.part is not None:
            return (read - self.part.start) / len(self.part)
        return self._meter.share and self._meter.share * read / self._meter.lines_read

    def check_unchanged(self) -> None:
        """Raise InputError if the table was written to meanwhile."""
        if change_stamp(self.path) != self.stamp:
            raise InputError(f"{self.path}: was changed while it was read; nothing was written")


def open_table(options: ScoringOptions, form: PhraseForm, waiting: Callable[[], None]) -> InputTable:
    """Open the table of a run and read its first line.

    Args:
        options: its name, which part of it is wanted, and what becomes of invalid lines.
        form: which factors of its words are read.
        waiting: called again and again while a pipe has nothing to give; it may raise.

    Raises:
        InputError: it cannot be read, or is no phrase table.
    """
    path, meter, rejects = options.table, Meter(waiting=waiting), Rejects()
    identity, stamp = fingerprint(path), change_stamp(path)
    lines, part, read = 0, None, read_blocks
    if options.shard:
        lines = count_lines(path)
        part = options.shard.lines_of(lines)
        read = partial(read_part, lines=part)
    form = PhraseForm(form.source_factor, form.target_factor)
    parser = LineParser(path, rejects.take if options.rejects else None, form)
    blocks = parse_with(parser, read(path, meter=meter), part.start if part else 0)
    block = next(blocks, None)
    if block is None or parser.first is None or parser.shape is None:
        of_shard = f" in shard {options.shard}" if options.shard else ""
        raise FormatError(path, None, f"at least one line{of_shard}", "none")
    blocks = itertools.chain([block], blocks)
    return InputTable(
        path, identity, stamp, parser.first, parser.form, parser.shape, lines, part, rejects, blocks, meter
    )
