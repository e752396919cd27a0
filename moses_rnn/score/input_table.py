"""The input table of a run, read in chunks of lines that are scored together."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from moses_rnn.errors import FormatError, number_of
from moses_rnn.files.shards import digest_lines, read_part
from moses_rnn.files.streams import Meter, fingerprint, read_blocks, read_lines
from moses_rnn.score.scoring_options import ScoringOptions
from moses_rnn.table.phrase_table import LineParser, Shape, parse_table
from moses_rnn.table.phrases import PhraseForm
from moses_rnn.table.signatures import signature_of
from moses_rnn.table.table_blocks import TableLines, chunks_between_sources, of_bounded_length, parse_blocks_with

MOST_IN_A_ROW = 10_000  # bad lines; more mean that the file is no phrase table
MOST_BYTES_IN_A_ROW = 1 << 26
MOST_MESSAGES = 3


class Rejects:
    """Collects bad lines in order, and releases them with the chunk of good lines that follows them.

    `last` is the number of the last bad line; lines up to number `written` are skipped. `messages` say what is wrong
    with the first few.
    """

    def __init__(self) -> None:
        self.last = self.written = 0
        self.messages: list[str] = []
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._in_a_row = self._bytes_in_a_row = 0

    def take(self, line: bytes, error: FormatError) -> None:
        """Add a bad line; raise FormatError if there are too many for a phrase table."""
        if error.line is None or error.line <= self.written:
            return
        if len(self.messages) < MOST_MESSAGES:
            self.messages.append(str(error).split("\n")[0])
        if error.line != self.last + 1:
            self._in_a_row = self._bytes_in_a_row = 0
        self.last = error.line
        kept = line if line.endswith(b"\n") else line + b"\n"
        self._waiting.append((error.line, kept))
        self._in_a_row += 1
        self._bytes_in_a_row += len(kept)
        found = None
        if self._in_a_row > MOST_IN_A_ROW:
            found = f"{self._in_a_row:,} bad lines in a row"
        elif self._bytes_in_a_row > MOST_BYTES_IN_A_ROW:
            found = f"consecutive bad lines of {number_of(self._bytes_in_a_row, 'byte')}"
        if found:
            raise FormatError(error.name, error.line, "at least some phrase pairs", found, "Is this a phrase table?")

    def until(self, number: int) -> list[bytes]:
        """Release the waiting lines up to line `number`."""
        lines, self.written = [], number
        while self._waiting and self._waiting[0][0] <= number:
            lines.append(self._waiting.popleft()[1])
        return lines


class InputTable:
    """The input table of a run: the constructor reads the first block, `chunks` the rest.

    `identity` distinguishes it from other tables. For a shard, `lines` counts the table's lines, `digest` is their
    SHA-256, and `part` is the shard's range, from 0. `first` is the table's first valid line; `shape` excludes the
    added columns. `signature` is the record beside it. `rejects` holds the invalid lines. `waiting` is called
    repeatedly while a pipe has no data; it may raise.
    """

    def __init__(self, options: ScoringOptions, form: PhraseForm, waiting: Callable[[], None]) -> None:
        self.path, self.rejects = options.table, Rejects()
        self._meter = Meter(waiting=waiting)
        self.identity, self.signature = fingerprint(self.path), signature_of(self.path)
        self.lines, self.digest, self.part, read = 0, "", None, read_blocks
        if options.shard:
            self.lines, self.digest = digest_lines(self.path)
            self.part = options.shard.lines_of(self.lines)
            read = partial(read_part, lines=self.part)
        form = PhraseForm(form.source_factor, form.target_factor)
        parser = LineParser(self.path, self.rejects.take if options.rejects else None, form)
        if self.part is not None:  # shards are judged by the table's first line, as the whole table is
            passing = Rejects().take if options.rejects else None
            for first in itertools.islice(parse_table(read_lines(self.path), self.path, passing, form), 1):
                parser.parse(first.line, first.number)
        before = self.part.start if self.part else 0
        blocks = parse_blocks_with(parser, read(self.path, meter=self._meter), before)
        first_block = next(blocks, None)
        if parser.first is None:
            raise FormatError(self.path, None, "at least one valid line", "none")
        self._blocks, self.form = itertools.chain(filter(None, [first_block]), blocks), parser.form
        self.first, self.shape = parser.first, Shape.of(parser.first)

    def chunks(self, after: int = 0) -> Iterator[TableLines]:
        """Return the lines after number `after`, cut where the source changes; see `chunks_between_sources`."""
        rest = filter(None, (block.after(after) for block in self._blocks))
        return of_bounded_length(chunks_between_sources(rest), self.path)

    def share(self, read: int) -> float | None:
        """Return the share of the table done after `read` lines, without what was read ahead; None for a pipe."""
        if self.part is not None:
            return (read - self.part.start) / len(self.part)
        return self._meter.share and self._meter.share * read / self._meter.lines_read
