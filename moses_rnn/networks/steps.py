"""The interface for scoring, sampling and search: a network that reads sources and writes targets word by word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from moses_rnn.networks.batches import Ints, Lengths, row_slices, take_rows
from moses_rnn.networks.vocabulary import Ids

CPU = torch.device("cpu")
LOGITS_AT_ONCE = 1 << 20  # of several states: these fit the processor's cache
LOGITS_AT_ONCE_ELSEWHERE = 1 << 24  # on other devices: fewer operations, each longer than its launch


Encoded = Any  # a tuple of tensors, or of such tuples, that depend only on the sources; one row per source
Prefixes = Any  # the same with everything that predicts the next word, and `sources`: the row of each one's source


class NodeBlock(NamedTuple):
    """Prefixes with their distributions over words in memory at once, and the contiguous nodes below them."""

    prefixes: slice
    nodes: slice


class Candidates(NamedTuple):
    """Candidate lists: the only words that may follow, by source; normalisation is over these."""

    words: Tensor  # ids of all candidates, ascending, with <unk> and </s>; C
    allowed: Tensor  # mask of each source's candidates; sources × C


class Stepper(ABC):
    """A network prepared for scoring and search: ids in, natural log-probabilities over K words out.

    A network implements `encode`, `start`, `step` and `next_log_probs`. The other methods have defaults based on these,
    which it may override.
    """

    device: torch.device
    vocabulary_size: int  # K

    @abstractmethod
    def encode(self, ids: Ids, lengths: Lengths) -> tuple[Encoded, Ints]:
        """Encode sources; return the distinct ones, and each source's row in them.

        `ids` are those of all sources, concatenated without end symbols; `lengths` are the words of each.
        """

    @abstractmethod
    def start(self, encoded: Encoded) -> Prefixes:
        """Return the empty prefix of each source."""

    @abstractmethod
    def step(self, encoded: Encoded, prefixes: Prefixes, rows: Tensor, words: Tensor) -> Prefixes:
        """Extend the prefixes in `rows`, each by one of `words`; both have the same length."""

    @abstractmethod
    def next_log_probs(self, encoded: Encoded, prefixes: Prefixes, candidates: Candidates | None = None) -> Tensor:
        """Return natural log p(y_t | y_<t, e) of every word after each prefix; prefixes × K, float64.

        With `candidates`, return only those words (prefixes × C), normalised over the words that a prefix's source
        allows, and minus infinity for others.
        """

    def alignment(self, encoded: Encoded, prefixes: Prefixes) -> Tensor | None:
        """Return the alignment of each prefix's next word: shares that sum to 1; prefixes × longest source.

        It is zero at padding; ``</s>`` counts as a word. Return None if the network has no alignment.
        """
        return None

    def summaries(self, ids: Ids, lengths: Lengths) -> Tensor | None:
        """Return the decoder's initial vector for each source; sources × a size that depends on the network.

        Return None if the network has no such vector.
        """
        return None

    def word_log_probs(
        self, encoded: Encoded, prefixes: Prefixes, rows: Tensor, words: Tensor, blocks: Sequence[NodeBlock]
    ) -> Tensor:
        """Return log p of words, each after the prefix in its row; `rows` ascend, `blocks` are from `node_blocks`."""
        parts = [torch.zeros(0, dtype=torch.float64, device=self.device)]
        for block, nodes in blocks:
            log_probs = self.next_log_probs(encoded, take_rows(prefixes, block))
            parts.append(log_probs[rows[nodes] - block.start, words[nodes]])
        return torch.cat(parts)


def row_blocks(prefixes: int, words: int, device: torch.device = CPU) -> Iterator[slice]:
    """Yield slices of at least one prefix, such that the distributions over words fit in memory."""
    logits = LOGITS_AT_ONCE if device.type == "cpu" else LOGITS_AT_ONCE_ELSEWHERE
    return row_slices(prefixes, max(logits // words, 1))


def node_blocks(parents: Ints, prefixes: int, words: int, device: torch.device = CPU) -> list[NodeBlock]:
    """Return the slices of `row_blocks`, each with the nodes below; `parents` ascend.

    This runs on the CPU and does not wait for the device.
    """
    blocks = list(row_blocks(prefixes, words, device))
    bounds = np.searchsorted(parents, [*(block.start for block in blocks), prefixes]).tolist()
    return [NodeBlock(block, slice(*ends)) for block, ends in zip(blocks, pairwise(bounds), strict=True)]
