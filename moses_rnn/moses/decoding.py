"""Run Moses: its programs, the decoder on a stream of lines, and a mosesserver through XML-RPC."""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import subprocess
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import IO, Any, Self, cast
from xml.parsers.expat import ExpatError
from xmlrpc import client

from moses_rnn.errors import InputError, MosesRnnError, shown
from moses_rnn.table.phrases import words

SHOWN_LINES = 8  # of a failed program's output
LINES_AHEAD = 64  # given to the decoder before their lists are taken: this bounds the memory
CONNECTIONS = 8  # to a mosesserver; it has 15 threads by default
SECONDS_BETWEEN_LOOKS = 0.2  # while no list is ready
END = None  # behind the last list


@dataclass(frozen=True)
class Moses:
    """A built Moses; using a missing program raises InputError."""

    root: Path

    @classmethod
    def of_environment(cls) -> Moses | None:
        """Return the Moses that MOSES_ROOT names, if set."""
        root = os.environ.get("MOSES_ROOT")
        return cls(Path(root).absolute()) if root else None

    @classmethod
    def required(cls) -> Moses:
        """Return the Moses that MOSES_ROOT names; raise InputError if it is not set."""
        if moses := cls.of_environment():
            return moses
        advice = "Set it to the folder of a built Moses, which has bin/moses."
        raise InputError("MOSES_ROOT: expected the folder of Moses, found none", advice=advice)

    def program(self, name: str) -> Path:
        """Return the path of a program."""
        path = self.root / "bin" / name
        if not os.access(path, os.X_OK):
            raise InputError(
                f"{path}: expected a program of Moses, found none",
                advice="MOSES_ROOT must be the folder of a built Moses (github.com/moses-smt/mosesdecoder, ./bjam "
                "-j4); compact tables need --with-cmph.",
            )
        return path

    def run(self, command: Sequence[str], folder: Path, given: bytes = b"") -> None:
        """Run a program; on failure, raise an error that quotes the end of its output."""
        done = subprocess.run(command, input=given, capture_output=True, cwd=folder, check=False)  # noqa: S603, Moses's
        if done.returncode:
            raise _failure(command, done.returncode, done.stderr or done.stdout)


def _failure(command: Sequence[str], code: int, output: bytes) -> MosesRnnError:
    printed = output.decode("utf-8", "replace").rstrip("\n").split("\n")
    end = "\n    ".join(printed[-SHOWN_LINES:])
    return MosesRnnError(f"{shlex.join(command)}\n  ended with code {code}:\n    {end}")


@dataclass(frozen=True)
class Decoded:
    """A line of the text and the lines of its n-best list; `failure` tells why there are none."""

    source: bytes
    nbest: Sequence[bytes] = ()
    failure: str = ""


@dataclass(frozen=True)
class DecoderOptions:
    """How Moses makes the lists: the ini, the size of a list, threads, and further flags."""

    ini: Path
    size: int
    threads: int | None  # None: all cores
    flags: Sequence[str] = ()

    def command(self, moses: Moses) -> list[str]:
        """Return the command that writes a list to stdout for each line of stdin."""
        threads = self.threads or len(os.sched_getaffinity(0))
        command = [str(moses.program("moses")), "-f", str(self.ini), "-threads", str(threads), "-v", "0"]
        command += ["-n-best-list", "-", str(self.size), "distinct"]
        return [*command, "-include-segmentation-in-n-best", "-print-alignment-info-in-n-best", *self.flags]


class _Process:
    """A running decoder. Each line is followed by an empty one, whose list shows that the line's list is complete."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, closed by `end`
        self._process = subprocess.Popen(  # noqa: S603, Moses's
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for us
        )
        self._input, self._output = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        self._write(b"\n")
        if self._read_to_empty() is None:
            code = self._process.wait()
            self._errors.seek(0)
            raise _failure(command, code, self._errors.read())

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # noticed when its lists are read
            self._input.write(data)
            self._input.flush()

    def give(self, line: bytes) -> None:
        """Give the decoder a line to translate."""
        self._write(line + b"\n\n")

    def finish(self) -> None:
        """Tell the decoder that no line follows."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def read_list(self) -> list[bytes] | None:
        """Return the next list, or None if the decoder has ended."""
        found = self._read_to_empty()
        return None if found is None else found[:-1]

    def _read_to_empty(self) -> list[bytes] | None:
        """Read to the list of the next empty line: a single line, whose sentence number is even."""
        lines = []
        while (line := self._output.readline()).endswith(b"\n"):
            number = line.partition(b" ")[0]
            if not number.isdigit():
                raise MosesRnnError(f"moses: expected n-best lists on its standard output, found {shown(line)}")
            lines.append(line)
            if int(number) % 2 == 0:
                return lines
        return None

    def end(self) -> None:
        """Kill the decoder."""
        self._process.kill()
        self._process.wait()
        self._errors.close()


class ListStream(ABC):
    """Yields the n-best lists of lines. A context manager."""

    def __init__(self) -> None:
        self._room = threading.Semaphore(LINES_AHEAD)
        self._lists: queue.SimpleQueue[Decoded | Exception | None] = queue.SimpleQueue()

    def decode(self, lines: Iterable[bytes], waiting: Callable[[], None] = lambda: None) -> Iterator[list[Decoded]]:
        """Yield the lists of lines, in order, as many at a time as are ready; the decoder works while they are used.

        `waiting` is called several times a second while none is ready; it may raise.
        """
        for work in (lambda: self._feed(lines), self._read):
            threading.Thread(target=self._report_errors, args=(work,), daemon=True).start()
        ended = False
        while not ended:
            waiting()
            ready = []
            with contextlib.suppress(queue.Empty):
                ready.append(self._lists.get(timeout=SECONDS_BETWEEN_LOOKS))
                while True:
                    ready.append(self._lists.get_nowait())
            for error in ready:
                if isinstance(error, Exception):
                    raise error
            ended = END in ready
            if decoded := [one for one in ready if isinstance(one, Decoded)]:
                yield decoded
                self._room.release(len(decoded))

    @abstractmethod
    def _feed(self, lines: Iterable[bytes]) -> None:
        """Take room for each line and have it decoded."""

    @abstractmethod
    def _read(self) -> None:
        """Put the lists into the queue, and END behind them."""

    @abstractmethod
    def close(self) -> None:
        """End the decoder, or the connection to it."""

    def _report_errors(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._lists.put(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the decoder."""
        self.close()


class Decoder(ListStream):
    """Decodes lines with Moses in a process of its own.

    If Moses dies, it is started again, and the lines that it had are given to it one by one: the one that kills it gets
    no list. `check` is called before, and may raise an error.
    """

    def __init__(self, command: Sequence[str], folder: Path, check: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._command, self._folder, self._check = command, folder, check
        self._process = _Process(command, folder)
        self._pending: deque[bytes] = deque()
        self._lock = threading.Lock()  # held while lines are given, and while a dead decoder is replaced
        self._finished = self._closed = False

    def _feed(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._room.acquire()
            with self._lock:
                self._pending.append(line)
                self._process.give(line)
        with self._lock:
            self._finished = True
            self._process.finish()

    def _read(self) -> None:
        while not self._closed:
            found = self._process.read_list()
            if found is not None:
                self._lists.put(Decoded(self._pending.popleft(), found))
                continue
            with self._lock:
                if self._finished and not self._pending:
                    self._lists.put(END)
                    return
                self._recover()

    def _recover(self) -> None:
        """Start a new decoder and give it the pending lines one by one."""
        self._restart()
        while self._pending and not self._closed:
            self._process.give(self._pending[0])
            found = self._process.read_list()
            failure = "" if found is not None else "Moses ended at this line"
            self._lists.put(Decoded(self._pending.popleft(), found or (), failure))
            if found is None:
                self._restart()
        if self._finished:
            self._process.finish()

    def _restart(self) -> None:
        if not self._closed:
            self._process.end()
            self._check()
            self._process = _Process(self._command, self._folder)

    def close(self) -> None:
        """Kill the decoder."""
        self._closed = True
        self._process.end()


class ServerClient(ListStream):
    """Decodes lines with a mosesserver, several at a time."""

    def __init__(self, url: str, size: int, seconds: float) -> None:
        super().__init__()
        self._url, self._size, self._seconds = url, size, seconds
        self._pool = ThreadPoolExecutor(CONNECTIONS)
        self._futures: queue.SimpleQueue[Future[Decoded] | None] = queue.SimpleQueue()

    def _feed(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._room.acquire()
            self._futures.put(self._pool.submit(self._decode, line))
        self._futures.put(None)

    def _read(self) -> None:
        while future := self._futures.get():
            self._lists.put(future.result())
        self._lists.put(END)

    def _decode(self, line: bytes) -> Decoded:
        if not words(line):  # such a text kills a mosesserver
            return Decoded(line)
        # As strings: mosesserver takes no others. Without the last one, phrases would be marked as |0-1|.
        flags = dict.fromkeys(
            ("nbest-distinct", "add-score-breakdown", "align", "word-align", "no-ReportSegmentation"), "true"
        )
        try:
            with client.ServerProxy(self._url, transport=_Transport(self._url, self._seconds)) as server:
                answer: Any = server.translate({"text": line.decode(), "nbest": self._size, **flags})
            return Decoded(line, [_format_line(item) for item in answer["nbest"]])
        except (client.Error, HTTPException, ExpatError, OSError, ValueError, KeyError, TypeError) as error:
            return Decoded(line, failure=f"{self._url}: {error}")

    def close(self) -> None:
        """Leave the server alone."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Transport(client.Transport):
    """XML-RPC over HTTP or HTTPS, with a limit for each wait."""

    def __init__(self, url: str, seconds: float) -> None:
        super().__init__()
        self._kind = HTTPSConnection if url.startswith("https:") else HTTPConnection
        self._seconds = seconds

    def make_connection(self, host: Any) -> HTTPConnection:
        """Return a new connection: each request has a transport of its own."""
        name, self._extra_headers, _ = self.get_host_info(host)
        self._connection = host, self._kind(name, timeout=self._seconds)
        return self._connection[1]


def _format_line(item: Mapping[str, Any]) -> bytes:
    """Format a hypothesis of a mosesserver as a line of an n-best list."""
    spans = " ".join(
        f"{span['src-start']}-{span['src-end']}={span['tgt-start']}-{span['tgt-end']}"
        for span in item["align"]
        if span["src-start"] >= 0  # the first stands for the empty hypothesis
    )
    links = " ".join(f"{link['source-word']}-{link['target-word']}" for link in item["word-align"])
    return f"0 ||| {item['hyp']} ||| {item['fvals']} ||| {item['totalScore']:.6g} ||| {spans} ||| {links}\n".encode()
