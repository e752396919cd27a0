"""Threads that share a minibatch learn what one learns, and share work, cores and weights evenly."""

import itertools
import threading

import pytest
import torch

from moses_rnn.training.descent import even_parts
from moses_rnn.training.ranks import Threads, share_cores
from moses_rnn.training.tasks import seed_of


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_results_come_in_the_items_order(count):
    threads = Threads(count)
    assert threads.each(lambda number: number * number, range(7)) == [number * number for number in range(7)]
    assert threads.each(str, []) == []


def test_each_of_several_threads_has_its_share():
    together = threading.Barrier(3, timeout=60)  # which none gets past alone
    names = Threads(3).each(lambda _: (together.wait(), threading.current_thread().name)[1], range(6))
    assert len(set(names)) == 3


def test_an_error_is_raised_once_all_have_ended():
    ended = []

    def work(number):
        if number == 0:
            raise ZeroDivisionError
        ended.append(number)

    with pytest.raises(ZeroDivisionError):
        Threads(3).each(work, range(3))
    assert sorted(ended) == [1, 2]


@pytest.mark.parametrize(
    ("cores", "batch_size", "count", "of_each"),
    [(1, 1000, 1, 1), (2, 128, 2, 1), (2, 127, 1, 2), (8, 64, 1, 8), (8, 256, 4, 2), (7, 128, 2, 3), (4, 1, 1, 4)],
)
def test_cores_are_shared_by_as_many_threads_as_have_enough_to_do(monkeypatch, cores, batch_size, count, of_each):
    chosen = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    assert (share_cores(cores, batch_size), chosen) == (count, [of_each])


@pytest.mark.parametrize(
    ("cores", "batch_size", "count"), [(1, 1000, 1), (2, 64, 2), (8, 64, 4), (16, 128, 8), (4, 1, 1)]
)
def test_the_native_core_has_smaller_parts_and_leaves_torch_one_thread(monkeypatch, cores, batch_size, count):
    chosen = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    assert (share_cores(cores, batch_size, native=True), chosen) == (count, [1])


def test_every_part_of_every_minibatch_has_a_seed_of_its_own():
    places = list(itertools.product((1, 2), range(20), range(4)))
    seeds = [seed_of(*place) for place in places]
    assert len(set(seeds)) == len(places)
    assert seeds == [seed_of(*place) for place in places]
    assert 0 <= min(seeds) < max(seeds) < 2**63


def test_weights_are_parted_evenly_and_none_is_left_out():
    weights = [torch.nn.Parameter(torch.zeros(size)) for size in (10, 1, 7, 3, 3, 2)]
    parts = even_parts(weights, 2)
    assert sorted(itertools.chain(*parts)) == list(range(6))
    assert [sum(weights[place].numel() for place in part) for part in parts] == [13, 13]
    assert even_parts(weights[:2], 5) == [[0], [1]]
