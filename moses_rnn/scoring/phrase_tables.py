"""Scores into a phrase table: lines in, the same lines with further columns out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from moses_rnn.errors import FormatError, MosesRnnError, shown
from moses_rnn.formats.census import Census
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR
from moses_rnn.formats.signatures import ColumnCounts
from moses_rnn.formats.table_blocks import TableLines
from moses_rnn.producers.base import ScoreProducer, Scores, Tally
from moses_rnn.scoring.workers import Chunk, ScoredChunk, in_order, scored_chunks

CHUNK_LINES = 8192
CHUNK_BYTES = 1 << 24  # of lines; ordinary ones come to a tenth of it
MOST_WORDS = 1 << 16  # of a phrase: what is stepped through at once
ROUNDING = 1e-3  # a log-probability this far above 0 is float32's rounding; more is a fault


@dataclass(frozen=True)
class ColumnOptions:
    """How scores are written: as probabilities not below exp(`floor`), or as natural logarithms as they are."""

    floor: float = DEFAULT_FLOOR
    logarithms: bool = False


@dataclass
class ScoringReport(ColumnCounts):
    """What went through, for the signature and the user.

    `lines` were written; `read` is the number of the last of them in the input; `halvings` is how often work was split
    because the device's memory ran out; `oddities` are a census's.
    """

    read: int = 0
    halvings: int = 0
    oddities: dict[str, list[int]] = field(default_factory=dict)

    def count(self, scores: Scores, tallies: Sequence[Tally], floor: float, last: int) -> None:
        """Take in the scores of further lines, the last of which has that number; lines × columns."""
        if not self.lines:
            columns = scores.shape[1]
            self.unknown, self.floored = [0] * columns, [0] * columns
            self.lowest, self.highest = [np.inf] * columns, [-np.inf] * columns
        self.lines += len(scores)
        self.unknown = [n + tally.unknown for n, tally in zip(self.unknown, tallies, strict=True)]
        self.halvings += sum({id(tally): tally.halvings for tally in tallies}.values())
        self.read = last
        self.floored = [n + int(m) for n, m in zip(self.floored, (scores < floor).sum(axis=0), strict=True)]
        written = np.maximum(scores, floor)
        self.lowest = [min(a, float(b)) for a, b in zip(self.lowest, written.min(axis=0), strict=True)]
        self.highest = [max(a, float(b)) for a, b in zip(self.highest, written.max(axis=0), strict=True)]

    def take_over(self, note: dict[str, Any] | None) -> None:
        """Resume from a report that was left in a journal."""
        for known in fields(self):
            if note and known.name in note:
                setattr(self, known.name, note[known.name])

    def as_note(self) -> dict[str, Any]:
        """The report as JSON, for the journal."""
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
    before = None
    for i in range(size, min(last, len(lines))):
        before = lines.source(i - 1) if before is None else before
        source = lines.source(i)
        if source != before:
            return i
        before = source
    return last if last < len(lines) else 0


def of_bounded_length(chunks: Iterable[Chunk], name: str) -> Iterator[Chunk]:
    """The same chunks; a phrase of too many words to be held at once is a FormatError."""
    for chunk in chunks:
        for i in np.flatnonzero(np.diff(chunk.line_ends, prepend=0) > MOST_WORDS):
            ((source, target),) = chunk[i : i + 1].pairs()
            longest = max(len(words(source)), len(words(target)))
            if longest >= MOST_WORDS:
                expected = f"phrases of less than {MOST_WORDS:,} words"
                raise FormatError(name, int(chunk.numbers[i]), expected, f"{longest:,}")
        yield chunk


def _as_it_is(data: bytes) -> bytes:
    return data


def scored_table(
    lines: Iterable[TableLines],
    workers: Sequence[Sequence[ScoreProducer]],
    options: ColumnOptions,
    report: ScoringReport,
    census: Census,
    pack: Callable[[bytes], bytes] = _as_it_is,
) -> Iterator[bytes]:
    """The table with further columns, as blocks of whole lines.

    Args:
        lines: the table's.
        workers: see `scored_chunks`.
        options: how scores are written.
        report: counts what goes through.
        census: counts what is odd about the lines, and knows the table's name.
        pack: done to each block before it is given out, in a thread of its own.

    Raises:
        FormatError: a line cannot be scored, or is odd under a strict census.
        MosesRnnError: a network gave a score that is no log-probability; nothing of its chunk is given out.
    """

    def finished(scored: ScoredChunk) -> tuple[ScoredChunk, bytes]:
        _check(scored.lines, scored.scores, census.name)
        scored = scored._replace(scores=np.minimum(scored.scores, 0.0))
        return scored, pack(scored.lines.with_numbers(numbers_of(scored.scores, options)))

    chunks = of_bounded_length(chunks_between_sources(lines), census.name)
    floor = -np.inf if options.logarithms else options.floor
    for scored, block in in_order(scored_chunks(chunks, workers, census.name), finished, 1, "finishing"):
        census.look(scored.lines.irregular)  # not before: what is counted goes into the journal with the chunk
        report.count(scored.scores, scored.tallies, floor, int(scored.lines.numbers[-1]))
        yield block


def numbers_of(scores: Scores, options: ColumnOptions) -> Scores:
    """Scores as they stand in a table, where 9 digits hold more than the decoder's float32; lines × columns."""
    return scores + 0.0 if options.logarithms else np.exp(np.maximum(scores, options.floor))  # + 0.0: no -0


def _check(chunk: Chunk, scores: Scores, name: str) -> None:
    good = np.isfinite(scores) & (scores < ROUNDING)
    if not good.all():
        row, column = (int(i) for i in np.argwhere(~good)[0])
        pair = shown(b" ||| ".join(*chunk[row : row + 1].pairs()))
        raise MosesRnnError(
            f"{name}:{chunk.numbers[row]}: expected a log-probability as added score {column + 1}, found "
            f"{scores[row, column]} for {pair}",
            advice="The model is damaged or its training diverged.",
        )
