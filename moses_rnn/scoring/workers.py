"""Who computes: a few worker threads, fed ahead and answered in order.

Threads suffice because torch works outside Python's lock; processes would each hold the model again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from moses_rnn.errors import MosesRnnError, Stopped, shown
from moses_rnn.formats.table_blocks import TableLines
from moses_rnn.producers.base import Compute, ScoreProducer, Scores, Tally

Chunk = TableLines  # lines to be scored together
Item = TypeVar("Item")
Result = TypeVar("Result")
ITEMS_AHEAD = 2  # for each thread
MOST_CPU_WORKERS = 8  # of torch: each holds the states of its own lines
WORKERS_OF_A_GPU = 2  # one maps words to ids while the other computes
SECONDS_BETWEEN_LOOKS = 5.0  # at whether the workers live


class ScoredChunk(NamedTuple):
    """Lines with what the producers say of them."""

    lines: Chunk
    scores: Scores
    tallies: list[Tally]  # one for each added column


def share_threads(devices: Sequence[str], threads: int | None, compute: Compute) -> int:
    """Share the processor's threads among workers; how many workers each device gets.

    The native core computes a chunk in one thread. With torch, too, two workers of one thread score up to a sixth
    faster than one of two, which wait for each other in every product.

    Args:
        devices: that compute.
        threads: of the processor; None: all cores.
        compute: how.
    """
    threads = threads or torch.get_num_threads()
    if any(device.startswith("cuda") for device in devices):
        return WORKERS_OF_A_GPU
    if compute.native:
        return max(threads // len(devices), 1)
    if len(devices) > 1:
        torch.set_num_threads(max(threads // len(devices), 1))
        return 1
    of_each = -(-threads // MOST_CPU_WORKERS)
    torch.set_num_threads(of_each)
    return threads // of_each


def scored_chunks(
    chunks: Iterable[Chunk], workers: Sequence[Sequence[ScoreProducer]], name: str
) -> Iterator[ScoredChunk]:
    """Chunks with their scores, in order; only a few are held at a time.

    Args:
        chunks: lines to be scored together.
        workers: the producers of each worker; all workers have the same ones, perhaps on other devices.
        name: of the table, for messages.

    Raises:
        MosesRnnError: a chunk could not be scored; its lines are named, and the one at fault if there is one.
    """
    idle: SimpleQueue[Sequence[ScoreProducer]] = SimpleQueue()
    for producers in workers:
        idle.put(producers)

    def work(chunk: Chunk) -> ScoredChunk:
        producers = idle.get()
        try:
            return _scored_or_explained(chunk, producers, name)
        finally:
            idle.put(producers)

    return in_order(chunks, work, len(workers), "scoring")


def in_order(items: Iterable[Item], work: Callable[[Item], Result], threads: int, name: str) -> Iterator[Result]:
    """What threads make of items, in the items' order; a few are worked at ahead of the one that comes next.

    If the items end with an error, what came before it is given out first; not so if somebody wants to stop.
    """
    waiting: deque[Future[Result]] = deque()
    failures: list[Exception] = []
    with ThreadPoolExecutor(threads, thread_name_prefix=name) as pool:
        try:
            for item in _until_failure(items, failures):
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads * ITEMS_AHEAD:
                    yield _answer(waiting.popleft(), name)
            while waiting:
                yield _answer(waiting.popleft(), name)
        finally:
            for future in waiting:
                future.cancel()
    for failure in failures:
        raise failure


def _until_failure(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    try:
        yield from items
    except Stopped:
        raise
    except Exception as error:
        failures.append(error)


def _answer(future: Future[Result], name: str) -> Result:
    while True:
        try:
            return future.result(timeout=SECONDS_BETWEEN_LOOKS)
        except TimeoutError:
            if not future.done() and not any(thread.name.startswith(name) for thread in threading.enumerate()):
                raise MosesRnnError("a worker ended without an answer: did memory run out?") from None


def _scored_or_explained(chunk: Chunk, producers: Sequence[ScoreProducer], name: str) -> ScoredChunk:
    try:
        return _scored(chunk, producers)
    except MosesRnnError:
        raise
    except Exception as error:
        raise _failure(chunk, producers, name, error) from error


def _scored(chunk: Chunk, producers: Sequence[ScoreProducer]) -> ScoredChunk:
    phrases = chunk.phrases()
    columns, tallies = [], []
    for producer in producers:
        tally = Tally()
        columns.append(producer.log_probs(*phrases, tally))
        tallies += [tally] * producer.num_scores
    return ScoredChunk(chunk, np.concatenate(columns, axis=1), tallies)


def _failure(chunk: Chunk, producers: Sequence[ScoreProducer], name: str, error: Exception) -> MosesRnnError:
    """What could not be scored: the lines, and by halving them again and again the one at fault."""
    first, last = chunk.numbers[0], chunk.numbers[-1]
    while len(chunk) > 1:
        half = chunk[: len(chunk) // 2]
        chunk = chunk[len(chunk) // 2 :] if _can_be_scored(half, producers) else half
    alone = "only in their company" if _can_be_scored(chunk, producers) else "alone too"
    pair = shown(b" ||| ".join(*chunk.pairs()))
    return MosesRnnError(
        f"{name}:{first}: expected to score lines {first:,} to {last:,}, found {type(error).__name__}: {error}\n"
        f"  Line {chunk.numbers[0]:,} fails ({alone}): {pair}"
    )


def _can_be_scored(chunk: Chunk, producers: Sequence[ScoreProducer]) -> bool:
    try:
        _scored(chunk, producers)
    except Exception:
        return False
    return True
