"""Compressed and plain byte streams: lines that end at ``\\n`` only, and outputs that exist whole or not at all.

Why not text mode or ``splitlines``: both also cut at U+2028, U+0085 and a lone carriage return, which Moses keeps
inside a token, so line counts would drift.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import io
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self, cast

from xopen import xopen

from moses_rnn.errors import FormatError, InputError, OutputError, shown

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

STANDARD_STREAM = "-"
MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
SUFFIXES = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst"}
READ_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 20
DEFAULT_LEVEL = 1  # Python's default of 9 is 17 times slower for 15 % less space


def existing_input(path: str) -> str:
    """The readable file that a user means: ``path``, or ``path.gz`` as Moses's own scripts try.

    Raises:
        InputError: neither exists, or it is a directory.
    """
    if path == STANDARD_STREAM:
        return path
    for candidate in (path, path + ".gz"):
        if Path(candidate).is_dir():
            raise InputError(f"{candidate}: expected a file, found a directory")
        if Path(candidate).exists():
            return candidate
    raise InputError(f"{path}: expected a file, found nothing of that name (nor {path}.gz)")


def compression_of(path: str) -> str | None:
    """The format a file name asks for: gz, bz2, xz, zst, or None for plain."""
    return SUFFIXES.get(Path(path).suffix)


@dataclass
class Meter:
    """How much of a file was read so far: 0 to 1, or None where that cannot be known (a pipe)."""

    share: float | None = None


def identity_of(path: str) -> dict[str, object]:
    """What tells one input from another without reading it whole: its size and hashes of its first and last MB."""
    if not Path(path).is_file():
        return {"pipe": path, "seen": time.time_ns()}  # never the same again
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(READ_BYTES)
        file.seek(max(size - READ_BYTES, 0))
        tail = file.read(READ_BYTES)
    stamp = Path(path).stat().st_mtime_ns
    return {
        "bytes": size,
        "modified": stamp,
        "first_mb": hashlib.sha256(head).hexdigest(),
        "last_mb": hashlib.sha256(tail).hexdigest(),
    }


def stamp_of(path: str) -> tuple[int, ...]:
    """What changes when somebody writes to a file: inode, size and time; empty for a pipe."""
    if not Path(path).is_file():
        return ()
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextlib.contextmanager
def open_input(path: str, meter: Meter | None = None) -> Iterator[BinaryIO]:
    """Open a file, or ``-`` for standard input, by its first bytes and not by its name.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is empty (an interrupted compressor leaves such files behind).
    """
    with contextlib.ExitStack() as stack:
        raw = _open_raw(path, stack, meter)
        head = raw.peek(6)[:6]
        if not head:
            raise FormatError(path, None, "at least one line", "an empty file")
        kind = next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)
        if kind is None:
            yield raw
        else:
            # No threads: those of xz and zst take damaged ends for good ones, that of gz reads 8 MB ahead of the meter.
            yield stack.enter_context(xopen(raw, "rb", format=kind, threads=0))


class _MeteredFile(io.FileIO):
    """A file that notes on a meter how much of it was read."""

    def __init__(self, path: str, meter: Meter) -> None:
        super().__init__(path)
        self._meter = meter
        self._size = os.fstat(self.fileno()).st_size  # 0 for a FIFO
        self._read = 0

    def readinto(self, buffer: Buffer, /) -> int | None:
        count = super().readinto(buffer)
        self._read += count or 0
        if self._size:
            self._meter.share = self._read / self._size
        return count


def _open_raw(path: str, stack: contextlib.ExitStack, meter: Meter | None) -> io.BufferedReader:
    if path == STANDARD_STREAM:
        return cast(io.BufferedReader, sys.stdin.buffer)
    try:
        return stack.enter_context(io.BufferedReader(_MeteredFile(path, meter or Meter()), READ_BYTES // 8))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def read_lines(path: str, *, max_line_bytes: int = MAX_LINE_BYTES, meter: Meter | None = None) -> Iterator[bytes]:
    """The lines of a file, each with its ``\\n`` (the last one as it is); `meter` follows the reading.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is empty, ends early, is damaged, or has a line of more than ``max_line_bytes``.
    """
    with open_input(path, meter) as stream:
        lines_read = 0
        rest = b""
        while block := _read_block(stream, path, lines_read):
            end = block.rfind(b"\n") + 1
            whole, tail = rest + block[:end], block[end:]
            if not end:
                rest = whole + tail
                _check_length(rest, max_line_bytes, path, lines_read)
                continue
            rest = tail
            for line in io.BytesIO(whole):
                lines_read += 1
                _check_length(line, max_line_bytes, path, lines_read - 1)
                yield line
        if rest:
            yield rest


def _read_block(stream: BinaryIO, path: str, lines_read: int) -> bytes:
    try:
        return stream.read(READ_BYTES)
    except EOFError as error:
        raise FormatError(
            path,
            None,
            "a whole compressed file",
            f"an early end after line {lines_read}",
            "The file was cut short, by a full disk or a broken transfer: make it anew.",
        ) from error
    except Exception as error:  # each decompressor raises a class of its own
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{path}: cannot be read on after line {lines_read}: {error.strerror}") from error
        raise FormatError(
            path, None, "a sound compressed file", f"damage after line {lines_read}: {error}", "Make or copy it anew."
        ) from error


def _check_length(line: bytes, max_line_bytes: int, path: str, lines_before: int) -> None:
    if len(line) > max_line_bytes:
        raise FormatError(
            path, lines_before + 1, f"a line of at most {max_line_bytes} bytes", shown(line), "Is this a phrase table?"
        )


def compressed(data: bytes, kind: str | None, level: int = DEFAULT_LEVEL) -> bytes:
    """Bytes as one complete member of a compressed file; members one after another are again a valid file.

    Equal data give equal bytes. That is why gz is zlib's here and not ISA-L's, which is four times as fast: its output
    was seen to differ between two equal runs, about once in twenty.
    """
    if kind is None:
        return data
    if kind == "gz":
        return gzip.compress(data, level, mtime=0)
    buffer = io.BytesIO()
    with xopen(buffer, "wb", format=kind, compresslevel=max(level, 1), threads=0) as member:
        member.write(data)
    return buffer.getvalue()


def refuse_inputs(path: str, inputs: tuple[str, ...]) -> None:
    """Raise OutputError if an output is one of the inputs, by whatever spelling."""
    if Path(path).exists() and not Path(path).is_file():
        raise OutputError(f"{path}: is no regular file and is not replaced")
    for given in inputs:
        if Path(path).exists() and Path(given).exists() and Path(path).samefile(given):
            raise OutputError(f"{path}: is the input {given} itself; name another output")


def open_locked(path: Path) -> BinaryIO | None:
    """Open a file to read and write, made if need be, if no other process holds it; None if one does.

    The lock ends with the process. A file that was renamed away between opening and locking is not taken for ours.
    """
    while True:
        stream = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666), "r+b")  # noqa: SIM115, PTH123
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(stream, path):
                return stream
        except BlockingIOError:
            stream.close()
            return None
        stream.close()


def _is_at(stream: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


class OutputFile:
    """A small file that appears under its name only when `commit` is called; until then it is ``.NAME.part`` beside it.

    Args:
        path: final name.
        force: an existing file may be replaced.
        inputs: files that must not be the output, by whatever spelling.

    Raises:
        OutputError: the place cannot be written, the file exists, or it is one of the inputs.
    """

    def __init__(self, path: str, *, force: bool = False, inputs: tuple[str, ...] = ()) -> None:
        self.path = path
        self._target = Path(path)
        self._part = self._target.with_name(f".{self._target.name}.part")
        refuse_inputs(path, inputs)
        if self._target.exists() and not force:
            raise OutputError(f"{path}: exists already; use --force to replace it")
        try:
            stream = open_locked(self._part)
        except OSError as error:
            raise self._failure(error) from error
        if stream is None:
            raise OutputError(f"{path}: is being written by another run")
        self._stream = stream
        self._stream.truncate(0)

    def _failure(self, error: OSError) -> OutputError:
        return OutputError(f"{self.path}: cannot be written: {error.strerror}")

    def commit(self, data: bytes) -> None:
        """Write the content, compressed if the suffix asks for it, make it durable and give it its name."""
        try:
            self._stream.write(compressed(data, compression_of(self.path)))
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._part.replace(self._target)
            sync_directory(self._target.parent)
        except OSError as error:
            raise self._failure(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Without a commit, nothing stays."""
        if _is_at(self._stream, self._part):
            self._part.unlink()
        with contextlib.suppress(OSError):
            self._stream.close()


class NoOutput:
    """In place of an `OutputFile` that nobody asked for."""

    def commit(self, data: bytes) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def sync_directory(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
