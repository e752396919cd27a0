"""Which pool is wanted."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass


@dataclass(frozen=True)
class PoolRequest:
    """Who works: threads of this process, unless one of these is given.

    `processes` are of this machine, `ray` is the address of a cluster, `executor` anything that speaks
    `concurrent.futures`; `workers` are how many actors of the cluster, or workers of the executor.
    """

    processes: int | None = None
    ray: str | None = None
    executor: Executor | None = None
    workers: int | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether workers open the models themselves."""
        return self.processes is not None or self.ray is not None or self.executor is not None
