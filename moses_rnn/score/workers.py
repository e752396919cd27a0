"""Score the chunks of a table in threads of this process or on the workers of a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, Self

import numpy as np
import torch

from moses_rnn.errors import CheckpointError, InputError, MosesRnnError, PairError, ScoreError, Stopped, shown
from moses_rnn.files.outputs import pack
from moses_rnn.models.base import Scorer, Tally, one_at_fault
from moses_rnn.models.ensembles import MEAN_LOG, AnyModel, make_ensemble
from moses_rnn.models.model import Model
from moses_rnn.models.open import open_model
from moses_rnn.models.phrases import WordPenaltyScorer
from moses_rnn.networks.compute import Compute
from moses_rnn.options import is_pretrained
from moses_rnn.score.ray_tasks import Item, RayWorkers, Result
from moses_rnn.score.scoring_options import ScoringOptions
from moses_rnn.table.phrase_table import CEILING
from moses_rnn.table.signatures import TableCounts
from moses_rnn.table.table_blocks import Floats, TableLines, append_scores

ScoredColumn = AnyModel | WordPenaltyScorer  # adds one column to a table
ScoredChunk = tuple[bytes, TableCounts]  # a packed block of the new table and its counts
ITEMS_AHEAD = 2  # per worker
MOST_CPU_WORKERS = 8  # threads of torch: each holds the states of its own lines
WORKERS_OF_A_GPU = 3  # while one computes, the others map words to ids and compress


class ChunkScorer:
    """Turns chunks of a table into blocks of the new table `output`: scores, checks, writes and packs.

    Threads may share the `scorers`. `floor` is the log of the lowest probability written.
    """

    def __init__(self, scorers: Sequence[Scorer], table: str, output: str, floor: float) -> None:
        self.scorers = scorers
        self._table, self._output, self._floor = table, output, floor
        self._highest = np.array([CEILING if of.unbounded else 0.0 for of in scorers])

    def __call__(self, chunk: TableLines) -> ScoredChunk:
        """Score a chunk; a MosesRnnError names the line that cannot be scored."""
        try:
            scores, tallies = self._score(chunk)
        except ScoreError as error:
            error.message = f"{self._table}:{chunk.numbers[error.row]}: {error.message}"
            raise
        except Exception as error:
            if isinstance(error, MosesRnnError) and not isinstance(error, PairError):
                raise
            raise self._failure(chunk, error) from error
        scores = np.minimum(scores, self._highest)
        written = np.maximum(scores, self._floor)
        counts = TableCounts(
            lines=len(scores),
            unknown=[tally.unknown for tally in tallies],
            floored=(scores < written).sum(axis=0).tolist(),
            lowest=written.min(axis=0).tolist(),
            highest=written.max(axis=0).tolist(),
            oom_splits=sum(tally.oom_splits for tally in tallies),
        )
        return pack(append_scores(chunk.text, chunk.spans, np.exp(written)), self._output), counts

    def _score(self, chunk: TableLines) -> tuple[Floats, list[Tally]]:
        """Return the scores, lines × columns, and each scorer's tally."""
        pairs, tallies = chunk.pairs(), [Tally() for _ in self.scorers]
        columns = [scorer.log_probs(pairs, tally) for scorer, tally in zip(self.scorers, tallies, strict=True)]
        return np.stack(columns, axis=1), tallies

    def _failure(self, chunk: TableLines, error: Exception) -> MosesRnnError:
        """Return an error that names the chunk's lines and the line at fault, found by bisection."""
        where = lines_of(chunk)
        first = chunk.numbers[0]
        row = one_at_fault(len(chunk), lambda part: self._can_score(chunk[part]))
        chunk = chunk[row : row + 1]
        pairs = chunk.pairs()
        pair = shown(b" ||| ".join((pairs.sources[0], pairs.targets[0])))
        if isinstance(error, PairError):
            return InputError(f"{self._table}:{chunk.numbers[0]}: {error.message}: {pair}", advice=error.advice)
        alone = "only together with the others" if self._can_score(chunk) else "even on its own"
        return MosesRnnError(
            f"{self._table}:{first}: expected to score {where}, found {type(error).__name__}: {error}\n"
            f"  Line {chunk.numbers[0]:,} fails ({alone}): {pair}"
        )

    def _can_score(self, chunk: TableLines) -> bool:
        try:
            self._score(chunk)
        except Exception:
            return False
        return True


def lines_of(chunk: TableLines) -> str:
    """Return a chunk's line numbers, for messages."""
    return f"lines {chunk.numbers[0]:,} to {chunk.numbers[-1]:,}"


def open_workers(
    options: ScoringOptions, models: Sequence[Model], columns: Sequence[ScoredColumn], compute: Compute
) -> Workers[TableLines, ScoredChunk]:
    """Return the workers of a run as a context manager; sets torch's number of threads."""
    if options.ray is not None:
        torch.set_num_threads(1)  # as in each worker, for the manifest; this process computes nothing
        compute = replace(compute, device=torch.device(compute.device).type)
        folders = [model.folder if is_pretrained(model.folder) else model.folder.resolve() for model in models]
        opened = [(folder, model.direction, dict(model.hashes)) for folder, model in zip(folders, models, strict=True)]
        begin = partial(open_chunk_scorer, options, opened, compute)
        return RayWorkers(begin, lambda chunk: f"{options.table}: {lines_of(chunk)}", options.ray, compute.device)
    of_each = share_threads(options.devices, options.threads, compute)
    chunk_scorers = [make_chunk_scorer(options, columns, replace(compute, device=device)) for device in options.devices]
    return ThreadWorkers([scorer for scorer in chunk_scorers for _ in range(of_each)])


def open_chunk_scorer(
    options: ScoringOptions, opened: Sequence[tuple[Path, str, dict[str, str]]], compute: Compute
) -> ChunkScorer:
    """Open models, given by folder, direction and hashes, in another process; CheckpointError if they have changed."""
    torch.set_num_threads(1)
    models = [open_model(folder, direction=direction, pretrained=options) for folder, direction, _ in opened]
    for model, (folder, _, hashes) in zip(models, opened, strict=True):
        if model.hashes != hashes:
            raise CheckpointError(f"{folder}: was changed after this run began")
    return make_chunk_scorer(options, make_columns(options, models), compute)


def make_chunk_scorer(options: ScoringOptions, columns: Sequence[ScoredColumn], compute: Compute) -> ChunkScorer:
    """Make a worker's scorer of chunks; threads of one device share it and its networks."""
    scorers = [column.make_scorer(compute) for column in columns]
    return ChunkScorer(scorers, options.table, options.output, options.floor)


def make_columns(options: ScoringOptions, models: Sequence[Model]) -> list[ScoredColumn]:
    """Make the added columns: one for each model or for each direction, and the word penalty."""
    columns: list[ScoredColumn] = [*models]
    if options.combine != "columns":
        directions = [[model for model in models if model.inverse == inverse] for inverse in (False, True)]
        columns = [of[0] if len(of) == 1 else make_ensemble(of, MEAN_LOG) for of in directions if of]
    if options.word_penalty:
        columns.append(WordPenaltyScorer(models[0].target_vocabulary))
    return columns


def share_threads(devices: Sequence[str], threads: int | None, compute: Compute) -> int:
    """Share the threads (default: all cores) among workers, and return the number of workers per device.

    The native core computes a chunk in one thread. With torch too, two workers of one thread score up to a sixth
    faster than one worker of two threads, which wait for each other in every product.
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


def map_in_order(items: Iterable[Item], workers: Workers[Item, Result]) -> Iterator[tuple[Item, Result]]:
    """Yield the items with their results, in order.

    If the items end with an error, yield the results before it first, unless it is `Stopped`.
    """
    waiting: deque[tuple[Item, Callable[[], Result]]] = deque()
    failures: list[Exception] = []
    for item in _until_failure(items, failures):
        waiting.append((item, workers.submit(item)))
        if len(waiting) > workers.count * ITEMS_AHEAD:
            first, result = waiting.popleft()
            yield first, result()
    for first, result in waiting:
        yield first, result()
    for failure in failures:
        raise failure


def _until_failure(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    try:
        yield from items
    except Stopped:
        raise
    except Exception as error:
        failures.append(error)


class ThreadWorkers(Generic[Item, Result]):
    """One thread for each function; torch and the native core release Python's lock, so threads suffice.

    As a context manager, like `RayWorkers`; `count` is the number of workers.
    """

    def __init__(self, functions: Sequence[Callable[[Item], Result]]) -> None:
        self.count = len(functions)
        self._idle: SimpleQueue[Callable[[Item], Result]] = SimpleQueue()
        for function in functions:
            self._idle.put(function)
        self._executor = ThreadPoolExecutor(self.count, thread_name_prefix="worker")

    def submit(self, item: Item) -> Callable[[], Result]:
        """Submit an item; the returned function waits for the result, or raises the worker's error."""
        return self._executor.submit(self._work, item).result

    def _work(self, item: Item) -> Result:
        function = self._idle.get()
        try:
            return function(item)
        finally:
            self._idle.put(function)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel waiting items, and wait for the running ones."""
        self._executor.shutdown(cancel_futures=True)


Workers = ThreadWorkers[Item, Result] | RayWorkers[Item, Result]
