"""From what is wanted to the pool."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from moses_rnn.pools.choice import open_pool_elsewhere, places_of
from moses_rnn.pools.executors import ExecutorPool
from moses_rnn.pools.processes import ProcessPool
from moses_rnn.pools.request import PoolRequest
from tests.pools.jobs import Doubling


@pytest.mark.parametrize(
    ("processes", "devices", "places"),
    [
        (None, ["cuda:0", "cuda:1"], ["cuda:0", "cuda:1"]),
        (3, ["cpu"], ["cpu"] * 3),
        (3, ["cuda:0", "cuda:1"], ["cuda:0", "cuda:1", "cuda:0"]),
    ],
)
def test_processes_share_the_devices(processes, devices, places):
    assert places_of(PoolRequest(processes=processes), devices) == places


def test_the_pool_that_is_wanted():
    with open_pool_elsewhere(PoolRequest(processes=2), Doubling(), ["cpu"]) as pool:
        assert isinstance(pool, ProcessPool)
        assert pool.window == 4
    with (
        ThreadPoolExecutor(1) as executor,
        open_pool_elsewhere(PoolRequest(executor=executor, workers=3), Doubling(), ["cpu"]) as pool,
    ):
        assert isinstance(pool, ExecutorPool)
        assert pool.window == 6
    assert not PoolRequest().is_elsewhere
