"""The gradient of a minibatch: computed in parts that threads and ranks share, and added up.

Part p of P holds every P-th example from the p-th on. How many parts there are follows from ranks, threads and
`accumulate` together, and what dropout leaves out of a part from its number, not from who computes it: as many parts
give the same sums, whoever computes them, up to the order in which float32 numbers are added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Positions
from moses_rnn.training.optimisers import sum_of_squares
from moses_rnn.training.ranks import Ranks, Threads
from moses_rnn.training.task import Task

LINE = 16  # float32 numbers in a line of the cache, with which each weight's gradient begins in the common tensor


class Sums(NamedTuple):
    """Of a whole minibatch."""

    nats: float
    tokens: int
    seconds: float  # by the clock of the first rank
    squares: float  # the squared L2 norm of the gradient of its objective


class OfParts(NamedTuple):
    """What a thread has of its parts."""

    nats: float
    tokens: int
    gradients: Sequence[Tensor]  # summed, one for each weight


class Gradients:
    """Gives the weights of a network the gradients of whole minibatches.

    Args:
        task: what is learned.
        config: threads, parts, how squares are added.
        threads: of this rank.
        ranks: all of them.
    """

    def __init__(self, task: Task, config: TrainingConfig, threads: Threads, ranks: Ranks) -> None:
        self.weights = list(task.model.parameters())
        self.places = even_parts(self.weights, config.threads)  # of weights, for each thread
        self._task, self._threads, self._ranks = task, threads, ranks
        self._parts = threads.count * ranks.size * rounds(config.accumulate, ranks.size)
        self._squares = sum_of_squares(config)
        self._common = self._make_common() if ranks.size > 1 else None

    def compute(self, rows: Positions, step: int, clock: Callable[[], float]) -> Sums:
        """The gradient of the examples of a minibatch, summed, as the weights' ``grad``; the same on every rank.

        Args:
            rows: its examples, the same on every rank.
            step: the number of steps before it.
            clock: of this rank; gives seconds.
        """
        worked = self._threads.each(lambda parts: self._learn(parts, rows, step), self._shares(len(rows)))
        mine = sum(of_thread.nats for of_thread in worked), sum(of_thread.tokens for of_thread in worked)
        nats, tokens, seconds = self._ranks.sums([*mine, clock() if self._ranks.leads else 0.0])
        gradients = [of_thread.gradients for of_thread in worked]
        squares = self._threads.each(lambda places: self._add_up(gradients, places), self.places)
        if self._common is not None:
            self._ranks.add_up(self._common)
            squares = self._threads.each(self._squares_of, self.places)
        return Sums(float(nats), int(tokens), seconds, sum(squares))

    def _shares(self, examples: int) -> list[list[int]]:
        """The numbers of this rank's parts that are not empty, for each thread."""
        mine = range(self._ranks.rank, min(self._parts, examples), self._ranks.size)
        shares = (list(mine[i :: self._threads.count]) for i in range(self._threads.count))
        return [share for share in shares if share]

    def _learn(self, parts: list[int], rows: Positions, step: int) -> OfParts:
        """Costs and gradients of some parts, one after the other."""
        nats, tokens, added = 0.0, 0, None
        for part in parts:
            cost = self._task.cost(rows[part :: self._parts], step, part)
            every = torch.autograd.grad(cost.objective, self.weights, allow_unused=True, materialize_grads=True)
            gradients = tuple(gradient.contiguous() for gradient in every)  # fused optimisers go by places in memory
            nats, tokens = nats + cost.nats, tokens + cost.tokens
            added = gradients if added is None else torch._foreach_add(added, gradients)
        assert added is not None
        return OfParts(nats, tokens, added)

    def _add_up(self, gradients: list[Sequence[Tensor]], places: list[int]) -> float:
        """Give some weights the sum of all threads' gradients; returns its squared L2 norm, if it is that of all."""
        for i in places:
            of_threads = [of_thread[i] for of_thread in gradients]
            if self._common is None:
                self.weights[i].grad = _sum(of_threads)
            else:
                _copy(_sum(of_threads) if of_threads else None, self.weights[i])
        return self._squares_of(places) if self._common is None else 0.0

    def _squares_of(self, places: list[int]) -> float:
        return sum(self._squares(_gradient(self.weights[i])) for i in places)

    def _make_common(self) -> Tensor:
        """One tensor of which every weight's gradient is a part, so that ranks exchange all of them at once."""
        sizes = [math.ceil(tensor.numel() / LINE) * LINE for tensor in self.weights]
        starts = itertools.accumulate(sizes, initial=0)
        common = torch.zeros(sum(sizes), device=self.weights[0].device)
        for tensor, start in zip(self.weights, starts, strict=False):
            tensor.grad = common[start : start + tensor.numel()].view_as(tensor)
        return common


def even_parts(weights: list[nn.Parameter], count: int) -> list[list[int]]:
    """Places of weights in parts of about equally many numbers, for threads."""
    parts: list[list[int]] = [[] for _ in range(count)]
    sizes = [0] * count
    for place in sorted(range(len(weights)), key=lambda i: -weights[i].numel()):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(place)
        sizes[smallest] += weights[place].numel()
    return [part for part in parts if part]


def rounds(parts: int, ranks: int) -> int:
    """How many parts of a minibatch, of those asked for, a rank computes one after the other."""
    return math.ceil(parts / ranks)


def _sum(tensors: list[Tensor]) -> Tensor:
    first, *others = tensors
    for other in others:
        first = first + other
    return first


def _copy(gradient: Tensor | None, weights: Tensor) -> None:
    if gradient is None:  # of a minibatch with fewer examples than ranks
        _gradient(weights).zero_()
    else:
        _gradient(weights).copy_(gradient)


def _gradient(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad
