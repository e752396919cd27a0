"""Shards of a file of lines: the number of lines alone determines shard k of N, and N shards make up the file."""

from __future__ import annotations

import hashlib
import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moses_rnn.errors import InputError
from moses_rnn.files.streams import Meter, read_blocks, without_compression_suffix


@dataclass(frozen=True)
class Shard:
    """Part `number`, from 1, of `count` parts."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ValueError(f"shard {self}")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def lines_of(self, lines: int) -> range:
        """Return the range of lines in the shard, from 0, of a file of `lines` lines."""
        return range(*(lines * k // self.count for k in (self.number - 1, self.number)))


def parse_shard(text: str) -> Shard:
    """Parse ``k/N``; raise ValueError for anything else."""
    number, _, count = text.partition("/")
    try:
        return Shard(int(number), int(count))
    except ValueError as error:
        raise ValueError(f"expected k/N with k from 1 to N, found {text!r}") from error


def with_shard(path: str, shard: Shard) -> str:
    """Return ``table.2-of-4.gz`` for shard 2 of 4 of ``table.gz``."""
    stem = str(without_compression_suffix(path))
    width = len(str(shard.count))
    return f"{stem}.{shard.number:0{width}}-of-{shard.count}{path[len(stem) :]}"


def count_lines(path: str) -> int:
    """Count the lines of a file by reading all of it; raise InputError if it is a pipe."""
    return digest_lines(path)[0]


def digest_lines(path: str) -> tuple[int, str]:
    """Return the number of lines of a file and their SHA-256; raise InputError if it is a pipe."""
    if not Path(path).is_file():
        raise InputError(f"{path}: expected a file, whose lines can be counted, found a pipe")
    lines, digest = 0, hashlib.sha256()
    for block in read_blocks(path, max_line_bytes=1 << 62):
        lines += block.count(b"\n") + (not block.endswith(b"\n"))
        digest.update(block)
    return lines, digest.hexdigest()


def read_part(path: str, lines: range, *, meter: Meter | None = None) -> Iterator[bytes]:
    """Yield a range of a file's lines in blocks; see `read_blocks`. The meter counts all lines read."""
    meter = meter or Meter()
    before = 0
    for block in read_blocks(path, meter=meter):
        if before >= lines.start and meter.lines_read <= lines.stop:
            yield block
        elif meter.lines_read > lines.start:
            yield b"".join(itertools.islice(io.BytesIO(block), max(lines.start - before, 0), lines.stop - before))
        before = meter.lines_read
        if before >= lines.stop:
            return
