"""Work in order, whoever does it, and what becomes of errors."""

import threading
import time

import pytest
import torch

from moses_rnn.errors import FormatError, Stopped
from moses_rnn.producers.base import Compute
from moses_rnn.scoring.workers import MOST_CPU_WORKERS, WORKERS_OF_A_GPU, in_order, share_threads


def test_results_come_in_the_items_order():
    def slow_first(number):
        time.sleep(0.05 if number == 0 else 0)
        return number

    assert list(in_order(range(20), slow_first, 3, "test")) == list(range(20))


def items_until(error):
    yield from range(5)
    raise error


def test_what_came_before_an_error_of_the_input_is_given_out_first():
    results = in_order(items_until(FormatError("t", 6, "a line", "none")), lambda number: number, 2, "test")
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(FormatError):
        next(results)


def test_whoever_wants_to_stop_does_not_wait():
    results = in_order(items_until(Stopped("stop")), lambda number: number, 8, "test")
    with pytest.raises(Stopped):
        next(results)


def test_an_error_of_the_work_ends_it():
    with pytest.raises(ZeroDivisionError):
        list(in_order(range(9), lambda number: 1 // (number - 4), 2, "test"))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("test")]


def test_only_a_few_items_are_taken_ahead():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = in_order(items(), lambda number: number, 2, "test")
    assert next(results) == 0
    assert len(taken) <= 6
    results.close()


@pytest.mark.parametrize(
    ("devices", "threads", "native", "of_each", "of_torch"),
    [
        (["cpu"], 1, True, 1, 3),
        (["cpu"], 20, True, 20, 3),
        (["cpu", "cpu"], 5, True, 2, 3),
        (["cpu", "cpu"], 1, True, 1, 3),
        (["cpu"], 2, False, 2, 1),
        (["cpu"], 2 * MOST_CPU_WORKERS, False, MOST_CPU_WORKERS, 2),
        (["cpu", "cpu"], 4, False, 1, 2),
        (["cuda:0", "cuda:1"], 4, False, WORKERS_OF_A_GPU, 3),
        (["cpu"], None, True, 3, 3),
    ],
)
def test_threads_are_shared_among_workers(devices, threads, native, of_each, of_torch):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert share_threads(devices, threads, Compute(native=native)) == of_each
        assert torch.get_num_threads() == of_torch
    finally:
        torch.set_num_threads(before)
