"""A part of a large file of lines: which one, where it begins and ends, and its lines.

Shard k of N holds the lines from the first change of key behind byte (k−1)/N of the uncompressed file to the first one
behind byte k/N. The cuts depend on the file alone, so that N runs that know nothing of each other leave out no line and
take none twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from moses_rnn.errors import MosesRnnError
from moses_rnn.files.layouts import Layout, layout_of
from moses_rnn.files.metered import Meter
from moses_rnn.files.streams import MAX_LINE_BYTES, read_blocks

AUTOMATIC = "auto"
# of engines that number what they start: the number, the first one's, and how many there are
NUMBERINGS = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"),
    ("SLURM_PROCID", None, "SLURM_NTASKS"),
    ("RANK", None, "WORLD_SIZE"),
)

Key = Callable[[bytes], bytes]  # of a line; lines of equal key stay together


@dataclass(frozen=True)
class Shard:
    """Part `number`, from 1, of `count` parts."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ValueError(f"expected a shard from 1 to {self.count}, found {self.number}")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str, environment: Mapping[str, str] = os.environ) -> Shard:
        """The shard that ``k/N`` names, or ``auto`` by what Slurm or torchrun have numbered.

        Raises:
            MosesRnnError: it names none.
        """
        if text == AUTOMATIC:
            return cls._of_environment(environment)
        number, _, count = text.partition("/")
        if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
            return cls(int(number), int(count))
        raise MosesRnnError(f"--shard: expected k/N with k from 1 to N, or {AUTOMATIC}, found {text!r}")

    @classmethod
    def _of_environment(cls, environment: Mapping[str, str]) -> Shard:
        for name, first, count in NUMBERINGS:
            if name in environment and count in environment:
                begin = int(environment.get(first, "0")) if first else 0
                number, of = int(environment[name]) - begin + 1, int(environment[count])
                if 1 <= number <= of:
                    return cls(number, of)
                raise MosesRnnError(
                    f"--shard {AUTOMATIC}: expected a number below {count}={of}, found {name}={environment[name]}",
                    advice="A Slurm array must be numbered without gaps: --array=0-99, not --array=0-98:2.",
                )
        names = ", ".join(name for name, _, _ in NUMBERINGS)
        raise MosesRnnError(f"--shard {AUTOMATIC}: expected {names} with its count in the environment, found none")


class Part:
    """The lines of a shard of a file; `begin` and `end` are its uncompressed bytes, known once they were read.

    Args:
        path: of the file.
        shard: which part.
        key: of a line.

    Raises:
        InputError: it is a pipe, or cannot be read.
    """

    def __init__(self, path: str, shard: Shard, key: Key) -> None:
        self.path, self.shard = path, shard
        self.layout: Layout = layout_of(path)
        size = self.layout.size
        self._first, self._last = (size * k // shard.count for k in (shard.number - 1, shard.number))
        self._begin, self._end = _Cut(self._first, size, key), _Cut(self._last, size, key)

    @property
    def begin(self) -> int | None:
        """The first byte."""
        return self._begin.place

    @property
    def end(self) -> int | None:
        """The byte behind the last one."""
        return self._end.place

    def blocks(self, *, max_line_bytes: int = MAX_LINE_BYTES, meter: Meter | None = None) -> Iterator[bytes]:
        """The lines, in blocks; see `read_blocks`. The meter's share is that of the part."""
        meter = meter or Meter()
        at, stored = self.layout.entry(max(self._first - 1, 0))
        inner = Meter(waiting=meter.waiting)
        for block in read_blocks(self.path, max_line_bytes=max_line_bytes, meter=inner, begin=stored):
            part = self._part_of(block, at)
            at += len(block)
            meter.bytes_read = inner.bytes_read
            meter.share = min(max(at - self._first, 0) / max(self._last - self._first, 1), 1.0)
            if part:
                meter.lines_read += part.count(b"\n") + (not part.endswith(b"\n"))
                yield part
            if self.end is not None and at >= self.end:
                break
        self._begin.finish()
        self._end.finish()
        meter.share = 1.0

    def _part_of(self, block: bytes, at: int) -> bytes:
        begin, end = self._begin.look(block, at), self._end.look(block, at)
        return b"" if begin is None else block[max(begin - at, 0) : None if end is None else max(end - at, 0)]


class _Cut:
    """Looks for the first change of key between two lines behind a byte; at the file's ends they are its ends."""

    def __init__(self, target: int, size: int, key: Key) -> None:
        self._target, self._size, self._key = target, size, key
        self._last_key: bytes | None = None
        self.place: int | None = 0 if target == 0 else size if target == size else None

    def look(self, block: bytes, at: int) -> int | None:
        """The place, if it is known with this block, which begins at that byte."""
        if self.place is None and at + len(block) > self._target:
            for begin, line in _lines(block, self._line_behind(block, at)):
                key = self._key(line)
                if self._last_key not in (None, key):
                    self.place = at + begin
                    break
                self._last_key = key
        return self.place

    def _line_behind(self, block: bytes, at: int) -> int:
        """Where in the block the first line behind the target begins."""
        if at >= self._target:
            return 0
        end = block.find(b"\n", self._target - 1 - at)
        return len(block) if end < 0 else end + 1

    def finish(self) -> None:
        """The file has no more lines."""
        if self.place is None:
            self.place = self._size


def _lines(block: bytes, begin: int) -> Iterable[tuple[int, bytes]]:
    while begin < len(block):
        end = block.find(b"\n", begin) + 1 or len(block)
        yield begin, block[begin:end]
        begin = end
