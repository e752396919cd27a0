"""Byte streams that come in: plain or gzip, read to their very end or refused, cut into lines at ``\\n`` only.

Why not text mode or ``splitlines``: both also cut at U+2028, U+0085 and a lone carriage return, which Moses keeps
inside a token, so line counts would drift.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import math
import os
import select
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from xopen import xopen

from moses_rnn.errors import CheckpointError, FormatError, InputError, MosesRnnError, shown

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

# Shows how much is done, lines or the like, and their share of all if it is known
Advanced = Callable[[int, float | None], None]
STANDARD_STREAM = "-"
MADE_BY = (
    "Models are folders made by moses-rnn-train, moses-rnn nmt train or moses-rnn cslm train; pickles are never read."
)
GZIP = b"\x1f\x8b"  # the first bytes of such a file
OTHERS = {b"BZh": "bzcat", b"\xfd7zXZ\x00": "xzcat", b"\x28\xb5\x2f\xfd": "zstdcat"}  # and what prints other ones
HEAD_BYTES = 6
BUFFER_BYTES = 1 << 17  # read at once, compressed
IDENTITY_BYTES = 1 << 20  # of a file's beginning and of its end, which tell it from another
BLOCK_BYTES = 1 << 19  # what a core keeps near; numpy's arrays for it are several times as large
MAX_LINE_BYTES = 1 << 20
MILLISECONDS_BETWEEN_LOOKS = 200  # at a pipe that has nothing to give
MOST_DIGITS = 18  # of a whole number that 64 bits hold, whatever it is


def parse_json(data: bytes | str) -> Any:
    """What JSON says, or a ValueError; a number that no float holds stays text, which nothing takes for a number."""
    try:
        return json.loads(
            data,
            parse_int=lambda text: int(text) if len(text) <= MOST_DIGITS else text,
            parse_float=lambda text: number if math.isfinite(number := float(text)) else text,
            parse_constant=str,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def sort_command(path: str) -> str:
    """A command that brings a file's lines into the order of ``LC_ALL=C sort``, as advice."""
    return f"{'zcat' if is_gzip(path) else 'cat'} {shlex.quote(path)} | LC_ALL=C sort | gzip -1 > sorted.gz"


def without_compression_suffix(path: str) -> Path:
    """``phrase-table`` for ``phrase-table.gz``."""
    given = Path(path)
    return given.with_suffix("") if is_gzip(path) else given


@contextlib.contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Name the file when the system fails to read it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def find_input(path: str) -> str:
    """The readable file that a user means: ``path``, or ``path.gz`` as Moses's own scripts try."""
    if path == STANDARD_STREAM:
        return path
    for candidate in (path, path + ".gz"):
        with reading(candidate), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISDIR(Path(candidate).stat().st_mode):
                raise InputError(f"{candidate}: expected a file, found a directory")
            return candidate
    raise InputError(f"{path}: expected a file, found none (nor {path}.gz)")


def check_folder(folder: Path) -> None:
    """Raise CheckpointError unless there is a folder, which may be a model's."""
    if not folder.is_dir():
        found, advice = ("a file", MADE_BY) if folder.exists() else ("nothing", "")
        raise CheckpointError(f"{folder}: expected a model folder, found {found}", advice=advice)


def is_gzip(path: str) -> bool:
    """Whether a file's name asks for gzip, and not for plain text."""
    return Path(path).suffix == ".gz"


def is_misnamed(path: str) -> bool:
    """Whether a file's name asks for gzip, and its first bytes are plain text."""
    if not is_gzip(path) or not Path(path).is_file():
        return False
    with contextlib.suppress(OSError), Path(path).open("rb") as file:  # whoever reads it will say what is wrong
        head = file.read(HEAD_BYTES)
        return bool(head) and not head.startswith((GZIP, *OTHERS))
    return False


def fingerprint(path: str) -> dict[str, object]:
    """What tells one input from another without reading it whole: its size and hashes of its first and last MB."""
    if not Path(path).is_file():
        return {"pipe": path, "seen": time.time_ns()}  # never the same again
    with reading(path), Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        head = file.read(IDENTITY_BYTES)
        file.seek(max(status.st_size - IDENTITY_BYTES, 0))
        tail = file.read(IDENTITY_BYTES)
    return {
        "bytes": status.st_size,
        "modified": status.st_mtime_ns,
        "first_mb": hashlib.sha256(head).hexdigest(),
        "last_mb": hashlib.sha256(tail).hexdigest(),
    }


def change_stamp(path: str) -> tuple[int, ...]:
    """What changes when a file is written to: inode, size and time; empty for a pipe."""
    if not Path(path).is_file():
        return ()
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def show_nothing(_done: int, _share: float | None) -> None:
    """In place of an `Advanced` where nobody looks."""


@dataclass
class Meter:
    """Follows the reading of a file.

    `share` is how much of it was read so far, 0 to 1, or None where that cannot be known (a pipe); `bytes_read` counts
    them as they are stored, `lines_read` those that were given out. `waiting` is called several times a second while a
    pipe has nothing to give; it may raise.
    """

    share: float | None = None
    bytes_read: int = 0
    lines_read: int = 0
    waiting: Callable[[], None] = lambda: None


class MeteredFile(io.FileIO):
    """A file that notes on a meter how much of it was read, and can be interrupted while it waits."""

    def __init__(self, file: str | int, meter: Meter) -> None:
        # Opening a FIFO without O_NONBLOCK waits for its writer, where nothing could interrupt it.
        super().__init__(
            file, closefd=isinstance(file, str), opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)
        )
        status = os.fstat(self.fileno())
        self._size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        self._poll = select.poll()
        self._poll.register(self.fileno(), select.POLLIN)
        self._meter, self._read = meter, 0

    def readinto(self, buffer: Buffer, /) -> int:
        """Read into a buffer; first `HEAD_BYTES` at least, if there are so many, however slowly a pipe gives them."""
        room, before, more = memoryview(buffer).cast("B"), self._read, None
        while more is None or (more and self._read < HEAD_BYTES):
            while not self._poll.poll(MILLISECONDS_BETWEEN_LOOKS):
                self._meter.waiting()
            more = super().readinto(room[self._read - before :])  # None: there was nothing to read after all
            self._read += more or 0
        self._meter.bytes_read += self._read - before
        if self._size:
            self._meter.share = self._meter.bytes_read / self._size
        return self._read - before


@contextlib.contextmanager
def _open(path: str, meter: Meter) -> Iterator[BinaryIO]:
    """Open a file, or ``-`` for standard input, by its first bytes and not by its name."""
    with contextlib.ExitStack() as stack:
        if path == STANDARD_STREAM and sys.stdin is None:
            raise InputError("standard input: is closed")
        with reading(path):
            raw = MeteredFile(sys.stdin.fileno() if path == STANDARD_STREAM else path, meter)
            stream = stack.enter_context(io.BufferedReader(raw, BUFFER_BYTES))
            head = stream.peek(HEAD_BYTES)  # more, as a rule
        if not head:  # an interrupted compressor leaves such files behind
            raise FormatError(path, None, "at least one line", "an empty file")
        for magic, printer in OTHERS.items():
            if head.startswith(magic):
                advice = f"Read it through a pipe: {printer} {shlex.quote(path)} | … - (a lone - is standard input)."
                raise FormatError(path, None, "plain text or gzip", f"a file for {printer}", advice)
        if head.startswith(GZIP):  # without threads: theirs would read 8 MB ahead of the meter
            yield stack.enter_context(xopen(stream, "rb", format="gz", threads=0))
        else:
            yield stream


def read_lines(path: str, *, max_line_bytes: int = MAX_LINE_BYTES, meter: Meter | None = None) -> Iterator[bytes]:
    """The lines of a file, each with its ``\\n`` (the last one as it is); see `read_blocks`."""
    for block in read_blocks(path, max_line_bytes=max_line_bytes, meter=meter):
        yield from io.BytesIO(block)


def read_blocks(path: str, *, max_line_bytes: int = MAX_LINE_BYTES, meter: Meter | None = None) -> Iterator[bytes]:
    """The content of a file in blocks of whole lines (the last line of all as it is); `meter` follows the reading.

    A FormatError says that it is empty, ends early, is damaged, or has a line of more than `max_line_bytes`.
    """
    meter, rest = meter or Meter(), b""
    with _open(path, meter) as stream:
        while piece := _read_piece(stream, path, meter):
            end = piece.rfind(b"\n") + 1
            block, rest = (rest + piece[:end], piece[end:]) if end else (b"", rest + piece)
            too_long = b""
            if len(block) > max_line_bytes or len(rest) > max_line_bytes:
                block, too_long = _cut_before_long(block, rest, max_line_bytes)
            if block:
                meter.lines_read += block.count(b"\n")
                yield block
            if too_long:
                expected = f"a line of at most {max_line_bytes:,} bytes"
                raise FormatError(path, meter.lines_read + 1, expected, shown(too_long), "Is this a phrase table?")
        if rest:
            meter.lines_read += 1
            yield rest


def _cut_before_long(block: bytes, rest: bytes, max_line_bytes: int) -> tuple[bytes, bytes]:
    """The lines of a block before the first that is too long, and that one; the rest is one more."""
    end = 0
    for line in itertools.chain(io.BytesIO(block), [rest]):
        if len(line) > max_line_bytes:
            return block[:end], line
        end += len(line)
    return block, b""


def _read_piece(stream: BinaryIO, path: str, meter: Meter) -> bytes:
    after = f"after line {meter.lines_read:,}"
    try:
        return stream.read(BLOCK_BYTES)
    except EOFError as error:
        found = f"an early end at compressed byte {meter.bytes_read:,}, {after}"
        advice = "A full disk or a broken transfer cut the file short: make it again."
        raise FormatError(path, None, "a whole compressed file", found, advice) from error
    except MosesRnnError:  # raised by `Meter.waiting`
        raise
    except MemoryError as error:
        raise MosesRnnError(f"{path}: memory ran out {after}") from error
    except Exception as error:  # each decompressor raises a class of its own
        if isinstance(error, OSError) and error.errno is not None:
            # The file may be sound and the disk or the network not: no reason to reject it.
            raise MosesRnnError(f"{path}: cannot be read on {after}: {error.strerror}") from error
        found = f"damage {after}: {error}"
        raise FormatError(path, None, "a sound compressed file", found, "Make or copy it again.") from error
