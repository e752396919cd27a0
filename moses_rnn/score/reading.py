"""The table of a run: opened once, read in chunks of lines that are scored together."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.shards import count_lines, read_part
from moses_rnn.files.streams import Meter, change_stamp, fingerprint, read_blocks
from moses_rnn.score.options import ScoringOptions
from moses_rnn.table.phrase_table import LineParser, PhraseForm, Rejected, Shape, TableLine, words
from moses_rnn.table.table_blocks import TableLines, parse_with

CHUNK_LINES = 8192
CHUNK_BYTES = 1 << 24  # of lines; ordinary ones come to a tenth of it
MOST_WORDS = 1 << 16  # of a phrase: what is stepped through at once
MOST_IN_A_ROW = 10_000  # bad lines; a table has not that many
MOST_WAITING_BYTES = 1 << 26  # of bad lines, read and not yet written
MOST_MESSAGES = 3


@dataclass(frozen=True)
class InputTable:
    """A table whose first line was read.

    `identity` tells it from another, `stamp` whether it was written to. `lines` are all that it has and `part` those of
    a shard, from 0; without a shard nobody has counted them.
    """

    path: str
    identity: dict[str, object]
    stamp: object
    first: TableLine
    form: PhraseForm
    lines: int
    part: range | None
    _blocks: Iterator[TableLines]
    _meter: Meter

    @property
    def shape(self) -> Shape:
        """Its columns and factors, without the columns that are added."""
        return Shape.of(self.first)

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


def open_table(
    options: ScoringOptions, form: PhraseForm, rejected: Rejected | None, waiting: Callable[[], None]
) -> InputTable:
    """Open the table of a run and read its first line.

    Args:
        options: its name, and which part of it is wanted.
        form: which factors of its words are read.
        rejected: is given invalid lines; None: the first one is an error.
        waiting: called again and again while a pipe has nothing to give; it may raise.

    Raises:
        InputError: it cannot be read, or is no phrase table.
    """
    path, meter = options.table, Meter(waiting=waiting)
    identity, stamp = fingerprint(path), change_stamp(path)
    lines, part, read = 0, None, read_blocks
    if options.shard:
        lines = count_lines(path)
        part = options.shard.lines_of(lines)
        read = partial(read_part, lines=part)
    parser = LineParser(path, rejected, PhraseForm(form.source_factor, form.target_factor))
    blocks = parse_with(parser, read(path, meter=meter), part.start if part else 0)
    first = next(blocks, None)
    if first is None or parser.first is None:
        of_shard = f" in shard {options.shard}" if options.shard else ""
        raise FormatError(path, None, f"at least one line{of_shard}", "none")
    blocks = itertools.chain([first], blocks)
    return InputTable(path, identity, stamp, parser.first, parser.form, lines, part, blocks, meter)


def chunks_between_sources(
    blocks: Iterable[TableLines], size: int = CHUNK_LINES, most_bytes: int = CHUNK_BYTES
) -> Iterator[TableLines]:
    """Chunks of at least `size` lines, cut where the source changes, or at twice the size where it does not.

    A chunk of more bytes is cut wherever it is. The cuts depend on the lines alone, not on the blocks they come in.
    """
    held: list[TableLines] = []
    for block in blocks:
        held.append(block)
        if sum(map(len, held)) <= size and sum(len(part.text) for part in held) <= most_bytes:
            continue  # which nothing shorter could be cut from
        rest = TableLines.joined(held)
        while cut := _cut(rest, size, most_bytes):
            yield rest[:cut]
            rest = rest[cut:]
        held = [rest]
    if held and (rest := TableLines.joined(held)):
        yield rest


def of_bounded_length(chunks: Iterable[TableLines], name: str) -> Iterator[TableLines]:
    """The same chunks; a phrase of too many words to be held at once is a FormatError."""
    for chunk in chunks:
        for i in np.flatnonzero(np.diff(chunk.line_ends, prepend=0) > MOST_WORDS):
            pair = chunk[i : i + 1].pairs()
            longest = max(len(words(pair.sources[0])), len(words(pair.targets[0])))
            if longest >= MOST_WORDS:
                expected = f"phrases of less than {MOST_WORDS:,} words"
                raise FormatError(name, int(chunk.numbers[i]), expected, f"{longest:,}")
        yield chunk


def _cut(lines: TableLines, size: int, most_bytes: int) -> int:
    """How many of the lines make a chunk; 0: not known before there are more."""
    too_many_bytes = 1 + int(np.searchsorted(lines.line_ends, most_bytes, side="right"))
    last = min(2 * size, too_many_bytes)
    sources = lines.sources
    for i in range(size, min(last, len(lines))):
        if sources[i] != sources[i - 1]:
            return i
    return last if last < len(lines) else 0


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
