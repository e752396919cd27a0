"""Who computes: one worker thread for each device (or for each share of the cores), fed ahead and answered in order.

Threads suffice because torch works outside Python's lock; processes would each hold the model again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np

from moses_rnn.errors import MosesRnnError, shown
from moses_rnn.formats.table_blocks import TableBlock
from moses_rnn.scoring.producers import ScoreProducer, Scores

Chunk = TableBlock  # lines to be scored together
CHUNKS_AHEAD = 2  # read and waiting, for each worker
THREAD_NAME = "scoring"
SECONDS_BETWEEN_LOOKS = 5.0  # at whether the workers live


def scored_chunks(
    chunks: Iterable[Chunk], workers: Sequence[Sequence[ScoreProducer]], name: str
) -> Iterator[tuple[Chunk, Scores]]:
    """Chunks with their scores, in order; only a few are held at a time.

    Args:
        chunks: lines to be scored together.
        workers: the producers of each worker; all workers have the same ones, each on its own device.
        name: of the table, for messages.

    Raises:
        MosesRnnError: a chunk could not be scored; its lines are named, and the one at fault if there is one.
    """
    idle: SimpleQueue[Sequence[ScoreProducer]] = SimpleQueue()
    for producers in workers:
        idle.put(producers)

    def work(chunk: Chunk) -> Scores:
        producers = idle.get()
        try:
            return _scored_or_explained(chunk, producers, name)
        finally:
            idle.put(producers)

    waiting: deque[tuple[Chunk, Future[Scores]]] = deque()
    with ThreadPoolExecutor(len(workers), thread_name_prefix=THREAD_NAME) as pool:
        try:
            for chunk in chunks:
                waiting.append((chunk, pool.submit(work, chunk)))
                if len(waiting) > len(workers) * CHUNKS_AHEAD:
                    yield _answer(waiting)
            while waiting:
                yield _answer(waiting)
        finally:
            for _, future in waiting:
                future.cancel()


def _scored_or_explained(chunk: Chunk, producers: Sequence[ScoreProducer], name: str) -> Scores:
    try:
        return _scored(chunk, producers)
    except MosesRnnError:
        raise
    except Exception as error:
        raise _failure(chunk, producers, name, error) from error


def _scored(chunk: Chunk, producers: Sequence[ScoreProducer]) -> Scores:
    phrases = chunk.phrases(of_target=False), chunk.phrases(of_target=True)
    return np.concatenate([producer.log_probs(*phrases) for producer in producers], axis=1)


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


def _answer(waiting: deque[tuple[Chunk, Future[Scores]]]) -> tuple[Chunk, Scores]:
    chunk, future = waiting.popleft()
    while True:
        try:
            return chunk, future.result(timeout=SECONDS_BETWEEN_LOOKS)
        except TimeoutError:
            if not future.done() and not _workers_live():
                raise MosesRnnError("a worker ended without an answer: did memory run out?") from None


def _workers_live() -> bool:
    return any(thread.name.startswith(THREAD_NAME) for thread in threading.enumerate())
