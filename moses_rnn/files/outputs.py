"""Files that come out: whole or not at all, never over an input or through a link, and by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from zlib_ng import gzip_ng

from moses_rnn.errors import AlreadyComplete, OutputError, write_failure
from moses_rnn.files.records import Note
from moses_rnn.files.streams import STANDARD_STREAM, is_gzip

OTHER_SUFFIXES = {".bz2", ".xz", ".zst"}  # of files that are not written
DEFAULT_LEVEL = 2  # of zlib-ng: a little smaller and a quarter faster than gzip -1


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
        target = Path(path)
        hidden = [target.with_name(f".{target.name}.{suffix}") for suffix in ("part", "journal")]
        for place in (target, *hidden):
            resolved = place.parent.resolve() / place.name
            if resolved in taken:
                raise OutputError(f"{path}: is where {taken[resolved]} goes; name another output")
            taken[resolved] = path


def refuse_inputs(path: str, inputs: tuple[str, ...]) -> None:
    """Raise OutputError if an output is one of the inputs, by whatever spelling."""
    if Path(path).exists() and not Path(path).is_file():
        raise OutputError(f"{path}: is not a regular file and is not replaced")
    for given in inputs:
        if Path(path).exists() and Path(given).exists() and Path(path).samefile(given):
            raise OutputError(f"{path}: is the input {given} itself; name another output")


def stop_if_complete(paths: Sequence[str], inputs: tuple[str, ...]) -> None:
    """Leave a run alone that is to be resumed and has nothing left to do.

    Args:
        paths: of the output whose blocks are recorded in a journal, and of what belongs to it.
        inputs: files that decide what is in them.

    Raises:
        AlreadyComplete: the outputs are there, newer than the inputs, and nothing is left of their making.
        OutputError: an input has changed since.
    """
    target = Path(paths[0])
    beside = (target.with_name(f".{target.name}.{suffix}") for suffix in ("part", "journal"))
    if any(path.exists() for path in beside) or not all(Path(path).is_file() for path in paths):
        return
    for given in inputs:
        if Path(given).is_file() and Path(given).stat().st_mtime_ns > target.stat().st_mtime_ns:
            raise OutputError(f"{target}: exists already, and {given} has changed since; use --force to replace it")
    raise AlreadyComplete(f"{target}: already complete; --force makes it anew")


def open_no_link(path: Path) -> BinaryIO:
    """Open a file to read and write, made if need be; a symbolic link there is an OSError, not another file."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666), "r+b")  # noqa: PTH123, the descriptor's flags are the point


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


class Output(Protocol):
    """Where results go: an `OutputFile`, a `BlockOutput` of the journal's, or `StandardOutput`; used as a context."""

    path: str

    def append(self, data: bytes, /, note: Note | None = None) -> None:
        """Write a part of the content.

        Args:
            data: bytes as this output wants them: what its `pack` made, where it has one.
            note: kept with the data where an output can be resumed.
        """

    def digest(self) -> Note:
        """Size in bytes and SHA-256 of what was written, as far as they are known."""

    def commit(self) -> None:
        """Make what was written durable, under its final name."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class OutputFile:
    """A file that appears under its name only when `commit` is called; until then it is ``.NAME.part`` beside it.

    Args:
        path: final name.
        force: an existing file may be replaced.
        inputs: files that must not be the output, by whatever spelling.

    Raises:
        OutputError: the place cannot be written, the file exists, or it is one of the inputs.
    """

    def __init__(self, path: str, *, force: bool = False, inputs: tuple[str, ...] = ()) -> None:
        if path == STANDARD_STREAM:
            raise OutputError(f"{path}: expected the name of a file: standard output is not written to here")
        refuse_no_name(path)
        self.path = path
        self._target = Path(path)
        self._part = self._target.with_name(f".{self._target.name}.part")
        refuse_inputs(path, inputs)
        if self._target.exists() and not force:
            raise OutputError(f"{path}: exists already; use --force to replace it")
        try:
            stream = open_locked(self._part)
        except OSError as error:
            raise write_failure(path, error) from error
        if stream is None:
            raise OutputError(f"{path}: is being written by another run")
        self._stream = stream
        self._stream.truncate(0)
        self._hash = hashlib.sha256()
        self._bytes = 0

    def _failure(self, error: OSError) -> OutputError:
        return write_failure(self.path, error, self._bytes - os.fstat(self._stream.fileno()).st_size)

    def append(self, data: bytes, /, note: Note | None = None) -> None:
        """Write a part of the content, compressed if the suffix asks for it."""
        packed = compressed(data) if is_gzip(self.path) else data
        self._bytes += len(packed)
        try:
            self._stream.write(packed)
        except OSError as error:
            raise self._failure(error) from error
        self._hash.update(packed)

    def digest(self) -> Note:
        """Size in bytes and SHA-256 of the file, as far as it was written."""
        return {"bytes": self._bytes, "sha256": self._hash.hexdigest()}

    def complete(self, data: bytes = b"") -> None:
        """Write the rest of the content and make all of it durable: nothing that a full disk refuses is left to do."""
        if data or not self._bytes:
            self.append(data)
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise self._failure(error) from error

    def commit(self, data: bytes = b"") -> None:
        """Complete the file and give it its name."""
        self.complete(data)
        try:
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
    """In place of a `BlockOutput`: towards standard output, where nothing can be resumed."""

    path = STANDARD_STREAM
    blocks = 0
    published = False
    has_leftover = False
    pack = Packing()

    def begin(self, _manifest: Note) -> Note | None:
        """Begin; there is never anything to resume."""
        return None

    def append(self, data: bytes, /, note: Note | None = None) -> None:
        """Write a block."""
        left = memoryview(data)
        while left:  # an unbuffered stream may take less than it is given
            left = left[sys.stdout.buffer.write(left) :]

    def digest(self) -> Note:
        """Nothing is known of what the reader made of it."""
        return {}

    def commit(self) -> None:
        """Make sure that everything was taken."""
        sys.stdout.buffer.flush()

    def discard(self) -> None:
        """Do nothing: what was written is gone."""

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
