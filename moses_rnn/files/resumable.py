"""Output files that appear together, of a run that can be killed and resumed.

Beside the first file are ``.NAME.lock``, which one run holds, and ``.NAME.state``: what is being written, how far it
is, and how many bytes of each part are valid. Saving syncs the parts and then replaces the state as a whole. A resumed
run cuts off all bytes after the saved ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Self

from moses_rnn.errors import AlreadyComplete, InputError, MosesRnnError, OutputError, number_of
from moses_rnn.files.outputs import (
    EMPTY,
    Note,
    Part,
    StandardOutput,
    hidden,
    hold,
    open_locked,
    pack,
    refuse_equal,
    replace_file,
    writing,
)
from moses_rnn.files.streams import STANDARD_STREAM, read_lines

VERSION = 2  # of the state file
SECONDS_BETWEEN_SAVES = 1.0  # a sync takes milliseconds, which may be as long as a block takes


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
        self._small = {path: os.path.relpath(path, folder) for path in small}
        self._parts: dict[str, Part] = {}
        self._record: Note = {}  # the next state
        self._saved: Note = {}  # the state on disk
        self._due = 0.0  # time of the next save
        self._keeps = True  # whether to keep the parts
        self._state = hidden(self._path, "state")
        left = any(hidden(self._path, kind).exists() for kind in ("state", "lock"))
        if self.resumable and resume and not force and not left:
            self._stop_if_complete(inputs)  # without the lock: several runs may look at once
        self._lock = hold(self._path, "lock") if self.resumable else None
        try:
            self._take_over(resume=resume, force=force, inputs=inputs)
        except BaseException:
            self._close()
            raise

    def _take_over(self, *, resume: bool, force: bool, inputs: tuple[str, ...]) -> None:
        """Read what an interrupted run left, and open the parts; raises as the constructor."""
        state = read_state(self._state) if self._lock else {}
        if self._lock and resume and not force and state == {}:
            self._stop_if_complete(inputs)
        self._saved = state or {}
        left = self._saved.get("counts") is not None
        owned = _files_owned_by(self._saved)
        for path, name in {**self._growing, **self._small}.items():
            is_old = path in self._optional and left  # of an older table
            self._parts[path] = Part(path, replace=force or is_old or name in owned)
        if not force:
            self._refuse_leftover(left and not resume, is_damaged=state is None)
        self._keeps, self._restores, self._forced = left, left and resume, force

    @property
    def complete(self) -> bool:
        """Whether all content is written, perhaps by an interrupted run; files may still lack their names."""
        return bool(self._record.get("complete"))

    @property
    def forced(self) -> bool:
        """Whether this run, or the interrupted one that it continues, has `force`."""
        return bool(self._record.get("forced"))

    def _stop_if_complete(self, inputs: tuple[str, ...]) -> None:
        paths = [path for path in (*self._growing, *self._small) if path not in self._optional]
        if not all(Path(path).is_file() and not hidden(path, "part").exists() for path in paths):
            return
        for given in inputs:
            if Path(given).is_file() and Path(given).stat().st_mtime_ns > Path(self._path).stat().st_mtime_ns:
                raise OutputError(
                    f"{self._path}: already exists, and {given} has changed since; use --force to replace it"
                )
        raise AlreadyComplete(f"{self._path}: already complete; --force makes it again")

    def _refuse_leftover(self, left: bool, *, is_damaged: bool) -> None:
        """Raise OutputError for an interrupted run, or for parts without a valid state."""
        if left:
            raise OutputError(
                f"{self._path}: an interrupted run left part of it; --resume continues, --force starts over"
            )
        unknown = [path for path in self._growing if self._parts[path].size and self.resumable and not self._saved]
        if is_damaged or unknown:
            found = "a damaged or foreign one" if is_damaged else f"none for {hidden(unknown[0], 'part')}"
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
        saved = self._saved if self._restores else {}
        if saved:
            self._check_alike(saved, manifest)
        self._keeps = bool(saved)
        counts: Note | None = saved.get("counts")
        complete, files = saved.get("complete", False), saved.get("files", {})
        for path, name in self._growing.items():
            self._parts[path].start(files.get(name, EMPTY), complete=complete)
        self._remove_unwanted()
        forced = self._forced or saved.get("forced", False)
        self._note(
            version=VERSION,
            manifest=manifest,
            small=[*self._small.values()],
            counts=counts,
            complete=complete,
            forced=forced,
        )
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
        for name in self._saved.get("files", {}).keys() - self._growing.values():
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
        """Write the small files' contents, sync all files, and give them their names; raises as `Part.check_free`."""
        for part in self._parts.values():
            part.check_free()
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
        """Keep what can be resumed, and add advice to the error; otherwise, remove the parts."""
        mendable = error.mendable if isinstance(error, MosesRnnError) else True
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


def check_finished(output: str, lines: int, texts: Mapping[str, bytes]) -> None:
    """Raise OutputError unless existing files begin with these texts, and the output has that many lines.

    Nothing records what made them.
    """
    for path, text in texts.items():
        begins = False
        with contextlib.suppress(InputError):  # of an empty or damaged file
            begins = b"".join(islice(read_lines(path), text.count(b"\n"))) == text
        if not begins:
            raise OutputError(f"{path}: already exists, but this run writes other lines; use --force to replace it")
    if (count := sum(1 for _ in read_lines(output))) != lines:
        raise OutputError(
            f"{output}: already exists, but has {number_of(count, 'line')} and the text has {lines:,}; "
            "use --force to replace it"
        )


def _files_owned_by(saved: Note) -> list[str]:
    """Return the files that the run of a saved state has published, or may replace."""
    owns = saved.get("counts") is not None and (saved["complete"] or saved.get("forced"))
    return [*saved["files"], *saved["small"]] if owns else []


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
