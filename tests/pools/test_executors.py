"""Executors that somebody else made."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from moses_rnn.pools.base import in_order
from moses_rnn.pools.executors import ExecutorPool
from tests.pools.jobs import Doubling


def test_an_executor_is_used_and_left_alone(tmp_path):
    with ThreadPoolExecutor(3) as executor:
        with ExecutorPool(executor, Doubling(str(tmp_path)), "here", workers=3) as pool:
            assert [result for _, result in in_order(range(30), pool, str)] == [2 * i for i in range(30)]
            pool.check()
        assert executor.submit(abs, -1).result() == 1
    (begun,) = tmp_path.iterdir()  # once, by whichever thread came first
    assert begun.read_text() == "here"


def test_an_executor_of_processes():
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor,
        ExecutorPool(executor, Doubling(), workers=2) as pool,
    ):
        assert list(in_order(range(9), pool, str)) == [(i, 2 * i) for i in range(9)]


def test_dask_clients_speak_it():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        ExecutorPool(client.get_executor(pure=False), Doubling(), workers=2) as pool,
    ):
        assert list(in_order(range(9), pool, str)) == [(i, 2 * i) for i in range(9)]
