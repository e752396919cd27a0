"""Threads of this process: enough where the work is done outside Python's lock, by torch or the native core."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Generic, Self

from moses_rnn.errors import MosesRnnError
from moses_rnn.pools.base import ITEMS_AHEAD, Item, Result


class ThreadPool(Generic[Item, Result]):
    """A thread for each way to work; several may share what they work with.

    Args:
        workers: what does the work, for each thread.
        name: of the threads.
    """

    deaths: tuple[type[BaseException], ...] = ()  # they die with the process

    def __init__(self, workers: Sequence[Callable[[Item], Result]], name: str = "scoring") -> None:
        self.window = len(workers) * ITEMS_AHEAD
        self._name = name
        self._idle: SimpleQueue[Callable[[Item], Result]] = SimpleQueue()
        for work in workers:
            self._idle.put(work)
        self._executor = ThreadPoolExecutor(len(workers), thread_name_prefix=name)

    def submit(self, item: Item) -> Future[Result]:
        """Hand an item to the next thread that is idle."""
        return self._executor.submit(self._work, item)

    def _work(self, item: Item) -> Result:
        work = self._idle.get()
        try:
            return work(item)
        finally:
            self._idle.put(work)

    def check(self) -> None:
        """Raise MosesRnnError if no thread is left."""
        if not any(thread.name.startswith(self._name) for thread in threading.enumerate()):
            raise MosesRnnError("a worker ended without an answer: did memory run out?")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for what the threads are at, and end them."""
        self._executor.shutdown(cancel_futures=True)
