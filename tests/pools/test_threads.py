"""Threads that share what they work with."""

import threading

import pytest

from moses_rnn.errors import MosesRnnError
from moses_rnn.pools.threads import ThreadPool


def test_each_way_to_work_is_used_by_one_thread_at_a_time():
    both_began = threading.Barrier(2, timeout=60)

    def work_of(name):
        def work(_item):
            both_began.wait()
            return name

        return work

    with ThreadPool([work_of("a"), work_of("b")]) as pool:
        assert sorted(future.result() for future in [pool.submit(1), pool.submit(2)]) == ["a", "b"]


def test_a_pool_without_a_living_thread_says_so():
    with ThreadPool([abs], "lost") as pool, pytest.raises(MosesRnnError, match="ended without an answer"):
        pool.check()
    with ThreadPool([abs], "alive") as pool:
        pool.submit(-1).result()
        pool.check()
