"""An output that survives any death: numbered blocks, each durable and recorded before the next is begun.

Beside the final name NAME stand, while it is being made, ``.NAME.part`` (the blocks, each one complete compressed
member) and ``.NAME.journal`` (a line for what is being made, then one for each block: where it ends, its checksum, and
a note of the writer's). A block counts once its journal line is on disk; whatever follows the last such block is cut
off when the work is resumed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import socket
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from moses_rnn.errors import OutputError
from moses_rnn.formats.streams import (
    DEFAULT_LEVEL,
    STANDARD_STREAM,
    compressed,
    compression_of,
    open_locked,
    refuse_inputs,
    sync_directory,
)

Note = dict[str, Any]


@dataclass(frozen=True)
class Opening:
    """How an output may be begun: in place of an existing file or a leftover (`force`), or going on with the latter."""

    force: bool = False
    resume: bool = False


class BlockOutput:
    """A file made of durable blocks.

    Use it as a context: without a `commit`, what was written stays resumable if a block was finished, unless `discard`
    was called.

    Args:
        path: final name.
        level: compression level of the format that the suffix asks for.
        opening: whether an existing file or a leftover may be replaced or continued.
        inputs: files that must not be the output, by whatever spelling.

    Raises:
        OutputError: the place cannot be written, the file or a leftover exists, or another run holds it.
    """

    def __init__(
        self, path: str, *, level: int = DEFAULT_LEVEL, opening: Opening | None = None, inputs: tuple[str, ...] = ()
    ) -> None:
        self.path = path
        self._level = level
        self._opening = opening or Opening()
        self._kind = compression_of(path)
        self._target = Path(path)
        self._part = self._target.with_name(f".{self._target.name}.part")
        self._journal_path = self._target.with_name(f".{self._target.name}.journal")
        self._blocks = self._offset = 0
        self._done = False  # committed or discarded
        self._hash = hashlib.sha256()
        for place in (self._target, self._part, self._journal_path):
            refuse_inputs(str(place), inputs)
        if self._journal_path.is_symlink():
            raise OutputError(f"{self._journal_path}: is a symbolic link and is not written through")
        if self._target.exists() and not self._opening.force and not self._opening.resume:
            raise self._existing()
        self._stream, self._journal = self._open()

    def _open(self) -> tuple[BinaryIO, BinaryIO]:
        try:
            stream = open_locked(self._part)
            if stream is None:
                raise OutputError(f"{self.path}: is being written by another run{self._holder()}")
            with contextlib.ExitStack() as opened:
                opened.enter_context(stream)
                journal = self._journal_path.open("r+b" if self._journal_path.exists() else "x+b")
                opened.pop_all()
                return stream, journal
        except OSError as error:
            raise self._failure(error) from error

    def _holder(self) -> str:
        """Who wrote the last claim into the journal."""
        claims = [record for record, _ in self._records() if "host" in record]
        return f" (process {claims[-1]['pid']} on {claims[-1]['host']})" if claims else ""

    def _failure(self, error: OSError) -> OutputError:
        advice = ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            free = shutil.disk_usage(self._target.parent).free
            advice = f" ({free:,} bytes free); {self._offset:,} bytes are safe: make room and go on with --resume"
        return OutputError(f"{self.path}: cannot be written: {error.strerror}{advice}")

    def begin(self, manifest: Note) -> Note | None:
        """Say what is being made, and find out whether part of it is made already.

        Args:
            manifest: everything that decides the bytes; JSON.

        Returns:
            The note of the last durable block, or None at the beginning.

        Raises:
            OutputError: a leftover is there and neither to be resumed nor replaced, or it is of something else.
        """
        records = self._records()
        blocks = self._blocks_left()
        if not blocks and self._target.exists() and not self._opening.force:
            raise self._existing()
        if blocks and not (self._opening.force or self._opening.resume):
            raise OutputError(
                f"{self.path}: an interrupted run left {blocks:,} blocks of it; --resume goes on, --force begins anew"
            )
        note: Note | None = None
        if blocks and self._opening.resume:
            self._check_manifest(records[0][0], manifest)
            note = self._recover(records)
        else:
            self._start(manifest)
        self._record({"pid": os.getpid(), "host": socket.gethostname()})
        return note

    def _blocks_left(self) -> int:
        """How many blocks an interrupted run left; none if it died right after giving the file its name."""
        empty = self._target.exists() and not self._part.stat().st_size
        return 0 if empty else sum("end" in record for record, _ in self._records())

    def _existing(self) -> OutputError:
        return OutputError(f"{self.path}: exists already; use --force to replace it")

    def _records(self) -> list[tuple[Note, int]]:
        """The journal's sound lines and where each ends: a torn or changed one and all after it do not count."""
        records: list[tuple[Note, int]] = []
        end = 0
        if not self._journal_path.exists():
            return records
        for line in self._journal_path.read_bytes().split(b"\n")[:-1]:
            end += len(line) + 1
            checksum, _, text = line.partition(b" ")
            if checksum != b"%08x" % zlib.crc32(text):
                break
            records.append((json.loads(text), end))
        return records

    def _check_manifest(self, saved: Note, manifest: Note) -> None:
        wanted = json.loads(json.dumps(manifest))
        keys = sorted(saved.keys() | wanted.keys())
        differing = [
            f"{key} {saved.get(key)!r}, now {wanted.get(key)!r}" for key in keys if saved.get(key) != wanted.get(key)
        ]
        if differing:
            raise OutputError(
                f"{self.path}: expected what the interrupted run was given, found other: {'; '.join(differing)}\n"
                "  Give the same to go on, or --force to begin anew."
            )

    def _start(self, manifest: Note) -> None:
        self._truncate(self._stream, 0)
        self._truncate(self._journal, 0)
        self._record(manifest)

    def _truncate(self, stream: BinaryIO, size: int) -> None:
        try:
            stream.truncate(size)
            stream.seek(size)
        except OSError as error:
            raise self._failure(error) from error

    def _recover(self, records: list[tuple[Note, int]]) -> Note | None:
        """Keep the blocks whose bytes are as the journal says; cut off the rest of both files."""
        note: Note | None = None
        journal_end = records[0][1]
        self._stream.seek(0)
        for record, end in records[1:]:
            if "end" in record:
                data = self._stream.read(record["end"] - self._offset)
                if zlib.crc32(data) != record["crc32"]:
                    break
                self._hash.update(data)
                self._offset, self._blocks, note = record["end"], self._blocks + 1, record["note"]
            journal_end = end
        self._truncate(self._stream, self._offset)
        self._truncate(self._journal, journal_end)
        return note

    def append(self, data: bytes, note: Note) -> None:
        """Write a block and make it durable.

        Args:
            data: uncompressed.
            note: what `begin` shall return if this is the last block that survives; JSON.
        """
        member = compressed(data, self._kind, self._level)
        try:
            self._stream.write(member)
        except OSError as error:
            raise self._failure(error) from error
        self._sync(self._stream)
        self._hash.update(member)
        self._offset += len(member)
        self._blocks += 1
        self._record({"block": self._blocks, "end": self._offset, "crc32": zlib.crc32(member), "note": note})

    def _record(self, record: Note) -> None:
        text = json.dumps(record).encode()
        try:
            self._journal.write(b"%08x %s\n" % (zlib.crc32(text), text))
        except OSError as error:
            raise self._failure(error) from error
        self._sync(self._journal)

    def _sync(self, stream: BinaryIO) -> None:
        try:
            stream.flush()
            os.fsync(stream.fileno())
        except OSError as error:
            raise self._failure(error) from error

    def digest(self) -> Note:
        """Size and SHA-256 of the file as it will be, compressed."""
        return {"bytes": self._offset, "sha256": self._hash.hexdigest()}

    def commit(self) -> None:
        """Give the file its name; it is durable already."""
        try:
            self._part.replace(self._target)
            self._done = True
            sync_directory(self._target.parent)
            self._journal_path.unlink()
        except OSError as error:
            raise self._failure(error) from error

    def discard(self) -> None:
        """Leave nothing to be resumed."""
        self._done = True
        for path in (self._journal_path, self._part):
            path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Keep what can be resumed, and nothing else."""
        if not self._done and not self._blocks_left():
            self.discard()
        for stream in (self._stream, self._journal):
            with contextlib.suppress(OSError):
                stream.close()


class StandardOutput:
    """The same towards standard output, where nothing can be resumed."""

    path = STANDARD_STREAM

    def begin(self, _manifest: Note) -> Note | None:
        """Begin; there is never anything to go on with."""
        return None

    def append(self, data: bytes, _note: Note) -> None:
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
