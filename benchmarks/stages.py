"""What the benchmarks share: stages timed in turn, the machine's own rates, the pairs of a table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from moses_rnn.score.workers import ScoredChunk
from moses_rnn.table.signatures import ColumnCounts
from moses_rnn.table.table_blocks import TableLines, parse_blocks

Pair = tuple[bytes, bytes]  # source phrase, target phrase
GEMM = (4096, 1000, 3000)  # rows × inner × columns of the product whose rate is the machine's


@dataclass
class Stage:
    """Something that is timed; `items` go through it."""

    name: str
    work: Callable[[], object]
    items: int
    clock: Callable[[], float] = time.perf_counter  # or processor time, of all threads
    seconds: float = float("inf")

    def rate(self) -> float:
        """Items a second."""
        return self.items / self.seconds


def timed(stage: Stage) -> float:
    """Seconds by the stage's own clock."""
    started = stage.clock()
    stage.work()
    return stage.clock() - started


def time_in_turn(stages: Sequence[Stage], rounds: int) -> None:
    """Keep each stage's best time: machines are shared."""
    for _ in range(rounds):
        for stage in stages:
            stage.seconds = min(stage.seconds, timed(stage))


@contextlib.contextmanager
def threads_of_each(workers: int) -> Iterator[None]:
    """Share the threads of torch among workers."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(threads // workers, 1))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def gemm_rate(dtype: torch.dtype) -> float:
    """GFLOP/s of torch's own product."""
    rows, inner, columns = GEMM
    a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)
    product = Stage("product", lambda: torch.nn.functional.linear(a, b), rows)
    seconds = min(timed(product) for _ in range(12))
    return 2e-9 * rows * inner * columns / seconds


def pairs_of(blocks: Iterable[bytes], name: str) -> Iterator[Pair]:
    """The phrase pairs of a table."""
    both = (block.pairs() for block in parse_blocks(blocks, name))
    return (pair for pairs in both for pair in zip(pairs.sources, pairs.targets, strict=True))


@dataclass(frozen=True)
class FakeDevice:
    """Takes the time that a device would, and gives back what the table's writer needs, with nothing computed."""

    speed: float  # lines a second; 0: none is taken

    def begin(self, _device: str) -> FakeDevice:
        """It needs nothing."""
        return self

    def name_of(self, chunk: TableLines) -> str:
        """For messages."""
        return f"{len(chunk):,} lines"

    def __call__(self, chunk: TableLines) -> ScoredChunk:
        """Sleep."""
        if self.speed:
            time.sleep(len(chunk) / self.speed)
        return ScoredChunk(chunk.text, ColumnCounts(len(chunk), [0], [0], [-1.0], [-1.0]))
