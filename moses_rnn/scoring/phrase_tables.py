"""Scores into a phrase table: lines in, the same lines with further columns out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from moses_rnn.errors import FormatError, MosesRnnError, shown
from moses_rnn.formats.census import Census
from moses_rnn.formats.phrase_table import TableLine, words
from moses_rnn.scoring.producers import ScoreProducer, Scores
from moses_rnn.scoring.workers import Chunk, scored_chunks

CHUNK_LINES = 8192
CHUNK_BYTES = 1 << 24  # of lines; ordinary ones come to a tenth of it
MOST_WORDS = 1 << 16  # of a phrase: what is stepped through at once
# Moses holds probabilities as float32: exp(-87) is near the smallest one of full precision (exp(-87.34)), and below
# exp(-100) the decoder would see its own floor of -100.
DEFAULT_FLOOR = -87.0
ROUNDING = 1e-3  # a log-probability this far above 0 is float32's rounding; more is a fault


@dataclass(frozen=True)
class ColumnOptions:
    """How scores are written: as probabilities not below exp(`floor`), or as natural logarithms as they are."""

    floor: float = DEFAULT_FLOOR
    logarithms: bool = False


@dataclass
class ScoringReport:
    """What went through, for the signature and the user; lists have one value for each added column.

    `lines` were written; `read` is the number of the last of them in the input; `halvings` is how often work was split
    because the device's memory ran out; `oddities` are a census's.
    """

    lines: int = 0
    read: int = 0
    halvings: int = 0
    oddities: dict[str, list[int]] = field(default_factory=dict)
    floored: list[int] = field(default_factory=list)
    lowest: list[float] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)

    def count(self, scores: Scores, floor: float, last: int) -> None:
        """Take in the scores of further lines, the last of which has that number; lines × columns."""
        if not self.lines:
            columns = scores.shape[1]
            self.floored, self.lowest, self.highest = [0] * columns, [np.inf] * columns, [-np.inf] * columns
        self.lines += len(scores)
        self.read = last
        self.floored = [n + int(m) for n, m in zip(self.floored, (scores < floor).sum(axis=0), strict=True)]
        written = np.maximum(scores, floor)
        self.lowest = [min(a, float(b)) for a, b in zip(self.lowest, written.min(axis=0), strict=True)]
        self.highest = [max(a, float(b)) for a, b in zip(self.highest, written.max(axis=0), strict=True)]

    def take_over(self, note: dict[str, Any] | None) -> None:
        """Go on from a report that was left in a journal."""
        for key, value in (note or {}).items():
            setattr(self, key, value)

    def as_note(self) -> dict[str, Any]:
        """The report as JSON, for the journal."""
        return asdict(self)

    def constant_columns(self) -> list[int]:
        """Added columns (from 0) with one value all over the table: MERT cannot find a weight for them."""
        return [i for i, (low, high) in enumerate(zip(self.lowest, self.highest, strict=True)) if low == high]


def chunks_between_sources(
    lines: Iterable[TableLine], size: int = CHUNK_LINES, most_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Chunks of at least `size` lines, cut where the source changes, or at twice the size where it does not.

    A chunk of more bytes is cut wherever it is.
    """
    chunk: Chunk = []
    bytes_held = 0
    for line in lines:
        full = len(chunk) >= size and (line.source != chunk[-1].source or len(chunk) >= 2 * size)
        if full or bytes_held > most_bytes:
            yield chunk
            chunk, bytes_held = [], 0
        chunk.append(line)
        bytes_held += len(line.line)
    if chunk:
        yield chunk


def of_bounded_length(chunks: Iterable[Chunk], name: str) -> Iterator[Chunk]:
    """The same chunks; a phrase of too many words to be held at once is a FormatError."""
    for chunk in chunks:
        if max([len(line.line) for line in chunk]) > MOST_WORDS:
            for line in chunk:
                longest = max(len(words(line.source)), len(words(line.target)))
                if longest >= MOST_WORDS:
                    expected = f"phrases of less than {MOST_WORDS:,} words"
                    raise FormatError(name, line.number, expected, f"{longest:,}")
        yield chunk


def scored_table(
    lines: Iterable[TableLine],
    workers: Sequence[Sequence[ScoreProducer]],
    options: ColumnOptions,
    report: ScoringReport,
    census: Census,
) -> Iterator[bytes]:
    """The table with further columns, as blocks of whole lines.

    Args:
        lines: the table's.
        workers: see `scored_chunks`.
        options: how scores are written.
        report: counts what goes through.
        census: counts what is odd about the lines, and knows the table's name.

    Raises:
        FormatError: a line cannot be scored, or is odd under a strict census.
        MosesRnnError: a network gave a score that is no log-probability; nothing of its chunk is given out.
    """
    halvings = report.halvings
    chunks = of_bounded_length(chunks_between_sources(lines), census.name)
    for chunk, computed in scored_chunks(chunks, workers, census.name):
        census.look(chunk)  # not before: what is counted goes into the journal with the chunk
        _check(chunk, computed, census.name)
        scores = np.minimum(computed, 0.0)
        report.count(scores, -np.inf if options.logarithms else options.floor, chunk[-1].number)
        report.halvings = halvings + sum(producer.halvings for producers in workers for producer in producers)
        added = formatted(scores, options)
        yield b"".join([line.with_scores(scores) for line, scores in zip(chunk, added, strict=True)])


def formatted(scores: Scores, options: ColumnOptions) -> list[bytes]:
    """Scores as they stand in each line: 9 significant digits, more than the decoder's float32 holds."""
    values = scores + 0.0 if options.logarithms else np.exp(np.maximum(scores, options.floor))
    row = b" ".join([b"%.9g"] * scores.shape[1])
    return [row % tuple(of_line) for of_line in values.tolist()]


def _check(chunk: Chunk, scores: Scores, name: str) -> None:
    bad = np.argwhere(~(np.isfinite(scores) & (scores < ROUNDING)))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        pair = shown(chunk[row].source + b" ||| " + chunk[row].target)
        raise MosesRnnError(
            f"{name}:{chunk[row].number}: expected a log-probability as added score {column + 1}, found "
            f"{scores[row, column]} for {pair}\n  The model is damaged or its training diverged."
        )
