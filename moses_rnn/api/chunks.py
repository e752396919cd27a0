"""Split iterables into chunks, and score these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import PairError, placing
from moses_rnn.score.workers import Threads, map_in_order
from moses_rnn.scorers.base import pair_at_fault

Floats = npt.NDArray[np.float64]
CHUNK = 4096  # pairs: enough to share prefixes, few enough for several threads

Item = TypeVar("Item")


def in_chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items; the last may be shorter."""
    left = iter(items)
    while chunk := list(islice(left, size)):
        yield chunk


def score_chunks(
    items: Iterable[Item],
    score: Callable[[list[Item]], Floats],
    name: Callable[[Item], str],
    size: int = CHUNK,
    threads: int = 1,
) -> Iterator[Floats]:
    """Yield the scores of chunks, in order, from any number of items; score a few chunks ahead.

    `score` is called by several threads at once. An error of a pair names the item.
    """

    def work(chunk: list[Item]) -> Floats:
        try:
            with placing(lambda row: name(chunk[row])):
                return score(chunk)
        except PairError as error:
            row = pair_at_fault(len(chunk), lambda part: score(chunk[part]))
            error.message = f"{name(chunk[row])}: {error.message}"
            raise

    chunks = in_chunks(items, size)
    first = [*islice(chunks, 2)]
    if len(first) < 2:  # starting threads would take longer than scoring
        yield from map(work, first)
        return
    with Threads([work] * threads) as workers:
        for _, scores in map_in_order(chain(first, chunks), workers):
            yield scores
