"""A few threads that share a step of training: each computes with one thread of torch, and none waits inside a product.

Two threads of one product meet at a barrier after each of a step's hundreds of products, and wait for it by spinning;
where another process has one of the cores they spend most of their time so. Threads that each learn from their own
part of a minibatch meet three times a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import nn

Item = TypeVar("Item")
Result = TypeVar("Result")
Figures = TypeVar("Figures", bound=tuple[float, ...])
ROWS = 64  # of a minibatch for each thread: with fewer, products are smaller than they are fast
NATIVE_ROWS = 16  # the same for the native core, whose products are packed with less ado


class Workers(Protocol):
    """Whoever shares work that is a list of items with figures for results: threads, of one process or of several."""

    def each(self, work: Callable[[Item], Figures], items: Iterable[Item]) -> list[Figures]:
        """The figures of all items, in order."""


class Threads:
    """Threads that work side by side, the calling one among them.

    Args:
        count: how many.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1, thread_name_prefix="training") if count > 1 else None

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of all items, in order; the first error is raised once all have ended."""
        every = list(items)
        if self._pool is None or len(every) < 2:
            return [work(item) for item in every]
        first, *others = (every[i :: self.count] for i in range(min(self.count, len(every))))
        futures = [self._pool.submit(_worked, work, share) for share in others]
        try:
            shares = [_worked(work, first)]
        finally:
            wait(futures)
        shares += [future.result() for future in futures]
        return [shares[i % len(shares)][i // len(shares)] for i in range(len(every))]


def _worked(work: Callable[[Item], Result], items: list[Item]) -> list[Result]:
    return [work(item) for item in items]


def share_cores(cores: int, batch_size: int, *, native: bool = False) -> int:
    """The number of threads to share a minibatch; sets torch's own to the cores that are left for each.

    Args:
        cores: to be used.
        batch_size: of the minibatches.
        native: whether the native core learns, and torch has too little to do for several threads.
    """
    count = max(min(cores, batch_size // (NATIVE_ROWS if native else ROWS)), 1)
    torch.set_num_threads(1 if native else max(cores // count, 1))
    return count


def seed_of(seed: int, step: int, part: int) -> int:
    """A different seed for each part of each minibatch."""
    return int(np.random.SeedSequence((seed, step, part)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def even_parts(weights: list[nn.Parameter], count: int) -> list[list[int]]:
    """Places of weights in parts of about equally many numbers, for threads."""
    parts: list[list[int]] = [[] for _ in range(count)]
    sizes = [0] * count
    for place in sorted(range(len(weights)), key=lambda i: -weights[i].numel()):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(place)
        sizes[smallest] += weights[place].numel()
    return [part for part in parts if part]
