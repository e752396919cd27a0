"""A network that ranks phrase pairs: it scores the right target above the same target with one word replaced.

It applies Collobert and Weston's (2008) ranking of word windows, as taught in lectures, to pairs. Its score is not a
log-probability. S slots per side, E embedding dimensions, A hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from moses_rnn.networks.batches import Values, distinct_rows, in_slots
from moses_rnn.networks.config import Architecture, Config, Rare, Size, Unit
from moses_rnn.networks.measures import RANKED_WRONG
from moses_rnn.networks.network import Drop, Network, keep, unset
from moses_rnn.networks.slots import Slots, SlottedPairs
from moses_rnn.networks.tries import IdPhrases


@dataclass(frozen=True)
class RankerConfig(Config):
    """Sizes, which we chose, and which target word is replaced in training."""

    source_vocabulary_size: Size  # with <unk> and </s>
    target_vocabulary_size: Size
    slots: Slots = 7  # words of a source or a target
    embedding_size: Size = 64
    hidden_size: Size = 256
    corrupt: Literal["last", "any"] = "last"  # any: a random word
    unit: Unit = "phrases"  # of its training data
    rare: Rare | None = None  # None: <unk>

    @property
    def width(self) -> int:
        """Units of the hidden layer."""
        return self.hidden_size

    @property
    def description(self) -> str:
        """Description for logs."""
        sizes = 2 * self.slots * self.embedding_size, self.hidden_size, 1
        return f"ranker, {self.slots} slots per side, {' → '.join(map(str, sizes))}, {self.corrupt} word replaced"


class Ranker(Network):
    """The network; all weights are initially uniform in ±0.1.

    u    = [e(x_1); …; e(x_S); e'(y_1); …; e'(y_S)]         <null> in empty slots; no </s> is read
    s    = w · tanh(W_1 u + b_1) + b_2
    loss = max(0, 1 - s(x, y) + s(x, y'))                   y': the target y with one word replaced
    """

    deviation = 0.1

    def _build(self, config: RankerConfig) -> None:
        E, A = config.embedding_size, config.hidden_size
        self.source = Side(config.source_vocabulary_size, E)
        self.target = Side(config.target_vocabulary_size, E)
        self.W_1, self.b_1 = unset(A, 2 * config.slots * E), unset(A)
        self.w, self.b_2 = unset(A), unset(1)

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """See `Network`."""
        return {"source": self.source.embedding, "target": self.target.embedding}

    def scores(self, sources: Tensor, targets: Tensor, drop: Drop = keep) -> Tensor:
        """Return s of pairs given as words in slots, with ``<null>`` (pairs × S); `drop` applies to hidden units."""
        u = torch.cat([self.source(sources), self.target(targets)], 1)
        return self.read_out(self.kernel.matmul(u, self.W_1), drop)

    def read_out(self, projected: Tensor, drop: Drop = keep) -> Tensor:
        """Return s of each pair from W_1 u; pairs × A to pairs."""
        return drop(torch.tanh(projected + self.b_1)) @ self.w + self.b_2


class Side(nn.Module):
    """The embeddings of a side."""

    def __init__(self, K: int, E: int) -> None:
        super().__init__()
        self.embedding = unset(K + 1, E)  # the last row is <null>

    def forward(self, words: Tensor) -> Tensor:
        """Concatenate the embeddings of words in slots; phrases × S to phrases × SE."""
        return embedding(words, self.embedding).flatten(1)


def hinge(right: Tensor, wrong: Tensor) -> Tensor:
    """Return the hinge loss: a right pair should score 1 above a wrong one."""
    return (1 - right + wrong).clamp(min=0)


# -- scoring: multiplies each distinct phrase of a side once


class RankerPairs(SlottedPairs):
    """See `SlottedPairs`; the "log-probabilities" are the ranker's scores s."""

    _model: Ranker

    def _prepare(self) -> None:
        halves = self._model.W_1.chunk(2, 1)  # of source, of target
        self._halves = [half.to(self._product_dtype).contiguous() for half in halves]

    def _score_short(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        source, target = self._halves
        projected = self._half(sources, self._model.source, source) + self._half(targets, self._model.target, target)
        values: Values = self._model.read_out(projected).double().cpu().numpy()
        return values

    def _half(self, phrases: IdPhrases, side: Side, W: Tensor) -> Tensor:
        """Return a side's part of W_1 u; pairs × A."""
        distinct, row_of = distinct_rows(in_slots(*phrases, self._slots, len(side.embedding) - 1))
        e = side(torch.from_numpy(distinct).to(self.device))
        product = linear(e.to(W.dtype), W).to(self._dtype)
        return product.index_select(0, torch.from_numpy(row_of).to(self.device))


RANKER = Architecture(
    "ranker",
    "ranker",
    "RANK",
    RankerConfig,
    Ranker,
    pairs=RankerPairs,
    ends="without </s>",
    unbounded=True,
    format=2,
    measure=RANKED_WRONG,
)
