"""The protocol of a pool, and the one loop that feeds it ahead, sends again what died, and answers in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from moses_rnn.errors import MosesRnnError, Stopped

Item = TypeVar("Item")
Result = TypeVar("Result")
ITEMS_AHEAD = 2  # for each worker
MOST_TRIES = 3  # of an item whose worker died
SECONDS_BETWEEN_LOOKS = 5.0  # at whether the workers live

Item_contra = TypeVar("Item_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class NotBegun(Exception):
    """A worker died before it took the item, which will not have been why."""


class Job(Protocol[Item_contra, Result_co]):
    """What is done with items. It can be pickled, hashed and compared: other processes begin it once and keep it."""

    def begin(self, place: str) -> Callable[[Item_contra], Result_co]:
        """Get ready in the worker that will do it, on the device of that name; what is returned does it."""


class Pool(Protocol[Item_contra, Result]):
    """Workers that take items and answer with futures.

    `window` is how many items keep all workers busy, `deaths` are the errors by which a future tells that its worker
    died rather than that the work failed; `NotBegun` among them, where a pool knows that it died over another item.
    """

    window: int
    deaths: tuple[type[BaseException], ...]

    def submit(self, item: Item_contra) -> Future[Result]:
        """Hand an item to a worker, a new one if the one whose turn it is has died."""

    def check(self) -> None:
        """Raise MosesRnnError if nobody is left who could answer; called while an answer is waited for."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """End the workers; what they have not begun is not done."""


@dataclass
class _Sent(Generic[Item, Result]):
    item: Item
    future: Future[Result]
    tries: int = 1


def in_order(
    items: Iterable[Item], pool: Pool[Item, Result], described: Callable[[Item], str]
) -> Iterator[tuple[Item, Result]]:
    """Items with what workers make of them, in the items' order; a few are worked at ahead of the one that comes next.

    If the items end with an error, what came before it is given out first; not so if somebody wants to stop.

    Args:
        items: of the work.
        pool: who works; entered and left by the caller.
        described: an item's name for messages.

    Raises:
        MosesRnnError: a worker died over an item for the third time; or what the work raised.
    """
    waiting: deque[_Sent[Item, Result]] = deque()
    failures: list[Exception] = []
    try:
        for item in _until_failure(items, failures):
            waiting.append(_Sent(item, pool.submit(item)))
            if len(waiting) > pool.window:
                yield _next_answer(waiting, pool, described)
        while waiting:
            yield _next_answer(waiting, pool, described)
    finally:
        for sent in waiting:
            sent.future.cancel()
    for failure in failures:
        raise failure


def _until_failure(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    try:
        yield from items
    except Stopped:
        raise
    except Exception as error:
        failures.append(error)


def _next_answer(
    waiting: deque[_Sent[Item, Result]], pool: Pool[Item, Result], described: Callable[[Item], str]
) -> tuple[Item, Result]:
    first = waiting[0]
    while True:
        try:
            result = first.future.result(timeout=SECONDS_BETWEEN_LOOKS)
        except pool.deaths:
            _send_again(waiting, pool, described)
        except TimeoutError:
            if first.future.done():
                raise  # the work's own
            pool.check()
        else:
            waiting.popleft()
            return first.item, result


def _send_again(
    waiting: deque[_Sent[Item, Result]], pool: Pool[Item, Result], described: Callable[[Item], str]
) -> None:
    """Hand the items of dead workers to living ones.

    If a worker died over the item that is waited for, what was not begun stays here until that one is answered. An
    answer can be lost with a worker that dies over the next item: of an item that nothing follows, it cannot.

    Raises:
        MosesRnnError: it would be the fourth time for an item that workers die over.
    """
    over_the_first = not isinstance(_death(waiting[0].future, pool), NotBegun)
    for sent in waiting:
        death = _death(sent.future, pool)
        if death is None or (over_the_first and isinstance(death, NotBegun)):
            continue
        if not isinstance(death, NotBegun):
            if sent.tries == MOST_TRIES:
                raise MosesRnnError(
                    f"{described(sent.item)}: expected a worker to finish it, found that {MOST_TRIES} died over it "
                    f"({type(death).__name__}: {death})",
                    advice="Did memory run out? Fewer workers (--processes, --threads) need less.",
                ) from death
            sent.tries += 1
        sent.future = pool.submit(sent.item)


def _death(future: Future[Result], pool: Pool[Item, Result]) -> BaseException | None:
    error = future.exception() if future.done() and not future.cancelled() else None
    return error if isinstance(error, pool.deaths) else None
