"""Who computes: one worker thread for each device (or for each share of the cores), fed ahead and answered in order.

Threads suffice because torch works outside Python's lock; processes would each hold the model again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np

from moses_rnn.formats.phrase_table import TableLine
from moses_rnn.scoring.producers import ScoreProducer, Scores

Chunk = list[TableLine]
CHUNKS_AHEAD = 2  # read and waiting, for each worker


def scored_chunks(
    chunks: Iterable[Chunk], workers: Sequence[Sequence[ScoreProducer]]
) -> Iterator[tuple[Chunk, Scores]]:
    """Chunks with their scores, in order; only a few are held at a time.

    Args:
        chunks: lines to be scored together.
        workers: the producers of each worker; all workers have the same ones, each on its own device.
    """
    idle: SimpleQueue[Sequence[ScoreProducer]] = SimpleQueue()
    for producers in workers:
        idle.put(producers)

    def work(chunk: Chunk) -> Scores:
        producers = idle.get()
        try:
            pairs = [(line.source, line.target) for line in chunk]
            return np.concatenate([producer.log_probs(pairs) for producer in producers], axis=1)
        finally:
            idle.put(producers)

    waiting: deque[tuple[Chunk, Future[Scores]]] = deque()
    with ThreadPoolExecutor(len(workers), thread_name_prefix="scoring") as pool:
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


def _answer(waiting: deque[tuple[Chunk, Future[Scores]]]) -> tuple[Chunk, Scores]:
    chunk, future = waiting.popleft()
    return chunk, future.result()
