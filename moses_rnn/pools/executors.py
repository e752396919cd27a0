"""Any executor that speaks `concurrent.futures`: Dask's ``client.get_executor()``, an MPI pool's, one's own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, Generic, Self

from moses_rnn.pools.base import ITEMS_AHEAD, Item, Job, Result

_begun: dict[tuple[Job[Any, Any], str], Callable[[Any], Any]] = {}  # of this process: the job that it is at
_beginning = threading.Lock()


def do(job: Job[Item, Result], place: str, item: Item) -> Result:
    """Do a job to an item, in whatever process this is called; the job is begun once and kept until another comes."""
    with _beginning:
        work = _begun.get((job, place))
        if work is None:
            work = job.begin(place)
            _begun.clear()
            _begun[job, place] = work
    result: Result = work(item)
    return result


class ExecutorPool(Generic[Item, Result]):
    """Workers of an executor that somebody else made and will end.

    Args:
        executor: that takes functions of this package; its workers see the models under the same paths.
        job: what is done to items.
        place: the device of each worker.
        workers: how many there are.
    """

    deaths: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def __init__(self, executor: Executor, job: Job[Item, Result], place: str = "cpu", *, workers: int) -> None:
        self.window = workers * ITEMS_AHEAD
        self._executor, self._job, self._place = executor, job, place

    def submit(self, item: Item) -> Future[Result]:
        """Hand an item to the executor."""
        return self._executor.submit(do, self._job, self._place, item)

    def check(self) -> None:
        """Do nothing: the executor knows whether its workers live."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the executor as it is."""
