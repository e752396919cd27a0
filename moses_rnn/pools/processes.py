"""Processes of this machine, one for each place: a death costs what its process was at, which is sent again.

Each has a pipe of its own, of which nobody else holds an end: whenever it dies, be it with half of an answer written or
half of an item read, the pipe says so.
"""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, Generic, Self

from moses_rnn.errors import MosesRnnError
from moses_rnn.pools.base import ITEMS_AHEAD, Item, Job, NotBegun, Result
from moses_rnn.pools.executors import do

SIGNALS_OF_THE_DRIVER = (signal.SIGINT, signal.SIGUSR1)  # a terminal and Slurm send them to all processes
MOST_SECONDS_TO_END = 5.0


class ProcessDied(Exception):
    """A process ended over an item."""


class ProcessPool(Generic[Item, Result]):
    """Processes that are spawned, and spawned again where one died.

    Args:
        job: what is done to items.
        places: the device of each process.
    """

    deaths: tuple[type[BaseException], ...] = (ProcessDied, NotBegun)

    def __init__(self, job: Job[Item, Result], places: Sequence[str]) -> None:
        self.window = len(places) * ITEMS_AHEAD
        self._job, self._places = job, places
        self._processes: list[_Process[Item, Result] | None] = [None] * len(places)

    def submit(self, item: Item) -> Future[Result]:
        """Hand an item to the process that has least to do."""
        waiting = [0 if process is None else process.waiting for process in self._processes]
        at = waiting.index(min(waiting))
        process = self._processes[at]
        if process is not None:
            with contextlib.suppress(ProcessDied):
                return process.submit(item)
        process = self._processes[at] = _Process(self._job, self._places[at])
        try:
            return process.submit(item)
        except ProcessDied as death:  # before it did anything
            answer: Future[Result] = Future()
            answer.set_exception(death)
            return answer

    def check(self) -> None:
        """Do nothing: a process that died says so by the future of what it was at."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, whatever they are at."""
        living = [process for process in self._processes if process is not None]
        for process in living:
            process.terminate()
        for process in living:
            process.wait()


class _Process(Generic[Item, Result]):
    """A process, with a thread that sends it items and one that takes its answers, which come in the same order."""

    def __init__(self, job: Job[Item, Result], place: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, its_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(its_end, job, place), daemon=True)
        with its_end, _nameless_program():
            self._process.start()
        self._unsent: SimpleQueue[tuple[Item, Future[Result]] | None] = SimpleQueue()
        self._unanswered: deque[Future[Result]] = deque()
        self._died = threading.Event()  # and nobody waits any more
        self._death = ""
        self._lock = threading.Lock()
        self._sender = threading.Thread(target=self._send, name="pool: items", daemon=True)
        self._receiver = threading.Thread(target=self._receive, name="pool: answers", daemon=True)
        self._sender.start()
        self._receiver.start()

    @property
    def waiting(self) -> int:
        """How many items it was given and has not answered."""
        return len(self._unanswered)

    def submit(self, item: Item) -> Future[Result]:
        """Give it an item.

        Raises:
            ProcessDied: it cannot take any more.
        """
        future: Future[Result] = Future()
        with self._lock:
            if self._died.is_set():
                raise ProcessDied(self._death)
            self._unanswered.append(future)
        self._unsent.put((item, future))
        return future

    def _send(self) -> None:
        while (unsent := self._unsent.get()) is not None:
            item, future = unsent
            with self._lock:
                if self._died.is_set():
                    return
                if not future.set_running_or_notify_cancel():
                    self._unanswered.remove(future)
                    continue
            try:
                self._pipe.send(item)
            except OSError:  # it died, as the other thread will find
                self._process.terminate()
                return
            except Exception as error:  # whatever keeps an item from being pickled
                with self._lock:
                    if self._died.is_set():
                        return
                    self._unanswered.remove(future)
                future.set_exception(error)

    def _receive(self) -> None:
        for answer, unreadable in _received(self._pipe):
            with self._lock:
                future = self._unanswered.popleft()
            _settle(future, *(answer or (None, unreadable)))
        self._end()

    def _end(self) -> None:
        """Tell everybody who waits."""
        self._process.join(MOST_SECONDS_TO_END)
        self._process.kill()
        self._death = f"process {self._process.pid} {_ending(self._process.exitcode)}"
        with self._lock:
            self._died.set()
            unanswered = list(self._unanswered)
            self._unanswered.clear()
        for waited, future in enumerate(unanswered):
            with contextlib.suppress(InvalidStateError):  # of what was cancelled
                future.set_exception(NotBegun(self._death) if waited else ProcessDied(self._death))
        self._unsent.put(None)
        self._sender.join()
        self._pipe.close()

    def terminate(self) -> None:
        """Ask it to end, whatever it is at."""
        self._process.terminate()

    def wait(self) -> None:
        """Wait until it has ended; one that takes its time is killed."""
        self._receiver.join(MOST_SECONDS_TO_END)
        if self._receiver.is_alive():
            self._process.kill()
            self._receiver.join(MOST_SECONDS_TO_END)


def _settle(future: Future[Any], result: object, error: Exception | None) -> None:
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"was killed by signal {-exit_code} ({signal.strsignal(-exit_code)})"
    return f"ended with exit code {exit_code}"


@contextlib.contextmanager
def _nameless_program() -> Iterator[None]:
    """Processes that are spawned meanwhile do not run the main program's file: a script needs no guard for them."""
    main = sys.modules["__main__"]
    hidden = {name: vars(main)[name] for name in ("__file__", "__spec__") if vars(main).get(name) is not None}
    try:
        vars(main).update(dict.fromkeys(hidden))
        yield
    finally:
        vars(main).update(hidden)


def _serve(pipe: Connection, job: Job[Any, Any], place: str) -> None:
    """In a new process: answer items until the driver has no more."""
    for number in SIGNALS_OF_THE_DRIVER:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    for item, unreadable in _received(pipe):
        try:
            pipe.send((_answer(job, place, item, unreadable), None))
        except Exception as error:  # raised again by the driver
            _send_error(pipe, error)


def _answer(job: Job[Any, Any], place: str, item: object, unreadable: Exception | None) -> object:
    if unreadable is not None:
        raise unreadable
    return do(job, place, item)


def _received(pipe: Connection) -> Iterator[tuple[Any, Exception | None]]:
    """What comes through a pipe, or None and why it could not be read; until the other end is closed."""
    while True:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            return
        except Exception as error:  # whatever keeps it from being unpickled
            yield None, error
        else:
            yield message, None


def _send_error(pipe: Connection, error: Exception) -> None:
    """Send it as it was raised, or its trace if it cannot be pickled or made again from that."""
    trace = f"in a process of the pool:\n{''.join(traceback.format_exception(error))}"
    if not isinstance(error, MosesRnnError):
        error.add_note(trace)
    try:
        copy.copy(error)  # makes it again
        pipe.send((None, error))
    except Exception:  # whatever keeps it from that
        with contextlib.suppress(OSError):
            pipe.send((None, RuntimeError(trace)))


def _end_with_the_driver() -> None:
    """End with it even if it is killed while this process is at an item."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        wait([driver.sentinel])
        os._exit(1)
