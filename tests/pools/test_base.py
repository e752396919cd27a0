"""Work in order, whoever does it, and what becomes of errors and deaths."""

import threading
import time
from concurrent.futures import Future

import pytest

from moses_rnn.errors import FormatError, MosesRnnError, Stopped
from moses_rnn.pools.base import MOST_TRIES, NotBegun, in_order
from moses_rnn.pools.threads import ThreadPool


def worked(items, work, threads):
    """Results in the items' order, by threads."""
    with ThreadPool([work] * threads, "test") as pool:
        for _, result in in_order(items, pool, str):
            yield result


def test_results_come_in_the_items_order():
    def slow_first(number):
        time.sleep(0.05 if number == 0 else 0)
        return number

    assert list(worked(range(20), slow_first, 3)) == list(range(20))


def items_until(error):
    yield from range(5)
    raise error


def test_what_came_before_an_error_of_the_input_is_given_out_first():
    results = worked(items_until(FormatError("t", 6, "a line", "none")), lambda number: number, 2)
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(FormatError):
        next(results)


def test_whoever_wants_to_stop_does_not_wait():
    results = worked(items_until(Stopped("stop")), lambda number: number, 8)
    with pytest.raises(Stopped):
        next(results)


def test_an_error_of_the_work_ends_it():
    with pytest.raises(ZeroDivisionError):
        list(worked(range(9), lambda number: 1 // (number - 4), 2))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("test")]


def test_only_a_few_items_are_taken_ahead():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = worked(items(), lambda number: number, 2)
    assert next(results) == 0
    assert len(taken) <= 6
    results.close()


class Death(Exception):
    """A worker's."""


class Mortal:
    """A pool whose workers die over some items, so many times each."""

    window, deaths = 3, (Death,)

    def __init__(self, dying):
        self.dying = dying
        self.sent = []

    def submit(self, item):
        self.sent.append(item)
        future = Future()
        if self.sent.count(item) <= self.dying.get(item, 0):
            future.set_exception(Death(f"over {item}"))
        else:
            future.set_result(-item)
        return future

    def check(self):
        raise AssertionError


def test_what_died_is_sent_again_and_still_comes_in_order():
    pool = Mortal({2: 1, 3: 2, 7: MOST_TRIES - 1})
    assert list(in_order(range(10), pool, str)) == [(i, -i) for i in range(10)]
    assert [pool.sent.count(i) for i in range(10)] == [1, 1, 2, 3, 1, 1, 1, MOST_TRIES, 1, 1]


def test_the_third_death_over_an_item_names_it():
    results = in_order(range(10), Mortal({4: MOST_TRIES}), lambda item: f"item {item}")
    assert [next(results) for _ in range(4)] == [(i, -i) for i in range(4)]
    with pytest.raises(
        MosesRnnError, match=r"item 4: expected a worker to finish it, found that 3 died over it .Death: over 4"
    ):
        next(results)


def test_deaths_before_an_item_was_begun_are_not_counted():
    class Elsewhere(Mortal):
        """Its workers die over other items."""

        deaths = (Death, NotBegun)

        def submit(self, item):
            future = super().submit(item)
            if isinstance(future.exception(), Death) and self.sent.count(item) <= MOST_TRIES:
                future = Future()
                future.set_exception(NotBegun())
            return future

    pool = Elsewhere({4: 2 * MOST_TRIES - 1, 6: 2 * MOST_TRIES})
    results = in_order(range(10), pool, str)
    assert [next(results) for _ in range(6)] == [(i, -i) for i in range(6)]
    assert pool.sent.count(4) == 2 * MOST_TRIES
    with pytest.raises(MosesRnnError, match="6: .* found that 3 died over it"):
        next(results)


class LosingAnswers:
    """One worker that dies over an item at once, while its answer for the one before is on its way."""

    window, deaths = 3, (Death, NotBegun)

    def __init__(self, deadly):
        self.deadly = deadly
        self.unanswered = []

    def submit(self, item):
        future = WorkedOnWhenAwaited(self)
        self.unanswered.append((item, future))
        return future

    def work(self):
        items = [item for item, _ in self.unanswered]
        answers = max(items.index(self.deadly) - 1, 0) if self.deadly in items else len(items)
        for i, (item, future) in enumerate(self.unanswered):
            if i < answers:
                future.set_result(-item)
            else:
                future.set_exception(NotBegun() if i > answers else Death())
        self.unanswered.clear()

    def check(self):
        raise AssertionError


class WorkedOnWhenAwaited(Future):
    """Settled by its pool when somebody waits for it."""

    def __init__(self, pool):
        super().__init__()
        self.pool = pool

    def result(self, timeout=None):
        if not self.done():
            self.pool.work()
        return super().result(timeout)


def test_an_item_whose_answer_was_lost_with_a_worker_is_not_taken_for_the_deadly_one():
    results = in_order(range(10), LosingAnswers(5), lambda item: f"item {item}")
    assert [next(results) for _ in range(5)] == [(i, -i) for i in range(5)]
    with pytest.raises(MosesRnnError, match="item 5: .* found that 3 died over it"):
        next(results)


def test_a_timeout_of_the_work_is_an_error_of_the_work():
    def late(_item):
        raise TimeoutError("late")

    with pytest.raises(TimeoutError, match="late"):
        list(worked([1], late, 1))
