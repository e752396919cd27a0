"""What scoring, sampling and search stand on: a network that reads sources and writes targets word by word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.networks.batches import Lengths, row_slices, take_rows
from moses_rnn.networks.vocabulary import Ids

CPU = torch.device("cpu")
LOGITS_AT_ONCE = 1 << 20  # of several states: they stay near the processor
LOGITS_AT_ONCE_ELSEWHERE = 1 << 24  # on other devices: fewer operations, each longer than its launch


Terms = tuple[Any, ...]  # what depends on the sources alone: tensors with a row each, or tuples of them


class Prefixes(Protocol):
    """Beginnings of targets, with all that predicts the word after each; a row each."""

    @property
    def sources(self) -> Tensor:
        """The row of each one's source among the terms."""


class NodeBlock(NamedTuple):
    """Prefixes whose distributions over words are in memory at once, and the nodes below them, which are together."""

    prefixes: slice
    nodes: slice


class Candidates(NamedTuple):
    """Words of which alone one follows, by source: what is normalised over in place of all words (candidate lists)."""

    words: Tensor  # ids that any source may be followed by, ascending, <unk> and </s> among them; C
    allowed: Tensor  # which of them each source may; sources × C


SomeTerms = TypeVar("SomeTerms", bound=Terms)
SomePrefixes = TypeVar("SomePrefixes", bound=Prefixes)


class Stepper(ABC, Generic[SomeTerms, SomePrefixes]):
    """A network arranged for scoring and search: ids in, natural log-probabilities out. K words can be written.

    A network has its own `encode`, `start`, `step` and `next_log_probs`; what else there is follows from them, and may
    be done better by one that knows how.
    """

    device: torch.device
    vocabulary_size: int  # K

    @abstractmethod
    def encode(self, ids: Ids, lengths: Lengths) -> tuple[SomeTerms, npt.NDArray[np.int64]]:
        """Read sources: the terms of the distinct ones, and each one's row among them.

        `ids` are those of all sources end to end, without end symbols; `lengths` the words of each.
        """

    @abstractmethod
    def start(self, terms: SomeTerms) -> SomePrefixes:
        """The empty prefix of each source."""

    @abstractmethod
    def step(self, terms: SomeTerms, prefixes: SomePrefixes, rows: Tensor, words: Tensor) -> SomePrefixes:
        """Chosen rows of the prefixes, each with one word more: as many rows as words."""

    @abstractmethod
    def next_log_probs(self, terms: SomeTerms, prefixes: SomePrefixes, candidates: Candidates | None = None) -> Tensor:
        """log p(y_t | y_<t, e) of every word after each prefix; natural, prefixes × K, float64.

        With `candidates` of those words alone, normalised over what a prefix's source allows; prefixes × C, minus
        infinity for what it does not.
        """

    def alignment(self, terms: SomeTerms, prefixes: SomePrefixes) -> Tensor | None:
        """Where in its source the word after each prefix comes from: shares that sum to 1; prefixes × longest source.

        Zero where a source has no word; its ``</s>`` is one. None of a network that does not look at single words.
        """
        return None

    def summaries(self, ids: Ids, lengths: Lengths) -> Tensor | None:
        """Each source as the one vector that the decoder begins with; sources × numbers of the network's own choice.

        None of a network that has no such vector.
        """
        return None

    def word_log_probs(
        self, terms: SomeTerms, prefixes: SomePrefixes, rows: Tensor, words: Tensor, blocks: Sequence[NodeBlock]
    ) -> Tensor:
        """log p of words, each after the prefix of a row, which ascend; as many. `blocks` are as of `node_blocks`."""
        parts = [torch.zeros(0, dtype=torch.float64, device=self.device)]
        for block, nodes in blocks:
            log_probs = self.next_log_probs(terms, take_rows(prefixes, block))
            parts.append(log_probs[rows[nodes] - block.start, words[nodes]])
        return torch.cat(parts)


def row_blocks(prefixes: int, words: int, device: torch.device = CPU) -> Iterator[slice]:
    """Rows of prefixes whose distributions over words are in the device's memory at once, at least one."""
    logits = LOGITS_AT_ONCE if device.type == "cpu" else LOGITS_AT_ONCE_ELSEWHERE
    return row_slices(prefixes, max(logits // words, 1))


def node_blocks(
    parents: npt.NDArray[np.int64], prefixes: int, words: int, device: torch.device = CPU
) -> list[NodeBlock]:
    """Rows of prefixes as of `row_blocks`, each with the nodes below, whose `parents` ascend.

    The processor decides that, without the device.
    """
    blocks = list(row_blocks(prefixes, words, device))
    bounds = np.searchsorted(parents, [*(block.start for block in blocks), prefixes]).tolist()
    return [NodeBlock(block, slice(*ends)) for block, ends in zip(blocks, pairwise(bounds), strict=True)]
