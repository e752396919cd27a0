"""A continuous-space translation model: predicts all words of a short target at once from a short source.

It follows Schwenk's CSLM toolkit; his 2012 paper (COLING) names the network and its seven words per side. Target words
are independent of each other given the source. S slots per side, E embedding dimensions, A and B hidden units, K words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from moses_rnn.networks.batches import Batch, Ints, Values, distinct_rows, in_slots
from moses_rnn.networks.config import Architecture, Config, Rare, Size, Unit
from moses_rnn.networks.network import Drop, TranslationNetwork, keep, unset
from moses_rnn.networks.slots import Slots, SlottedPairs, check_length
from moses_rnn.networks.softmax import Output, OutputLayer, learned_log_probs
from moses_rnn.networks.steps import node_blocks
from moses_rnn.networks.tries import IdPhrases
from moses_rnn.networks.vocabulary import END_ID


@dataclass(frozen=True)
class CstmConfig(Config):
    """Sizes; we chose those of the layers."""

    source_vocabulary_size: Size  # with <unk> and </s>
    target_vocabulary_size: Size
    slots: Slots = 7  # words of a source, or of a target with its </s>
    embedding_size: Size = 128
    first_size: Size = 512
    second_size: Size = 256
    unit: Unit = "phrases"  # of its training data
    rare: Rare | None = None  # None: <unk>

    @property
    def width(self) -> int:
        """Units of the first layer."""
        return self.first_size

    @property
    def description(self) -> str:
        """Description for logs."""
        sizes = self.slots * self.embedding_size, self.first_size, self.second_size
        return f"CSTM, {self.slots} slots, {' → '.join(map(str, sizes))}"


class Cstm(TranslationNetwork):
    """The network.

    x     = [e(x_1); …; e(x_S)]                             e(<null>) in empty slots; </s> is not read
    h_1   = tanh(W_1 x + b_1)
    h_2   = tanh(W_2 h_1 + b_2)
    p_k   = softmax(G_k h_2 + b_Gk)                         for the k-th target word; the last is </s>
    log p = Σ_k log p_k(y_k)                                k = 1 … min(T + 1, S)

    All weights are initially uniform in ±0.01.
    """

    deviation = 0.01

    def _build(self, config: CstmConfig) -> None:
        E, A, B = config.embedding_size, config.first_size, config.second_size
        self.embedding = unset(config.source_vocabulary_size + 1, E)  # the last row is <null>
        self.W_1, self.b_1 = unset(A, config.slots * E), unset(A)
        self.W_2, self.b_2 = unset(B, A), unset(B)
        for k in range(1, config.slots + 1):
            self.register_parameter(f"G_{k}", unset(config.target_vocabulary_size, B))
            self.register_parameter(f"b_G{k}", unset(config.target_vocabulary_size))

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """See `Network`; the target side has none."""
        return {"source": self.embedding}

    def output_of(self, k: int) -> Output:
        """Return G_k and b_Gk; k counts from 1."""
        return self.get_parameter(f"G_{k}"), self.get_parameter(f"b_G{k}")

    def hidden(self, words: Tensor, drop: Drop = keep) -> Tensor:
        """Return h_2 (sources × B) of words in slots, with ``<null>`` (sources × S); `drop` applies to both layers."""
        h = embedding(words, self.embedding).flatten(1)
        for W, b in ((self.W_1, self.b_1), (self.W_2, self.b_2)):
            h = drop(torch.tanh(self.kernel.matmul(h, W) + b))
        return h

    def word_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,
        partition: Tensor | None = None,
        drop: Drop = keep,
    ) -> Tensor:
        """See `TranslationNetwork`; covers the target words and ``</s>`` that have a slot."""
        S = self.config.slots
        check_length(max(len(sources.active), len(targets.active)) - 1, S)
        words = self._slotted(sources)
        h = self.hidden(words, drop).index_select(0, source_of)  # T × B
        parts = []
        for k, rows in enumerate(targets.active[:S]):
            of_slot = targets.ids[:rows, k]
            parts.append(learned_log_probs(h[:rows], self.output_of(k + 1), of_slot, self.kernel, partition))
        return torch.cat(parts)

    def _slotted(self, sources: Batch) -> Tensor:
        """Return the words of each source in their slots; sources × S."""
        S, null = self.config.slots, self.config.source_vocabulary_size
        words = nn.functional.pad(sources.ids, (0, max(S - sources.ids.shape[1], 0)), value=null)[:, :S]
        lengths = (sources.lengths() - 1).to(words.device)
        return words.masked_fill(torch.arange(S, device=words.device) >= lengths[:, None], null)


# -- scoring: reads each distinct source once, without a trie


class CstmPairs(SlottedPairs):
    """See `SlottedPairs`; memory grows with the number of pairs scored together."""

    _model: Cstm

    def _prepare(self) -> None:
        how = self._product_dtype, self._dtype
        self._outputs = [OutputLayer(*self._model.output_of(k + 1), *how) for k in range(self._slots)]

    def _score_short(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        S = self._slots
        distinct, source_of = distinct_rows(in_slots(*sources, S, self._model.config.source_vocabulary_size))
        h = self._model.hidden(torch.from_numpy(distinct).to(self.device))
        words, order = in_slots(*targets, S, END_ID), np.argsort(source_of, kind="stable")
        ends, totals = np.minimum(targets[1] + 1, S)[order], np.zeros(len(order))
        for k in range(S):
            rows = np.flatnonzero(ends > k)  # by source
            if len(rows):
                totals[rows] += self._score_slot(k, h, source_of[order[rows]], words[order[rows], k])
        values = np.empty_like(totals)
        values[order] = totals
        return values

    def _score_slot(self, k: int, h: torch.Tensor, source_of: Ints, words: Ints) -> Values:
        """Return log p_k of words, one source each; `source_of` is ascending."""
        needed, above = np.unique(source_of, return_inverse=True)
        rows, chosen, sources = (
            torch.from_numpy(np.ascontiguousarray(array)).to(self.device) for array in (above, words, needed)
        )
        blocks = node_blocks(above, len(needed), self._model.config.target_vocabulary_size, self.device)
        log_probs = self._outputs[k].chosen(h.index_select(0, sources), rows, chosen, blocks)
        values: Values = log_probs.double().cpu().numpy()
        return values


CSTM = Architecture(
    "cstm", "CSTM", "CSTM", CstmConfig, Cstm, pairs=CstmPairs, ends="its </s> included where it has a slot", format=2
)
