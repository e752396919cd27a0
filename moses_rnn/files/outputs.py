"""Files that come out: whole or not at all, never over an input or through a link, and by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from zlib_ng import gzip_ng

from moses_rnn.errors import OutputError, write_failure
from moses_rnn.files.streams import STANDARD_STREAM, is_gzip

Note = dict[str, Any]  # JSON
OTHER_SUFFIXES = {".bz2", ".xz", ".zst"}  # of files that are not written
DEFAULT_LEVEL = 2  # of zlib-ng: a little smaller and a quarter faster than gzip -1
READ_BYTES = 1 << 20


def compressed(data: bytes, level: int = DEFAULT_LEVEL) -> bytes:
    """Bytes as one complete member of a gzip file; members one after another are again a valid file.

    Equal data give equal bytes. That is why they are zlib-ng's here and not ISA-L's, which is faster still: its output
    was seen to differ between two equal runs, about once in twenty.
    """
    member: bytes = gzip_ng.compress(data, level, mtime=0)  # type: ignore[no-untyped-call]
    return member


@dataclass(frozen=True)
class Packing:
    """Makes parts of a file, each a member of its own if it is gzip, in whatever thread or process."""

    gzip: bool = False
    level: int = DEFAULT_LEVEL

    def __call__(self, data: bytes) -> bytes:
        """Bytes as a part."""
        return compressed(data, self.level) if self.gzip else data


def hidden(path: str, suffix: str) -> Path:
    """What is kept beside an output while it is made."""
    return Path(path).with_name(f".{Path(path).name}.{suffix}")


def refuse_no_name(path: str) -> None:
    """Raise OutputError if a path does not name a file, or asks for another compression than gzip."""
    if path.endswith("/") or Path(path).name in ("", ".", ".."):
        raise OutputError(f"{path}: expected the name of a file")
    if Path(path).suffix in OTHER_SUFFIXES:
        raise OutputError(f"{path}: expected the name of a plain or .gz file; for others, write to a pipe")


def refuse_equal(paths: Iterable[str]) -> None:
    """Raise OutputError if two outputs, or what is kept beside them while they are made, are one file."""
    taken: dict[Path, str] = {}
    for path in paths:
        refuse_no_name(path)
        for place in (Path(path), *(hidden(path, suffix) for suffix in ("part", "state", "state.new"))):
            resolved = place.parent.resolve() / place.name
            if resolved in taken:
                raise OutputError(f"{path}: is where {taken[resolved]} goes; name another output")
            taken[resolved] = path


def refuse_inputs(path: Path, inputs: tuple[str, ...]) -> None:
    """Raise OutputError if an output is one of the inputs, by whatever spelling."""
    if path.exists() and not path.is_file():
        raise OutputError(f"{path}: is not a regular file and is not replaced")
    for given in inputs:
        if path.exists() and Path(given).exists() and path.samefile(given):
            raise OutputError(f"{path}: is the input {given} itself; name another output")


def open_no_link(path: Path) -> BinaryIO:
    """Open a file to read and write, made if need be; a symbolic link there is an OSError, not another file."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666), "r+b", buffering=0)  # noqa: PTH123, the descriptor's flags are the point


def open_locked(path: Path) -> BinaryIO | None:
    """Open a file to read and write, made if need be, if no other process holds it; None if one does.

    The lock ends with the process. A file that was renamed away between opening and locking is not taken for ours.
    """
    while True:
        stream = open_no_link(path)
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


def write_all(stream: BinaryIO, data: bytes) -> None:
    """Write bytes; a file of `open_no_link` may take fewer than it is given."""
    left = memoryview(data)
    while left:
        left = left[os.write(stream.fileno(), left) :]


def sync_directory(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Part:
    """A file while it is made, ``.NAME.part`` beside its name; no other run can make it meanwhile.

    `bytes` are those that it has, `published` says that it has its name.

    Raises:
        OutputError: the place cannot be written, the file exists and may not be replaced, or it is one of the inputs.
    """

    def __init__(self, path: str, *, replace: bool, inputs: tuple[str, ...] = ()) -> None:
        refuse_no_name(path)
        self.path = path
        self._target, self._part = Path(path), hidden(path, "part")
        refuse_inputs(self._target, inputs)
        refuse_inputs(self._part, inputs)
        if self._target.exists() and not replace:
            raise OutputError(f"{path}: exists already; use --force to replace it")
        self._stream = hold(path, self._part)
        self.bytes, self._hash = 0, hashlib.sha256()
        self.published = False

    @property
    def size(self) -> int:
        """Bytes on disk, an interrupted run's among them."""
        return os.fstat(self._stream.fileno()).st_size

    def restart(self) -> None:
        """Begin with an empty file."""
        self._cut(0)
        self.bytes, self._hash = 0, hashlib.sha256()

    def restore(self, saved: Note, *, complete: bool) -> None:
        """Continue behind the bytes of a digest, after a check of them; a `complete` file may have its name already."""
        size: int = saved["bytes"]
        self.published = complete and size > 0 and not self.size
        place = self._target if self.published else self._part
        self.bytes, self._hash = 0, hashlib.sha256()
        with contextlib.suppress(FileNotFoundError), place.open("rb") as file:
            while piece := file.read(min(READ_BYTES, size - self.bytes)):
                self.bytes += len(piece)
                self._hash.update(piece)
        if self.digest() != saved:
            raise OutputError(
                f"{place}: expected the {size:,} bytes that an interrupted run has saved, found others",
                advice="The file was damaged or changed. --force without --resume starts over.",
            )
        if not self.published:
            self._cut(size)

    def _cut(self, size: int) -> None:
        try:
            self._stream.truncate(size)
            self._stream.seek(size)
        except OSError as error:
            raise write_failure(self.path, error) from error

    def write(self, data: bytes) -> None:
        """Write further bytes, as they are."""
        try:
            write_all(self._stream, data)
        except OSError as error:
            raise write_failure(self.path, error, len(data)) from error
        self.bytes += len(data)
        self._hash.update(data)

    def sync(self) -> None:
        """Make what was written durable."""
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise write_failure(self.path, error) from error

    def digest(self) -> Note:
        """Size in bytes and SHA-256 of what was written."""
        return {"bytes": self.bytes, "sha256": self._hash.hexdigest()}

    def publish(self) -> None:
        """Give the file its name, which it may have."""
        try:
            if not self.published:
                self._part.replace(self._target)
            self.published = True
            sync_directory(self._target.parent)
        except OSError as error:
            raise write_failure(self.path, error) from error

    def close(self, *, keep: bool = False) -> None:
        """Let other runs make the file; without `keep`, nothing stays but what has its name."""
        if not keep and _is_at(self._stream, self._part):
            self._part.unlink()
        with contextlib.suppress(OSError):
            self._stream.close()


def hold(path: str, place: Path, holder: Callable[[], str] = str) -> BinaryIO:
    """Open what is kept beside an output, locked against other runs; `holder` describes the one that has it."""
    try:
        stream = open_locked(place)
    except OSError as error:
        raise write_failure(path, error) from error
    if stream is None:
        raise OutputError(f"{path}: is being written by another run{holder()}")
    return stream


class OutputFile(Part):
    """A file that appears under its name only when `commit` is called.

    Args:
        path: final name.
        force: an existing file may be replaced.
        inputs: files that must not be the output, by whatever spelling.

    Raises:
        OutputError: as for `Part`.
    """

    def __init__(self, path: str, *, force: bool = False, inputs: tuple[str, ...] = ()) -> None:
        if path == STANDARD_STREAM:
            raise OutputError(f"{path}: expected the name of a file: standard output is not written to here")
        super().__init__(path, replace=force, inputs=inputs)
        self.restart()
        self._pack = Packing(is_gzip(path))

    def append(self, data: bytes, /) -> None:
        """Write a part of the content, compressed if the suffix asks for it."""
        self.write(self._pack(data))

    def complete(self, data: bytes = b"") -> None:
        """Write the rest of the content and make all of it durable: nothing that a full disk refuses is left to do."""
        if data or not self.bytes:
            self.append(data)
        self.sync()

    def commit(self, data: bytes = b"") -> None:
        """Complete the file and give it its name."""
        self.complete(data)
        self.publish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Without a commit, nothing stays."""
        self.close()


def commit_all(files: Sequence[OutputFile | NoOutput]) -> None:
    """Give several files their names once all are complete: a full disk leaves all of them or none."""
    for file in files:
        file.complete()
    for file in files:
        file.commit()


class NoOutput:
    """In place of an `OutputFile` that is not wanted."""

    def complete(self, data: bytes = b"") -> None:
        """Do nothing."""

    commit = complete

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class StandardOutput:
    """In place of a file: what is written is gone."""

    path = STANDARD_STREAM

    def append(self, data: bytes, /) -> None:
        """Write a block."""
        left = memoryview(data)
        while left:  # an unbuffered stream may take less than it is given
            left = left[sys.stdout.buffer.write(left) :]

    def commit(self) -> None:
        """Make sure that everything was taken."""
        sys.stdout.buffer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""
