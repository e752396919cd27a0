"""Output files: written whole or not at all, never over an input or through a link, by one process at a time.

While a file is written, it is named ``.NAME.part``. An `OutputFile` appears when it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

from zlib_ng import gzip_ng

from moses_rnn.errors import OutputError, number_of
from moses_rnn.files.streams import STANDARD_STREAM, is_gzip

Note = dict[str, Any]  # JSON
OTHER_SUFFIXES = {".bz2", ".xz", ".zst"}  # unsupported compressions
LEVEL = 2  # of zlib-ng: a little smaller and a quarter faster than gzip -1
READ_BYTES = 1 << 20
EMPTY = {"bytes": 0, "sha256": hashlib.sha256().hexdigest()}


def pack(data: bytes, path: str) -> bytes:
    """Pack data as a part of a file: for .gz, each part is a member, and concatenated members are a valid file.

    Equal data give equal bytes in any thread or process. That is why this uses zlib-ng and not ISA-L, which is faster
    still: its output differed between two equal runs about once in twenty.
    """
    return gzip_ng.compress(data, LEVEL, mtime=0) if is_gzip(path) else data  # type: ignore[no-untyped-call]


def hidden(path: str | Path, suffix: str) -> Path:
    """Return the path of a hidden file beside an output."""
    return Path(path).with_name(f".{Path(path).name}.{suffix}")


def names_file(path: str) -> bool:
    """Whether a path ends with the name of a file."""
    return path.rpartition("/")[2] not in ("", ".", "..")


def refuse_equal(paths: Iterable[str], inputs: tuple[str, ...] = ()) -> None:
    """Raise OutputError if outputs, their hidden files and inputs are not all different files, however spelt."""
    taken: dict[Path, str] = {}
    for path in paths:
        if not names_file(path):
            raise OutputError(f"{path}: expected the name of a file")
        if Path(path).suffix in OTHER_SUFFIXES:
            raise OutputError(f"{path}: expected the name of a plain or .gz file; for others, write to a pipe")
        for place in (Path(path), *(hidden(path, suffix) for suffix in ("part", "state", "lock"))):
            resolved = place.parent.resolve() / place.name
            if resolved in taken:
                raise OutputError(f"{path}: is also used for {taken[resolved]}; name another output")
            taken[resolved] = path
            if place.exists():
                with contextlib.suppress(FileNotFoundError):  # another run may just have removed it
                    _refuse_existing(place, inputs)


def _refuse_existing(place: Path, inputs: tuple[str, ...]) -> None:
    if not stat.S_ISREG(place.stat().st_mode):
        raise OutputError(f"{place}: is not a regular file, so it is not replaced")
    for given in inputs:
        if Path(given).exists() and place.samefile(given):
            raise OutputError(f"{place}: is the input {given} itself; name another output")


def open_locked(path: Path) -> BinaryIO | None:
    """Open a file for reading and writing, creating it if needed; return None if another process holds it.

    The lock ends with the process. A symbolic link raises OSError and is not followed. A file that was renamed between
    opening and locking is not used; the function tries again.
    """
    while True:
        stream = io.FileIO(path, "r+", opener=lambda name, how: os.open(name, how | os.O_CREAT | os.O_NOFOLLOW, 0o666))
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


def hold(path: str, suffix: str) -> BinaryIO:
    """Open a hidden file beside an output and lock it; raise OutputError if another process holds it."""
    with writing(path):
        stream = open_locked(hidden(path, suffix))
    if stream is None:
        raise OutputError(f"{path}: is being written by another run")
    return stream


@contextlib.contextmanager
def writing(path: Path | str, wanted: int = 0) -> Iterator[None]:
    """Turn OSErrors into OutputErrors that name the file and, on a full disk, the bytes `wanted` and free."""
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or error}"
        if error.errno in (None, errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # numpy's of short writes have no number
            with contextlib.suppress(OSError):
                free = shutil.disk_usage(Path(path).parent).free
                message += (
                    f" ({number_of(wanted, 'byte')} wanted, {free:,} free)"
                    if wanted
                    else f" ({number_of(free, 'byte')} free)"
                )
        raise OutputError(message) from error


def sync_directory(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_over(new: Path, old: Path) -> None:
    """Rename a file; if it replaces one, it gets the permissions of that, where the file system has them."""
    with contextlib.suppress(OSError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))
    new.replace(old)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file durably and atomically: write a hidden file and rename it. The permissions stay."""
    part = hidden(path, "part")
    with writing(path, len(data)):
        part.unlink(missing_ok=True)  # left by a run that died, or a link
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            rename_over(part, path)
        finally:
            part.unlink(missing_ok=True)
        sync_directory(path.parent)


class Part:
    """A file while it is written, as ``.NAME.part``, locked against other runs.

    `bytes` is its size; `published` tells whether it has its final name. The constructor raises OutputError if the
    path cannot be written, or if the file exists and may not be replaced.
    """

    def __init__(self, path: str, *, replace: bool) -> None:
        self.path = path
        self._target, self._part = Path(path), hidden(path, "part")
        if self._target.exists() and not replace:
            raise OutputError(f"{path}: already exists; use --force to replace it")
        self._replaces = replace
        self._stream = hold(path, "part")
        self.bytes, self._hash = 0, hashlib.sha256()
        self.published = False

    @property
    def size(self) -> int:
        """Bytes on disk, including those of an interrupted run."""
        return os.fstat(self._stream.fileno()).st_size

    def start(self, saved: Note = EMPTY, *, complete: bool = False) -> None:
        """Check the bytes of a saved digest and continue after them; a `complete` file may have its name already."""
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
                f"{place}: expected the {number_of(size, 'byte')} that an interrupted run saved, found others",
                advice="The file was damaged or changed. --force without --resume starts over.",
            )
        if not self.published:
            with writing(self.path):
                self._stream.truncate(size)
                self._stream.seek(size)

    def write(self, data: bytes) -> None:
        """Append bytes without compressing them."""
        left = memoryview(data)
        with writing(self.path, len(data)):
            while left:  # an unbuffered file may take fewer than it is given
                left = left[os.write(self._stream.fileno(), left) :]
        self.bytes += len(data)
        self._hash.update(data)

    def sync(self) -> None:
        """Make the written bytes durable."""
        with writing(self.path):
            os.fsync(self._stream.fileno())

    def digest(self) -> Note:
        """Return the size and the SHA-256 of the written bytes."""
        return {"bytes": self.bytes, "sha256": self._hash.hexdigest()}

    def check_free(self) -> None:
        """Raise OutputError if another program has made a file of this name meanwhile."""
        if self._target.exists() and not self._replaces:
            raise OutputError(f"{self.path}: appeared during the run; use --force to replace it")

    def publish(self) -> None:
        """Give the file its name, unless it has it already; raises as `check_free`."""
        with writing(self.path):
            if not self.published:
                self.check_free()
                rename_over(self._part, self._target)
            self.published = True
            sync_directory(self._target.parent)

    def close(self, *, keep: bool = False) -> None:
        """Release the file for other runs; without `keep`, remove the part."""
        if not (keep and self.size) and _is_at(self._stream, self._part):
            self._part.unlink()
        with contextlib.suppress(OSError):
            self._stream.close()


class OutputFile(Part):
    """A file that appears under its name only when `commit` is called.

    With `force`, it may replace an existing file, whose permissions it keeps. Raises OutputError if it is one of the
    `inputs`, however spelt, or for the reasons of `Part`.
    """

    def __init__(self, path: str, *, force: bool = False, inputs: tuple[str, ...] = ()) -> None:
        if path == STANDARD_STREAM:
            raise OutputError(f"{path}: expected the name of a file, not standard output")
        refuse_equal([path], inputs)
        super().__init__(path, replace=force)
        self.start()

    def append(self, data: bytes, /) -> None:
        """Append content, compressed if the suffix says so."""
        self.write(pack(data, self.path))

    def complete(self, data: bytes = b"") -> None:
        """Append the rest of the content and make all of it durable, so that a full disk cannot fail later steps."""
        self.check_free()
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
        """Remove the file unless it was committed."""
        self.close()


@contextlib.contextmanager
def output_files(
    paths: Sequence[str], *, force: bool = False, inputs: tuple[str, ...] = ()
) -> Iterator[list[OutputFile]]:
    """Open files that appear together at the end of the block; an error or a full disk leaves all of them or none.

    The first file appears last: after a kill between them, no table is without its signature. See `OutputFile` for the
    options.
    """
    refuse_equal(paths)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(OutputFile(path, force=force, inputs=inputs)) for path in paths]
        yield files
        for file in files:
            file.complete()
        for file in reversed(files):
            file.commit()


class StandardOutput:
    """A stand-in for an `OutputFile` that writes to standard output at once."""

    def append(self, data: bytes, /) -> None:
        """Write a block."""
        left = memoryview(data)
        while left:  # an unbuffered stream may take less than it is given
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()

    def commit(self, data: bytes = b"") -> None:
        """Write a last block."""
        self.append(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""
