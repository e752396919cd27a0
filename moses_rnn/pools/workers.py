"""Work on items, a few ahead of the one that comes next, with results in the items' order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Generic, Protocol, Self, TypeVar

from moses_rnn.errors import Stopped

Item = TypeVar("Item")
Result = TypeVar("Result")
Item_contra = TypeVar("Item_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)
ITEMS_AHEAD = 2  # for each worker


class Workers(Protocol[Item_contra, Result_co]):
    """Those who work; a context, at whose end they stop. `count` is how many there are."""

    count: int

    def submit(self, item: Item_contra) -> Callable[[], Result_co]:
        """Hand an item to a worker; the call that is returned waits for the result, or raises what the work raised."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def map_in_order(items: Iterable[Item], workers: Workers[Item, Result]) -> Iterator[tuple[Item, Result]]:
    """Items with their results, in the items' order.

    If the items end with an error, the results before it come first. They do not if it is `Stopped`.
    """
    waiting: deque[tuple[Item, Callable[[], Result]]] = deque()
    failures: list[Exception] = []
    for item in _until_failure(items, failures):
        waiting.append((item, workers.submit(item)))
        if len(waiting) > workers.count * ITEMS_AHEAD:
            first, result = waiting.popleft()
            yield first, result()
    for first, result in waiting:
        yield first, result()
    for failure in failures:
        raise failure


def _until_failure(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    try:
        yield from items
    except Stopped:
        raise
    except Exception as error:
        failures.append(error)


class Threads(Generic[Item, Result]):
    """Threads of this process: enough where torch or the native core works outside Python's lock.

    Args:
        functions: one for each thread; several threads may share one.
    """

    def __init__(self, functions: Sequence[Callable[[Item], Result]]) -> None:
        self.count = len(functions)
        self._idle: SimpleQueue[Callable[[Item], Result]] = SimpleQueue()
        for function in functions:
            self._idle.put(function)
        self._executor = ThreadPoolExecutor(self.count, thread_name_prefix="worker")

    def submit(self, item: Item) -> Callable[[], Result]:
        """Hand an item to the next idle thread."""
        return self._executor.submit(self._work, item).result

    def _work(self, item: Item) -> Result:
        function = self._idle.get()
        try:
            return function(item)
        finally:
            self._idle.put(function)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for what the threads are doing; nothing more is begun."""
        self._executor.shutdown(cancel_futures=True)
