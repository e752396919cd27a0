"""What a network learns: its examples in minibatches, and what they cost."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.hardware import COMPILED
from moses_rnn.networks.learning_curves import NATS, Measure
from moses_rnn.networks.native_learning import NativeKernel, core_named
from moses_rnn.networks.network import Drop, drop_units
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Positions
from moses_rnn.training.ranks import Workers

ORDER, GROUPS = 0, 1  # random streams of an epoch: of its examples, of the minibatches in each group


class Cost(NamedTuple):
    """What a part of a minibatch costs."""

    objective: Tensor  # what is made smaller: summed over its examples
    nats: float  # -log p of all its tokens, or a ranker's loss
    tokens: int  # or what else the loss is a sum over


class Task:
    """What is learned, by a network with its initial weights on its device.

    Args:
        model: the network.
        config: batches, precision, seed.
        identity: what a run must share, besides the configurations, to be continued.
        examples: in an epoch.
    """

    unit = "pairs"  # what an example is, in the plural
    measure: Measure = NATS  # what the network is judged by

    def __init__(self, model: Any, config: TrainingConfig, identity: Mapping[str, Any], examples: int) -> None:
        self.model = model
        self.config = config
        self.examples = examples
        self.identity: Mapping[str, Any] = {**identity, **asdict(model.config)}
        self.device = next(model.parameters()).device
        self.product_dtype = torch.bfloat16 if config.precision == "bf16" else torch.float32
        if config.native:
            model.use_kernel(NativeKernel(core=core_named(config.native)))
        elif config.compiled:
            model.use_kernel(COMPILED)

    @abstractmethod
    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """The minibatches of an epoch from a given one on; seed and epoch determine them."""

    @abstractmethod
    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """What a part of a minibatch costs, for learning; `step` is the number of steps before it."""

    @abstractmethod
    def held_out(self, workers: Workers) -> dict[str, float]:
        """Figures of the held-out examples; the measure's is what counts."""

    def describe(self) -> str:
        """The network in words, for a log."""
        return str(self.model.config.description)

    def drop(self, step: int, part: int) -> Drop:
        """Leaves the same units out of a part of a minibatch each time that it is made for it."""
        return drop_units(self.config.dropout, seed_of(self.config.seed, step, part), self.device)


def seed_of(seed: int, step: int, part: int) -> int:
    """A different seed for each part of each minibatch."""
    return int(np.random.SeedSequence((seed, step, part)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def batches_by_length(
    rows: Positions, by_length: Callable[[Positions], Positions], config: TrainingConfig, epoch: int, first: int
) -> Iterator[Positions]:
    """The minibatches of an epoch from a given one on; seed and epoch determine them.

    Every row comes once. Groups of `sort_batches` minibatches are drawn uniformly, sorted by length and cut; the
    minibatches of a group then come in random order, so that no length is always learned last.
    """
    order = np.random.default_rng((config.seed, epoch, ORDER)).permutation(rows)
    size = config.batch_size * max(config.sort_batches, 1)
    before = 0  # minibatches of earlier groups
    for number in range(math.ceil(len(order) / size)):
        group = order[number * size : (number + 1) * size]
        if before + config.sort_batches < first and len(group) == size:
            before += size // config.batch_size
            continue
        if config.sort_batches > 1:
            group = by_length(group)
        cut = [group[start : start + config.batch_size] for start in range(0, len(group), config.batch_size)]
        shuffled = np.random.default_rng((config.seed, epoch, GROUPS, number)).permutation(len(cut))
        for i in shuffled[max(first - before, 0) :]:
            yield cut[i]
        before += len(cut)


def blocks_of_words(rows: Positions, lengths: Lengths, most: int) -> Iterator[Positions]:
    """Rows, sorted longest first, in blocks that hold a bounded number of words and end symbols, or one row each."""
    first = 0
    while first < len(rows):
        size = max(most // (int(lengths[first]) + 1), 1)
        yield rows[first : first + size]
        first += size
