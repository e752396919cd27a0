"""Scores into a phrase table: lines in, the same lines with further columns out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from moses_rnn.errors import FormatError
from moses_rnn.formats.line_warnings import LineWarnings
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.signatures import ColumnCounts
from moses_rnn.formats.table_blocks import TableLines
from moses_rnn.pools.workers import Workers, map_in_order
from moses_rnn.scoring.workers import Chunk, ScoredChunk

CHUNK_LINES = 8192
CHUNK_BYTES = 1 << 24  # of lines; ordinary ones come to a tenth of it
MOST_WORDS = 1 << 16  # of a phrase: what is stepped through at once


@dataclass
class ScoringReport(ColumnCounts):
    """What went through, for the signature and the user.

    `lines` were written; `read` is the number of the last of them in the input; `halvings` is how often work was split
    because the device's memory ran out; `oddities` are the counts of `LineWarnings`.
    """

    read: int = 0
    halvings: int = 0
    oddities: dict[str, list[int]] = field(default_factory=dict)

    def count(self, scored: ScoredChunk, last: int) -> None:
        """Take in further lines, the last of which has that number."""
        self.add(scored.counts)
        self.halvings += scored.halvings
        self.read = last

    def take_over(self, note: dict[str, Any] | None) -> None:
        """Continue from the counts of an interrupted run."""
        for known in fields(self):
            if note and known.name in note:
                setattr(self, known.name, note[known.name])

    def as_note(self) -> dict[str, Any]:
        """The report as JSON, for the state of the run."""
        return asdict(self)

    def constant_columns(self) -> list[int]:
        """Added columns (from 0) with one value all over the table: MERT cannot find a weight for them."""
        return [i for i, (low, high) in enumerate(zip(self.lowest, self.highest, strict=True)) if low == high]


def chunks_between_sources(
    blocks: Iterable[TableLines], size: int = CHUNK_LINES, most_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
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


def _cut(lines: TableLines, size: int, most_bytes: int) -> int:
    """How many of the lines make a chunk; 0: not known before there are more."""
    too_many_bytes = 1 + int(np.searchsorted(lines.line_ends, most_bytes, side="right"))
    last = min(2 * size, too_many_bytes)
    sources = lines.sources
    for i in range(size, min(last, len(lines))):
        if sources[i] != sources[i - 1]:
            return i
    return last if last < len(lines) else 0


def of_bounded_length(chunks: Iterable[Chunk], name: str) -> Iterator[Chunk]:
    """The same chunks; a phrase of too many words to be held at once is a FormatError."""
    for chunk in chunks:
        for i in np.flatnonzero(np.diff(chunk.line_ends, prepend=0) > MOST_WORDS):
            pairs = chunk[i : i + 1].pairs()
            longest = max(len(words(pairs.sources[0])), len(words(pairs.targets[0])))
            if longest >= MOST_WORDS:
                expected = f"phrases of less than {MOST_WORDS:,} words"
                raise FormatError(name, int(chunk.numbers[i]), expected, f"{longest:,}")
        yield chunk


def scored_table(
    lines: Iterable[TableLines], workers: Workers[Chunk, ScoredChunk], report: ScoringReport, odd: LineWarnings
) -> Iterator[bytes]:
    """The table with further columns, as packed blocks of whole lines.

    Args:
        lines: the table's.
        workers: that score chunks.
        report: counts what goes through.
        odd: counts what is odd about the lines, and knows the table's name.

    Raises:
        FormatError: a line cannot be scored, or is odd where that is refused.
        MosesRnnError: a chunk could not be scored, see `ChunkScorer`; nothing of it is given out.
    """
    chunks = of_bounded_length(chunks_between_sources(lines), odd.name)
    for chunk, scored in map_in_order(chunks, workers):
        odd.look(chunk.odd_lines)  # not before: what is counted is saved with the chunk
        report.count(scored, int(chunk.numbers[-1]))
        yield scored.block
