"""Processes of this machine, one for each place: a death costs what its process was at, which is sent again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from typing import Generic, Self

from moses_rnn.pools.base import ITEMS_AHEAD, Item, Job, Result
from moses_rnn.pools.executors import do

SIGNALS_OF_THE_DRIVER = (signal.SIGINT, signal.SIGUSR1)  # a terminal and Slurm send them to all processes


class ProcessPool(Generic[Item, Result]):
    """Processes that are spawned, and spawned again where one died.

    Each is an executor of its own, because one that lost a process gives up all of its work.

    Args:
        job: what is done to items.
        places: the device of each process.
    """

    deaths: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def __init__(self, job: Job[Item, Result], places: Sequence[str]) -> None:
        self.window = len(places) * ITEMS_AHEAD
        self._processes = [_Process(job, place) for place in places]

    def submit(self, item: Item) -> Future[Result]:
        """Hand an item to the process that has least to do."""
        return min(self._processes, key=lambda process: process.waiting).submit(item)

    def check(self) -> None:
        """Do nothing: a process that died says so by the future of what it was at."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, whatever they are at."""
        for process in self._processes:
            process.end()


class _Process(Generic[Item, Result]):
    def __init__(self, job: Job[Item, Result], place: str) -> None:
        self._job, self._place = job, place
        self._executor = self._spawn()
        self._lock = threading.Lock()
        self.waiting = 0  # items that it was given and has not answered

    @staticmethod
    def _spawn() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)

    def submit(self, item: Item) -> Future[Result]:
        with _nameless_program():
            try:
                future = self._executor.submit(do, self._job, self._place, item)
            except BrokenExecutor:
                self._executor.shutdown(wait=False)
                self._executor = self._spawn()
                future = self._executor.submit(do, self._job, self._place, item)
        self._count(1)
        future.add_done_callback(lambda _: self._count(-1))
        return future

    def _count(self, change: int) -> None:
        with self._lock:
            self.waiting += change

    def end(self) -> None:
        processes = [*(self._executor._processes or {}).values()]  # noqa: SLF001: 3.14 has terminate_workers for it
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


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


def _begin() -> None:
    """In a new process: leave signals to the driver, and end with it, even if it is killed."""
    for number in SIGNALS_OF_THE_DRIVER:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_driver, daemon=True).start()


def _end_with_the_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        wait([driver.sentinel])
        os._exit(1)
