"""From a request to the pool whose workers are elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from moses_rnn.pools.base import Item, Job, Pool, Result
from moses_rnn.pools.executors import ExecutorPool
from moses_rnn.pools.processes import ProcessPool
from moses_rnn.pools.ray_actors import RayPool
from moses_rnn.pools.request import PoolRequest


def places_of(request: PoolRequest, devices: Sequence[str]) -> list[str]:
    """The device of each process of this machine: in turn, one process each if no number is given."""
    return [devices[i % len(devices)] for i in range(request.processes or len(devices))]


def open_pool_elsewhere(request: PoolRequest, job: Job[Item, Result], devices: Sequence[str]) -> Pool[Item, Result]:
    """The pool of a request, as a context.

    Raises:
        MosesRnnError: there is no such pool.
    """
    if request.executor is not None:
        return ExecutorPool(request.executor, job, devices[0], workers=request.workers or 1)
    if request.ray is not None:
        return RayPool(job, request.ray, devices[0].partition(":")[0], workers=request.workers)
    return ProcessPool(job, places_of(request, devices))
