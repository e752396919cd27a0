"""Work in order, and what becomes of errors."""

import threading
import time

import pytest

from moses_rnn.errors import FormatError, Stopped
from moses_rnn.score.workers import ThreadWorkers, map_in_order


def worked(items, work, threads):
    with ThreadWorkers([work] * threads) as workers:
        for _, result in map_in_order(items, workers):
            yield result


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


def test_an_error_of_the_work_ends_it_and_what_waits_is_not_begun():
    begun = []

    def work(number):
        begun.append(number)
        return 1 // (number - 4)

    def slow_from_five(number):
        time.sleep(0.2 if number > 4 else 0)
        return work(number)

    with pytest.raises(ZeroDivisionError):
        list(worked(range(100), slow_from_five, 2))
    assert max(begun) < 7
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("worker")]


def test_each_function_is_called_by_one_thread_at_a_time():
    both_began = threading.Barrier(2, timeout=60)

    def named(name):
        def work(_item):
            both_began.wait()
            return name

        return work

    with ThreadWorkers([named("a"), named("b")]) as workers:
        assert sorted(result for _, result in map_in_order(range(2), workers)) == ["a", "b"]
