"""Pairs from anywhere, scored chunk by chunk: a bounded number of them is in memory, and the scores come in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count, islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import placing
from moses_rnn.pools.workers import Threads, map_in_order

Floats = npt.NDArray[np.float64]
PAIRS = 4096  # of a chunk: enough to share prefixes, few enough for several threads

Item = TypeVar("Item")


Chunk = tuple[int, list[Item]]  # with the number of its first item, from 0
Score = Callable[[list[Item]], Floats]


def scored(
    items: Iterable[Item], score: Score[Item], threads: int, size: int = PAIRS, *, unbounded: bool = False
) -> Iterator[Floats]:
    """The scores of chunks, in order; a few chunks are worked at ahead of the one that comes next.

    Args:
        items: to be scored, any number of them.
        score: of the items of a chunk; called by several threads at once.
        threads: how many.
        size: items of a chunk.
        unbounded: whether scores are no log-probabilities.

    Raises:
        ScoreError: of `score`; the item is named by its number.
    """
    chunks = _chunks(iter(items), size)

    def work(chunk: Chunk[Item]) -> Floats:
        first, taken = chunk
        with placing(lambda row: f"pairs[{first + row}]"):
            scores = score(taken)
        return scores if unbounded else np.minimum(scores, 0.0)

    first = next(chunks, None)
    if first is None:
        return
    second = next(chunks, None)
    if second is None:  # threads would take longer to start than some pairs do
        yield work(first)
        return
    with Threads([work] * threads) as workers:
        for _, scores in map_in_order(chain((first, second), chunks), workers):
            yield scores


def _chunks(items: Iterator[Item], size: int) -> Iterator[Chunk[Item]]:
    for number in count():
        chunk = list(islice(items, size))
        if not chunk:
            return
        yield number * size, chunk
