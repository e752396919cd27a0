"""Output files: written whole or not at all, never over an input or through a link, by one process at a time.

An `OutputFile` appears when it is complete. `ResumableOutputs` appear together, and a killed run can be resumed.
While a file is written, it is named ``.NAME.part``. Beside the first file are ``.NAME.lock``, which one run holds, and
``.NAME.state``: what is being written, how far it is, and how many bytes of each part are valid. Saving syncs the
parts and then replaces the state as a whole. A resumed run cuts off all bytes after the saved ones.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

from zlib_ng import gzip_ng

from moses_rnn.errors import AlreadyComplete, FormatError, InputError, MisfitError, MosesRnnError, OutputError
from moses_rnn.files.streams import STANDARD_STREAM, is_gzip

Note = dict[str, Any]  # JSON
OTHER_SUFFIXES = {".bz2", ".xz", ".zst"}  # unsupported compressions
LEVEL = 2  # of zlib-ng: a little smaller and a quarter faster than gzip -1
READ_BYTES = 1 << 20
VERSION = 2  # of the state file
SECONDS_BETWEEN_SAVES = 1.0  # a sync takes milliseconds, which may be as long as a block takes
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


def refuse_equal(paths: Iterable[str], inputs: tuple[str, ...] = ()) -> None:
    """Raise OutputError if outputs, their hidden files and inputs are not all different files, however spelt."""
    taken: dict[Path, str] = {}
    for path in paths:
        if path.endswith("/") or Path(path).name in ("", ".", ".."):
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
                message += f" ({wanted:,} bytes wanted, {free:,} free)" if wanted else f" ({free:,} bytes free)"
        raise OutputError(message) from error


def sync_directory(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file durably and atomically: write a hidden file and rename it."""
    part = hidden(path, "part")
    with writing(path, len(data)):
        part.unlink(missing_ok=True)  # left by a run that died, or a link
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
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
                f"{place}: expected the {size:,} bytes that an interrupted run saved, found others",
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

    def publish(self) -> None:
        """Give the file its name, unless it has it already."""
        with writing(self.path):
            if not self.published:
                self._part.replace(self._target)
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

    With `force`, it may replace an existing file. Raises OutputError if it is one of the `inputs`, however spelt, or
    for the reasons of `Part`.
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

    See `OutputFile` for the options.
    """
    refuse_equal(paths)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(OutputFile(path, force=force, inputs=inputs)) for path in paths]
        yield files
        for file in files:
            file.complete()
        for file in files:
            file.commit()


class StandardOutput:
    """A stand-in for an `OutputFile` that writes to standard output at once."""

    path = STANDARD_STREAM

    def append(self, data: bytes, /) -> None:
        """Write a block."""
        left = memoryview(data)
        while left:  # an unbuffered stream may take less than it is given
            left = left[sys.stdout.buffer.write(left) :]

    def commit(self, data: bytes = b"") -> None:
        """Write a last block and flush standard output."""
        self.append(data)
        sys.stdout.buffer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class ResumableOutputs:
    """The output files of a run, as a context manager: without a `commit`, only resumable parts are kept.

    `growing` files are appended to; if the first is standard output, nothing can be resumed. `optional` files grow too,
    but appear only if they have content. `small` files are written whole by the commit. `resume` continues an
    interrupted run, if there is one; `force` replaces its parts and existing files. `advise` returns advice after an
    error, given the saved counts. Raises AlreadyComplete if `resume` has nothing to do: all files exist and are newer
    than the inputs.
    """

    def __init__(
        self,
        growing: Sequence[str],
        small: Sequence[str] = (),
        *,
        optional: Sequence[str] = (),
        resume: bool = False,
        force: bool = False,
        inputs: tuple[str, ...] = (),
        advise: Callable[[MosesRnnError, Note], str] | None = None,
    ) -> None:
        self._path, self._optional, self._advise = growing[0], optional, advise
        self.resumable = self._path != STANDARD_STREAM
        named, folder = [path for path in (*growing, *optional) if path != STANDARD_STREAM], Path(self._path).parent
        refuse_equal([*named, *small], inputs)
        self._growing = {path: os.path.relpath(path, folder) for path in named}  # relative: the folder may be moved
        self._small = [os.path.relpath(path, folder) for path in small]
        self._parts: dict[str, Part] = {}
        self._record: Note = {}  # the next state
        self._due = 0.0  # time of the next save
        self._keeps = True  # whether to keep the parts
        self._state = hidden(self._path, "state")
        looks = self.resumable and resume and not force
        if looks and not any(hidden(self._path, kind).exists() for kind in ("state", "lock")):
            self._stop_if_complete([*growing, *small], inputs)  # without the lock: several runs may look at once
        self._lock = hold(self._path, "lock") if self.resumable else None
        try:
            self._saved = read_state(self._state) if self._lock else {}
            left = (self._saved or {}).get("counts") is not None
            if looks and self._saved == {}:
                self._stop_if_complete([*growing, *small], inputs)
            owned = [*self._saved["files"], *self._saved["small"]] if self._saved and left else []
            for path in (*named, *small):
                is_old = path in optional and left  # of an older table
                owns = os.path.relpath(path, folder) in owned
                self._parts[path] = Part(path, replace=force or owns or is_old)
            if not force:
                self._refuse_leftover(left and not resume)
        except BaseException:
            self._close()
            raise
        self._keeps, self._restores = left, left and resume

    @property
    def complete(self) -> bool:
        """Whether all content is written, perhaps by an interrupted run; files may still lack their names."""
        return bool(self._record.get("complete"))

    def _stop_if_complete(self, paths: Sequence[str], inputs: tuple[str, ...]) -> None:
        if not all(Path(path).is_file() and not hidden(path, "part").exists() for path in paths):
            return
        for given in inputs:
            if Path(given).is_file() and Path(given).stat().st_mtime_ns > Path(self._path).stat().st_mtime_ns:
                raise OutputError(
                    f"{self._path}: already exists, and {given} has changed since; use --force to replace it"
                )
        raise AlreadyComplete(f"{self._path}: already complete; --force makes it again")

    def _refuse_leftover(self, left: bool) -> None:
        """Raise OutputError for an interrupted run, or for parts without a valid state."""
        if left:
            raise OutputError(
                f"{self._path}: an interrupted run left part of it; --resume continues, --force starts over"
            )
        unknown = [path for path in self._growing if self._parts[path].size and self.resumable and not self._saved]
        if self._saved is None or unknown:
            found = f"none for {hidden(unknown[0], 'part')}" if self._saved == {} else "a damaged or foreign one"
            raise OutputError(
                f"{self._state}: expected the state of an interrupted run, found {found}",
                advice="The interrupted run cannot be resumed; --force starts over.",
            )

    def begin(self, manifest: Note) -> Note | None:
        """Begin, or continue an interrupted run; return its saved counts, or None.

        The manifest is everything that determines the bytes, as JSON; it must equal the interrupted run's. If its
        "resumable" is false, nothing is kept.
        """
        manifest = json.loads(json.dumps(manifest))
        self.resumable = self.resumable and manifest.get("resumable", True)
        saved = (self._saved or {}) if self._restores else {}
        if saved:
            self._check_alike(saved, manifest)
        self._keeps = bool(saved)
        counts: Note | None = saved.get("counts")
        complete, files = saved.get("complete", False), saved.get("files", {})
        for path, name in self._growing.items():
            self._parts[path].start(files.get(name, EMPTY), complete=complete)
        self._remove_unwanted()
        self._note(version=VERSION, manifest=manifest, small=self._small, counts=counts, complete=complete)
        if self._lock:
            self._write_state()
        return counts

    def _check_alike(self, saved: Note, manifest: Note) -> None:
        """Raise OutputError if an interrupted run had another manifest, or wrote other files."""
        before, files = saved["manifest"], saved["files"]
        keys = sorted(key for key in before.keys() | manifest.keys() if before.get(key) != manifest.get(key))
        changes = [f"{key} {before.get(key)!r}, now {manifest.get(key)!r}" for key in keys]
        always = {name for path, name in self._growing.items() if path not in self._optional}
        written = {name for name, digest in files.items() if digest["bytes"]}
        if not (always <= files.keys() and written <= {*self._growing.values()}):
            changes.append(f"the files {', '.join(files)}, now {', '.join(self._growing.values())}")
        if changes:
            raise OutputError(
                f"{self._path}: expected the inputs and options of the interrupted run, found others: "
                f"{'; '.join(changes)}",
                advice="Use the same ones to continue; --force without --resume starts over.",
            )

    def _remove_unwanted(self) -> None:
        """Remove an interrupted run's parts of files that are no longer wanted, unless another run holds them."""
        for name in (self._saved or {}).get("files", {}).keys() - self._growing.values():
            part = hidden(Path(self._path).parent / name, "part")
            if part.is_file() and (lock := open_locked(part)):
                part.unlink()
                lock.close()

    def append(self, path: str, data: bytes) -> None:
        """Append to a growing file without compressing; the data are not safe before the next save."""
        if path == STANDARD_STREAM:
            StandardOutput().append(data)
        else:
            self._parts[path].write(data)

    def digest(self, path: str) -> Note:
        """Return the size and the SHA-256 of a growing file so far; empty for standard output."""
        return {} if path == STANDARD_STREAM else self._parts[path].digest()

    def save(self, counts: Note) -> None:
        """Record the counts with all data appended so far; they reach the disk within about a second or on exit."""
        self._note(counts=counts)
        if self.resumable and time.monotonic() >= self._due:
            self._write_state()
            self._due = time.monotonic() + SECONDS_BETWEEN_SAVES

    def _note(self, **changes: object) -> None:
        """Change the record of the next state: also the size and the hash of each growing file."""
        files = {name: self._parts[path].digest() for path, name in self._growing.items()}
        self._record = {**self._record, **changes, "files": files}

    def _write_state(self) -> None:
        """Make the record durable: first sync the parts, then replace the state."""
        for path in self._growing:
            self._parts[path].sync()
        text = json.dumps(self._record).encode()
        replace_file(self._state, b"%08x %s\n" % (zlib.crc32(text), text))
        self._saved, self._keeps = self._record, self._record["counts"] is not None

    def commit(self, contents: Mapping[str, bytes] | None = None) -> None:
        """Write the small files' contents, sync all files, and give them their names."""
        for path, content in (contents or {}).items():
            part = self._parts[path]
            part.start()
            part.write(pack(content, path))
            part.sync()
        if self._lock:
            self._note(counts=self._record["counts"] or {}, complete=True)
            self._write_state()
        else:
            StandardOutput().commit()
            for path in self._growing:
                self._parts[path].sync()
        for path, part in self._parts.items():
            if path in self._optional and not part.bytes:
                Path(path).unlink(missing_ok=True)  # an older run's file, which nothing replaces
            else:
                part.publish()
        self._discard()

    def _discard(self) -> None:
        self._keeps, self._record = False, {}

    def _close(self) -> None:
        for path, part in self._parts.items():
            part.close(keep=self._keeps and path in self._growing)
        if self._lock:
            if not self._keeps:
                self._state.unlink(missing_ok=True)
            hidden(self._path, "lock").unlink(missing_ok=True)
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        """Keep what can be resumed, and add advice to the error; otherwise, remove the parts.

        A run cannot be resumed if its input is invalid as a whole; it can after a bad line or a misfitting model.
        """
        of_a_line = isinstance(error, FormatError) and error.line is not None
        mendable = not isinstance(error, InputError) or isinstance(error, MisfitError) or of_a_line
        try:
            if not self._record:  # not begun, or done
                return
            if not self.complete and not (self.resumable and mendable):
                self._discard()
            elif self._lock and self._record is not self._saved:
                with contextlib.suppress(MosesRnnError):  # the previous save remains
                    self._write_state()
            if self._keeps and self._saved and self._advise and isinstance(error, MosesRnnError):
                error.add_advice(self._advise(error, self._saved["counts"]))
        finally:
            self._close()


def read_state(path: Path) -> Note | None:
    """Read a state file; return an empty dict if it is empty or missing, None if it cannot be trusted."""
    with writing(path):
        data = path.read_bytes() if path.is_file() else b""
    checksum, _, text = data.removesuffix(b"\n").partition(b" ")
    if not data:
        return {}
    if not data.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
        return None
    record: Note = json.loads(text)
    return record if record.get("version") == VERSION else None
