"""Where and how a loaded model computes, and streams of anything scored chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch

from moses_rnn.api.pairs import check_choice, check_range
from moses_rnn.errors import placing
from moses_rnn.native import MOST_THREADS
from moses_rnn.networks.hardware import PRECISIONS, Compute, choose_device, choose_precision
from moses_rnn.score.workers import Threads, map_in_order
from moses_rnn.scorers.open import Model

Floats = npt.NDArray[np.float64]
PAIRS = 4096  # of a chunk: enough to share prefixes, few enough for several threads

Item = TypeVar("Item")
Chunk = tuple[int, list[Item]]  # with the number of its first item, from 0


@dataclass(frozen=True)
class Options:
    """What the user chose, checked; `threads` is None where torch decides."""

    device: str
    precision: str
    threads: int | None

    @classmethod
    def checked(cls, device: str | torch.device, precision: str, threads: int | None) -> Options:
        """The choices of a user; one that is not possible is an ArgumentError."""
        most = None if threads is None else check_range("threads", threads, most=MOST_THREADS)
        return cls(
            choose_device(str(device), "device"), check_choice("precision", precision, ("auto", *PRECISIONS)), most
        )

    def set_threads(self) -> None:
        """Tell torch how many threads to use."""
        if self.threads:
            torch.set_num_threads(self.threads)

    def scoring(self, models: Sequence[Model]) -> Compute:
        """How pairs are scored: by the native core where it has the network, as moses-rnn-score does."""
        compute = self.writing(models)
        native = len(models) == 1 and models[0].runs_natively(self.device, compute.precision)
        return Compute(self.device, compute.precision, native)

    def writing(self, models: Sequence[Model]) -> Compute:
        """How a network writes: by torch."""
        width = max(model.config.width for model in models)
        return Compute(self.device, choose_precision(self.precision, self.device, width))


def scored(
    items: Iterable[Item],
    score: Callable[[list[Item]], Floats],
    threads: int,
    size: int = PAIRS,
    *,
    unbounded: bool = False,
) -> Iterator[Floats]:
    """The scores of chunks, in order, of any number of items; a few chunks are scored ahead of the one that is next.

    `score` is called by several threads at once. A ScoreError names the item by its number.
    """
    chunks = _chunks(iter(items), size)

    def work(chunk: Chunk[Item]) -> Floats:
        first, taken = chunk
        with placing(lambda row: f"pairs[{first + row}]"):
            scores = score(taken)
        return scores if unbounded else np.minimum(scores, 0.0)

    first, second = next(chunks, None), next(chunks, None)
    if second is None:  # threads would take longer to start than some pairs do
        yield from map(work, [first] if first else [])
        return
    with Threads([work] * threads) as workers:
        for _, scores in map_in_order(chain(filter(None, (first, second)), chunks), workers):
            yield scores


def _chunks(items: Iterator[Item], size: int) -> Iterator[Chunk[Item]]:
    for number in count():
        chunk = list(islice(items, size))
        if not chunk:
            return
        yield number * size, chunk
