"""Input streams: plain or gzip, read to the end or rejected, and split into lines at ``\\n`` only.

Text mode and ``splitlines`` would also split at U+2028, U+0085 or a lone carriage return. Moses keeps these inside a
token, so line counts would drift.
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
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from xopen import xopen

from moses_rnn.errors import (
    ArgumentError,
    FormatError,
    InputError,
    MosesRnnError,
    shown,
    shown_value,
)

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

# Progress callback: takes the amount done, in lines or the like, and its share of the whole if known
Advanced = Callable[[int, float | None], None]
STANDARD_STREAM = "-"
FEW_LINE_ENDS = "Does the file lack line ends?"  # advice for a line that is too long
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8
UTF_16 = b"\xff\xfe", b"\xfe\xff"  # its byte order marks
GZIP = b"\x1f\x8b"  # magic bytes
OTHERS = {b"BZh": "bzcat", b"\xfd7zXZ\x00": "xzcat", b"\x28\xb5\x2f\xfd": "zstdcat"}  # magic bytes and their readers
HEAD_BYTES = 6
BUFFER_BYTES = 1 << 17  # compressed bytes per read
IDENTITY_BYTES = 1 << 20  # bytes hashed at each end of a file to identify it
BLOCK_BYTES = 1 << 19  # fits a core's cache; numpy's arrays for a block are several times as large
MAX_LINE_BYTES = 1 << 20
GZIP_WINDOW = 31  # zlib's number for gzip
SHOWN_BEHIND = 40  # bytes
PIECE_BYTES = 1 << 14  # of compressed data, which may be a thousand times as large
MILLISECONDS_BETWEEN_LOOKS = 200  # at a pipe without data
MOST_DIGITS = 18  # any such integer fits in 64 bits


def parse_json(data: bytes | str) -> Any:
    """Parse JSON or raise ValueError; numbers too large for int64 or float stay strings, so that type checks fail."""
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
    """Return a shell command that sorts a file by ``LC_ALL=C sort``, as advice."""
    return f"{'zcat' if is_gzip(path) else 'cat'} {shlex.quote(path)} | LC_ALL=C sort | gzip -1 > sorted.gz"


def without_compression_suffix(path: str) -> Path:
    """Return ``phrase-table`` for ``phrase-table.gz``."""
    given = Path(path)
    return given.with_suffix("") if is_gzip(path) else given


@contextlib.contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turn OSErrors into InputErrors that name the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def checked_path(argument: str, value: object) -> str:
    """Return a path as text; raise ArgumentError, naming the argument, if it is none."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path or "\0" in path:
        raise ArgumentError(argument, "a path, as str or os.PathLike", shown_value(value))
    return path


def find_input(path: str) -> str:
    """Return the existing file that a user means: ``path``, or ``path.gz`` as Moses's own scripts try."""
    if path == STANDARD_STREAM:
        return path
    for candidate in (path, path + ".gz"):
        with reading(candidate), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISDIR(Path(candidate).stat().st_mode):
                raise InputError(f"{candidate}: expected a file, found a directory")
            return candidate
    raise InputError(f"{path}: expected a file, found none (nor {path}.gz)")


def regular_file(path: str) -> str:
    """Find an input that can be read more than once; refuse standard input and pipes."""
    found = find_input(path)
    if found == STANDARD_STREAM or not Path(found).is_file():
        raise InputError(f"{found}: expected a regular file, because it is read more than once, found a pipe")
    return found


def is_gzip(path: str) -> bool:
    """Whether a file's name ends in .gz."""
    return Path(path).suffix == ".gz"


def is_misnamed(path: str) -> bool:
    """Whether a file's name ends in .gz although its first bytes are plain text."""
    if not is_gzip(path) or not Path(path).is_file():
        return False
    with contextlib.suppress(OSError), Path(path).open("rb") as file:  # reading it later reports the error
        head = file.read(HEAD_BYTES)
        return bool(head) and not head.startswith((GZIP, *OTHERS))
    return False


def fingerprint(path: str) -> dict[str, object]:
    """Identify an input without reading all of it: by size, time, and hashes of its first and last MB."""
    if not Path(path).is_file():
        return {"pipe": path, "seen": time.time_ns()}  # never equal to another
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


def check_unchanged(path: str, before: Mapping[str, object]) -> None:
    """Raise InputError if a file's `fingerprint` has changed; a pipe's cannot."""
    if "pipe" not in before and fingerprint(path) != before:
        raise InputError(f"{path}: was changed while it was read; nothing was written")


def show_nothing(_done: int, _share: float | None) -> None:
    """Show no progress; an `Advanced` that does nothing."""


@dataclass
class Meter:
    """Measures how much of a file was read.

    `share` is the part read so far, 0 to 1, or None if unknown (a pipe); `bytes_read` counts stored (compressed) bytes,
    `lines_read` the lines yielded. `waiting` is called several times a second while a pipe has no data; it may raise.
    """

    share: float | None = None
    bytes_read: int = 0
    lines_read: int = 0
    waiting: Callable[[], None] = lambda: None


class MeteredFile(io.FileIO):
    """A file that updates a meter as it is read, and can be interrupted while it waits for data."""

    def __init__(self, file: str | int, meter: Meter) -> None:
        # Without O_NONBLOCK, opening a FIFO would wait for its writer and could not be interrupted.
        super().__init__(
            file, closefd=isinstance(file, str), opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)
        )
        status = os.fstat(self.fileno())
        self._size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        self._poll = select.poll()
        self._poll.register(self.fileno(), select.POLLIN)
        self._meter, self._read = meter, 0

    def readinto(self, buffer: Buffer, /) -> int:
        """Read into a buffer; the first read waits until a pipe has given `HEAD_BYTES` or ends."""
        room, before, more = memoryview(buffer).cast("B"), self._read, None
        while more is None or (more and self._read < HEAD_BYTES):
            while not self._poll.poll(MILLISECONDS_BETWEEN_LOOKS):
                self._meter.waiting()
            more = super().readinto(room[self._read - before :])  # None: no data after all
            self._read += more or 0
        self._meter.bytes_read += self._read - before
        if self._size:
            self._meter.share = self._meter.bytes_read / self._size
        return self._read - before


@contextlib.contextmanager
def _open(path: str, meter: Meter) -> Iterator[BinaryIO]:
    """Open a file, or ``-`` for standard input; its first bytes, not its name, tell whether it is gzip."""
    with contextlib.ExitStack() as stack:
        if path == STANDARD_STREAM and sys.stdin is None:
            raise InputError("standard input: is closed")
        with reading(path):
            raw = MeteredFile(sys.stdin.fileno() if path == STANDARD_STREAM else path, meter)
            stream = stack.enter_context(io.BufferedReader(raw, BUFFER_BYTES))
            head = stream.peek(HEAD_BYTES)  # usually more
        if not head:  # an interrupted compressor leaves such files behind
            raise FormatError(path, None, "at least one line", "an empty file")
        for magic, printer in OTHERS.items():
            if head.startswith(magic):
                advice = f"Unpack it: {printer} {shlex.quote(path)} > FILE"
                raise FormatError(path, None, "plain text or gzip", f"a file for {printer}", advice)
        if head.startswith(GZIP):  # threads would read 8 MB ahead of the meter
            yield stack.enter_context(xopen(stream, "rb", format="gz", threads=0))
        else:
            yield stream


def read_lines(path: str, *, max_line_bytes: int = MAX_LINE_BYTES, meter: Meter | None = None) -> Generator[bytes]:
    """Yield the lines of a file, each with its ``\\n`` (the last may lack it); see `read_blocks`."""
    for block in read_blocks(path, max_line_bytes=max_line_bytes, meter=meter):
        yield from io.BytesIO(block)


def read_text(path: str, *, meter: Meter | None = None) -> Generator[bytes]:
    """Yield the same of a text that is read for its words; see `as_text`."""
    for block in as_text(read_blocks(path, meter=meter), path):
        yield from io.BytesIO(block)


def as_text(parts: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Leave out the byte order mark of a text in lines or blocks: it would be part of the first word.

    Refuse UTF-16 and what is still compressed.
    """
    rest = iter(parts)
    first = next(rest, b"")
    if first.startswith(UTF_16):
        advice = f"Convert it: iconv -f UTF-16 -t UTF-8 {shlex.quote(name)} > FILE"
        raise FormatError(name, 1, "UTF-8", "UTF-16", advice)
    if first.startswith(GZIP):
        raise FormatError(name, 1, "UTF-8", "gzip data", "Unpack it with gunzip.")
    first = first.removeprefix(BYTE_ORDER_MARK)
    return itertools.chain([first] if first else [], rest)


def read_blocks(path: str, *, max_line_bytes: int = MAX_LINE_BYTES, meter: Meter | None = None) -> Iterator[bytes]:
    """Yield a file's content in blocks of whole lines (the last line may lack its ``\\n``), updating `meter`.

    Raise FormatError if the file is empty, cut short or damaged, or has a line longer than `max_line_bytes`.
    """
    meter, rest = meter or Meter(), b""
    with _open(path, meter) as stream:
        while piece := _read_piece(stream, path, meter):
            end = piece.rfind(b"\n") + 1
            block, rest = (rest + piece[:end], piece[end:]) if end else (b"", rest + piece)
            if len(block) > max_line_bytes or len(rest) > max_line_bytes:
                for number, line in enumerate(io.BytesIO(block + rest), start=meter.lines_read + 1):
                    if len(line) > max_line_bytes:
                        expected = f"a line of at most {max_line_bytes:,} bytes"
                        raise FormatError(path, number, expected, shown(line), FEW_LINE_ENDS)
            if block:
                meter.lines_read += block.count(b"\n")
                yield block
        if rest:
            meter.lines_read += 1
            yield rest


def _read_piece(stream: BinaryIO, path: str, meter: Meter) -> bytes:
    after = f"after line {meter.lines_read:,}"
    try:
        return stream.read(BLOCK_BYTES)
    except (EOFError, BadGzipFile) as error:
        if behind := _behind_members(path):
            found = f"{behind[:SHOWN_BEHIND]!r} behind the compressed data"
            advice = (
                f"If that does not belong to it, this leaves it out: zcat {shlex.quote(path)} | gzip > NEW.gz\n"
                "If it does, make or copy the file again."
            )
            raise FormatError(path, None, "a sound compressed file", found, advice) from error
        if isinstance(error, BadGzipFile):
            raise _damage(path, after, error) from error
        found = f"an early end at compressed byte {meter.bytes_read:,}, {after}"
        advice = "A full disk or a broken transfer cut the file short: make it again."
        raise FormatError(path, None, "a whole compressed file", found, advice) from error
    except MosesRnnError:  # raised by `Meter.waiting`
        raise
    except MemoryError as error:
        raise MosesRnnError(f"{path}: out of memory {after}") from error
    except Exception as error:  # each decompressor raises a class of its own
        if isinstance(error, OSError) and error.errno is not None:
            # The disk or the network may have failed, not the file: no reason to reject it.
            raise MosesRnnError(f"{path}: cannot be read {after}: {error.strerror}") from error
        raise _damage(path, after, error) from error


def _damage(path: str, after: str, error: Exception) -> FormatError:
    found = f"damage {after}: {error}"
    return FormatError(path, None, "a sound compressed file", found, "Make or copy it again.")


def _behind_members(path: str) -> bytes:
    """Return the beginning of what follows the gzip members of a file; empty if that is a member, or for a pipe."""
    with contextlib.suppress(zlib.error), contextlib.ExitStack() as stack:
        file = stack.enter_context(Path(path).open("rb")) if Path(path).is_file() else io.BytesIO()
        unpacker, rest = zlib.decompressobj(GZIP_WINDOW), b""
        while data := rest or file.read(PIECE_BYTES):
            if unpacker.eof:
                data = data.lstrip(b"\0") or file.read(PIECE_BYTES).lstrip(b"\0")  # padding is allowed
                if data and not data.startswith(GZIP) and not GZIP.startswith(data):
                    return data
                unpacker = zlib.decompressobj(GZIP_WINDOW)
            unpacker.decompress(data)
            rest = unpacker.unused_data
    return b""
