"""Who scores the chunks of a table: threads as a rule, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from moses_rnn.files.outputs import Packing
from moses_rnn.pools.ray_tasks import RayWorkers
from moses_rnn.pools.workers import Threads, Workers
from moses_rnn.producers.base import Compute
from moses_rnn.producers.open import ModelOnDisk
from moses_rnn.scoring.inputs import Inputs
from moses_rnn.scoring.workers import Chunk, ChunkScorer, ScoredChunk, ScoringJob, make_producers

MOST_CPU_WORKERS = 8  # threads of torch: each holds the states of its own lines
WORKERS_OF_A_GPU = 3  # while one computes, the others map words to ids and compress


def open_workers(inputs: Inputs, pack: Packing) -> Workers[Chunk, ScoredChunk]:
    """The workers that a request asks for, as a context.

    Args:
        inputs: models and choices.
        pack: done to each block of the new table.

    Raises:
        MosesRnnError: there is no such cluster.
    """
    request = inputs.request
    if request.ray is None:
        return Threads(make_scorers(inputs, pack))
    torch.set_num_threads(1)  # as many as each worker has: the manifest holds it; nothing is computed in this process
    job = ScoringJob(
        name=request.table,
        models=tuple(map(ModelOnDisk.of, inputs.models)),
        compute=inputs.compute,
        word_penalty=request.word_penalty,
        columns=request.columns,
        pack=pack,
    )
    return RayWorkers(job, request.ray, torch.device(request.devices[0]).type)


def make_scorers(inputs: Inputs, pack: Packing) -> list[ChunkScorer]:
    """What each thread works with; those of one device share its networks."""
    request = inputs.request
    of_each = share_threads(request.devices, request.threads, inputs.compute)
    scorers: list[ChunkScorer] = []
    for device in request.devices:
        compute = replace(inputs.compute, device=device)
        producers = make_producers(inputs.writers, compute, word_penalty=request.word_penalty)
        scorers += [ChunkScorer(producers, request.table, request.columns, pack)] * of_each
    return scorers


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
