"""An output that survives any death: numbered blocks, each durable and recorded before the next is begun.

Beside the final name NAME stand, while it is being made, ``.NAME.part`` (the blocks, each as one complete compressed
member) and ``.NAME.journal`` (the records; see `records`). A block counts once it is on disk and its record with it;
whatever follows the last such block is cut off when the work is resumed. The journal is locked from the first moment to
the last, and goes only when everything that belongs to the output is in its place.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from moses_rnn.errors import OutputError, write_failure
from moses_rnn.files.outputs import (
    DEFAULT_LEVEL,
    Packing,
    open_locked,
    open_no_link,
    refuse_inputs,
    refuse_no_name,
    sync_directory,
)
from moses_rnn.files.records import (
    Note,
    Records,
    Written,
    compare_manifests,
    find_sound,
    format_record,
    read_records,
)
from moses_rnn.files.streams import is_gzip


@dataclass(frozen=True)
class Opening:
    """How an output may be begun: in place of an existing file or a leftover (`force`), or going on with the latter."""

    force: bool = False
    resume: bool = False


class BlockOutput:
    """A file made of durable blocks.

    Use it as a context: without a `commit`, what was written stays resumable if a block was finished, unless `discard`
    was called. `published` says that the file has its final name.

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
        refuse_no_name(path)
        self.path = path
        self._opening = opening or Opening()
        self.pack = Packing(is_gzip(path), level)  # a block as its member of the file
        self._target = Path(path)
        self._part = self._target.with_name(f".{self._target.name}.part")
        self._journal_path = self._target.with_name(f".{self._target.name}.journal")
        self._written = Written()
        self.published = False  # has its final name
        self._discarded = False
        for place in (self._target, self._part, self._journal_path):
            refuse_inputs(str(place), inputs)
        if self._target.exists() and not self._opening.force and not self._opening.resume:
            raise self._existing()
        self._journal, self._stream = self._open()
        self._ours = not self._part_bytes() and not self._records()  # nothing of an earlier run is at stake

    @property
    def blocks(self) -> int:
        """How many blocks are durable."""
        return self._written.blocks

    def _open(self) -> tuple[BinaryIO, BinaryIO]:
        try:
            journal = open_locked(self._journal_path)
            if journal is None:
                raise OutputError(f"{self.path}: is being written by another run{self._holder()}")
            try:
                return journal, open_no_link(self._part)
            except OSError:
                if not os.fstat(journal.fileno()).st_size:
                    self._journal_path.unlink()
                journal.close()
                raise
        except OSError as error:
            raise self._failure(error) from error

    def _holder(self) -> str:
        """Who wrote the last claim into the journal."""
        claims = [record for record, _ in self._records() if "host" in record]
        return f" (process {claims[-1]['pid']} on {claims[-1]['host']})" if claims else ""

    def _failure(self, error: OSError, needed: int = 0) -> OutputError:
        return write_failure(self.path, error, needed)

    def begin(self, manifest: Note, *, most: int | None = None) -> Note | None:
        """Record what is being made, and find out whether part of it is made already.

        Args:
            manifest: everything that decides the bytes; JSON.
            most: blocks to keep at most, for an output that goes along with another one.

        Returns:
            The note of the last durable block, or None at the beginning.

        Raises:
            OutputError: a leftover is there and neither to be resumed nor replaced, or it is of something else.
        """
        records = self._records()
        blocks = sum("end" in record for record, _ in records)
        note: Note | None = None
        if blocks and self._opening.resume:
            if not records[0][0].get("resumable", True):
                raise self._left(blocks, records[0][0])
            self._check_manifest(records[0][0], manifest)
            note = self._recover(records, blocks if most is None else most)
        else:
            self._check_beginning(records, blocks)
            self._start(manifest)
        self._record({"pid": os.getpid(), "host": os.uname().nodename})
        return note

    def is_finished(self) -> bool:
        """Whether the file stands there and nothing is left of its making."""
        return self._target.exists() and self._ours

    def _check_beginning(self, records: Records, blocks: int) -> None:
        if self._opening.force:
            return
        if self._target.exists():
            raise self._existing()
        if blocks:
            raise self._left(blocks, records[0][0])
        if not records and self._part_bytes():
            raise OutputError(
                f"{self._part}: expected a sound journal beside it, found none for its {self._part_bytes():,} bytes",
                advice="They cannot be resumed; --force starts over.",
            )

    def _left(self, blocks: int, manifest: Note) -> OutputError:
        goes_on = manifest.get("resumable", True)
        what_next = "--resume goes on" if goes_on else "what came through a pipe cannot be resumed"
        return OutputError(
            f"{self.path}: an interrupted run left {blocks:,} blocks of it; {what_next}, --force starts over"
        )

    def _part_bytes(self) -> int:
        return os.fstat(self._stream.fileno()).st_size

    @property
    def has_leftover(self) -> bool:
        """Whether blocks of an earlier run are there."""
        return any("end" in record for record, _ in self._records())

    def _existing(self) -> OutputError:
        if self._journal_path.is_file() and self.has_leftover:
            finish = "--resume finishes what an interrupted run left, --force starts over"
            return OutputError(f"{self.path}: exists already; {finish}")
        return OutputError(f"{self.path}: exists already; use --force to replace it")

    def _records(self) -> Records:
        return read_records(self._journal_path)

    def _check_manifest(self, saved: Note, manifest: Note) -> None:
        if differing := compare_manifests(saved, manifest):
            raise OutputError(
                f"{self.path}: expected what the interrupted run was given, found other: {'; '.join(differing)}",
                advice="Give the same to go on, or --force to start over.",
            )

    def _start(self, manifest: Note) -> None:
        self._ours = True
        self._truncate(self._stream, 0)
        self._truncate(self._journal, 0)
        self._record(manifest)

    def _truncate(self, stream: BinaryIO, size: int) -> None:
        try:
            stream.truncate(size)
            stream.seek(size)
        except OSError as error:
            raise self._failure(error) from error

    def _recover(self, records: Records, most: int) -> Note | None:
        """Keep the blocks whose bytes are as the journal says; cut off the rest of both files.

        After a death between the final name and the end, all blocks are already where they belong.
        """
        ends = [record["end"] for record, _ in records if "end" in record]
        if not self._part_bytes() and ends[-1] and self._target.exists():
            kept, self._written = find_sound(self._target, records, most)
            self.published = kept == len(records)
        if not self.published:
            kept, self._written = find_sound(self._part, records, most)
            self._truncate(self._stream, self._written.end)
        self._truncate(self._journal, records[kept - 1][1])
        return next((record["note"] for record, _ in reversed(records[:kept]) if "end" in record), None)

    def append(self, member: bytes, /, note: Note | None = None) -> None:
        """Write a block and make it durable.

        Args:
            member: what `pack` made of it.
            note: what `begin` shall return if this is the last block that survives; JSON; nothing is an empty note.
        """
        try:
            self._stream.write(member)
            self._stream.flush()
        except OSError as error:
            raise self._failure(error, len(member)) from error
        end = self._written.end + len(member)
        record = {"block": self.blocks + 1, "end": end, "crc32": zlib.crc32(member), "note": note or {}}
        self._sync_with(record, len(member))
        self._written.add(member)

    def _sync_with(self, record: Note, needed: int) -> None:
        """Make what was written durable, and its record with it: both at once take half the time or less.

        The record may be the first on disk: by its checksum a block that is not there does not count. If the block
        cannot be made durable, though it may seem to be there, the record is taken back.
        """
        before = self._journal.tell()
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="syncing") as beside:
                synced = beside.submit(self._sync, self._stream, needed)
                self._record(record)
            synced.result()
        except OutputError:
            with contextlib.suppress(OSError):
                self._journal.truncate(before)
            raise

    def _record(self, record: Note) -> None:
        line = format_record(record)
        try:
            self._journal.write(line)
        except OSError as error:
            raise self._failure(error, len(line)) from error
        self._sync(self._journal, len(line))

    def _sync(self, stream: BinaryIO, needed: int = 0) -> None:
        try:
            stream.flush()
            os.fsync(stream.fileno())
        except OSError as error:
            raise self._failure(error, needed) from error

    def digest(self) -> Note:
        """Size and SHA-256 of the file as it will be, compressed."""
        return {"bytes": self._written.end, "sha256": self._written.hash.hexdigest()}

    def commit(self) -> None:
        """Give the file its name; it is durable already. The journal stays until the context ends without an error."""
        try:
            if not self.published:
                self._part.replace(self._target)
                self.published = True
            else:
                self._part.unlink(missing_ok=True)  # empty, made by opening
            sync_directory(self._target.parent)
        except OSError as error:
            raise self._failure(error) from error

    def discard(self) -> None:
        """Leave nothing to be resumed."""
        self._discarded = True
        for path in (self._journal_path, self._part):
            path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Keep what can be resumed, and nothing else."""
        try:
            if self.published and kind is None:
                self._journal_path.unlink()
            elif not self.published and not self._discarded and self._ours and not self.blocks:
                self.discard()
        finally:
            for stream in (self._stream, self._journal):
                with contextlib.suppress(OSError):
                    stream.close()


def discard_leftover(path: str) -> None:
    """Remove what an interrupted run left of an output that is no longer wanted, unless a run holds it."""
    target = Path(path)
    journal, part = (target.with_name(f".{target.name}.{suffix}") for suffix in ("journal", "part"))
    if journal.is_file() and not journal.is_symlink():
        lock = open_locked(journal)
        if lock is not None:
            with lock:
                part.unlink(missing_ok=True)
                journal.unlink(missing_ok=True)
