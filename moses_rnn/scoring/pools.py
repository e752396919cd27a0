"""Who scores the chunks of a table: threads as a rule, or processes, a Ray cluster, somebody's executor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from moses_rnn.files.outputs import Packing
from moses_rnn.pools.base import Pool
from moses_rnn.pools.choice import open_pool_elsewhere
from moses_rnn.pools.threads import ThreadPool
from moses_rnn.producers.base import Compute
from moses_rnn.producers.open import ModelOnDisk
from moses_rnn.scoring.inputs import Inputs
from moses_rnn.scoring.workers import Chunk, ChunkScorer, ScoredChunk, ScoringJob, make_producers

MOST_CPU_WORKERS = 8  # threads of torch: each holds the states of its own lines
WORKERS_OF_A_GPU = 3  # while one computes, the others map words to ids and compress


def open_pool(inputs: Inputs, pack: Packing) -> Pool[Chunk, ScoredChunk]:
    """The pool that a request asks for, as a context.

    Args:
        inputs: models and choices.
        pack: done to each block of the new table.

    Raises:
        MosesRnnError: there is no such pool.
    """
    request = inputs.request
    if request.pool.is_elsewhere:
        return _elsewhere(inputs, pack)
    return ThreadPool(make_workers(inputs, pack))


def make_workers(inputs: Inputs, pack: Packing) -> list[ChunkScorer]:
    """What each thread works with; those of one device share its networks."""
    request = inputs.request
    of_each = share_threads(request.devices, request.threads, inputs.compute)
    workers: list[ChunkScorer] = []
    for device in request.devices:
        compute = replace(inputs.compute, device=device)
        producers = make_producers(inputs.writers, compute, word_penalty=request.word_penalty)
        workers += [ChunkScorer(producers, request.name, request.columns, pack)] * of_each
    return workers


def _elsewhere(inputs: Inputs, pack: Packing) -> Pool[Chunk, ScoredChunk]:
    """Workers that open the models themselves."""
    request, wanted = inputs.request, inputs.request.pool
    threads = 1
    if wanted.processes:
        threads = max((request.threads or torch.get_num_threads()) // wanted.processes, 1)
    torch.set_num_threads(threads)  # which the manifest holds; nothing is computed in this process
    job = ScoringJob(
        name=request.name,
        models=tuple(map(ModelOnDisk.of, inputs.models)),
        compute=inputs.compute,
        word_penalty=request.word_penalty,
        columns=request.columns,
        pack=pack,
        threads=threads,
    )
    return open_pool_elsewhere(wanted, job, request.devices)


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
