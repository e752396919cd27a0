"""A bag of source words: the example of how to add a network, which test_recipe.py adds to a copy of the package.

h_t = b + Σ_j e(x_j) / N + e'(y_{t-1}), where e'(y_0) = 0 and x_N is ``</s>``, and p(y_t | y_<t, x) = softmax(G h_t + b_G).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding

from moses_rnn.networks.config import Architecture, Config, Rare, Size, Unit
from moses_rnn.networks.network import NetworkStepper, TranslationNetwork, previous_embeddings, unset
from moses_rnn.networks.tries import build_trie, last_states


@dataclass(frozen=True)
class BagConfig(Config):
    source_vocabulary_size: Size
    target_vocabulary_size: Size
    embedding_size: Size = 32
    biased: bool = True
    unit: Unit = "phrases"
    rare: Rare | None = None

    @property
    def width(self):
        return self.embedding_size

    @property
    def description(self):
        return f"bag of words, E {self.embedding_size}"


class Bag(TranslationNetwork):
    deviation = 0.1

    def _build(self, config):
        E, K = config.embedding_size, config.target_vocabulary_size
        self.e, self.e_y = unset(config.source_vocabulary_size, E), unset(K, E)
        self.G, self.b_G = unset(K, E), unset(K)
        if config.biased:
            self.b = unset(E)

    @property
    def embeddings(self):
        return {"source": self.e, "target": self.e_y}

    @property
    def output(self):
        return self.G, self.b_G

    def predict(self, sources, targets, source_of, drop):
        words, rows = sources.packed(), sources.rows()
        sums = torch.zeros(len(sources.ids), self.config.embedding_size, dtype=self.e.dtype, device=self.e.device)
        h = self.mean(sums.index_add(0, rows, embedding(words, self.e)), sources.lengths()).index_select(0, source_of)
        return drop(h.index_select(0, targets.rows()) + previous_embeddings(self.e_y, targets))

    def mean(self, sums: Tensor, lengths: Tensor) -> Tensor:
        h = sums / lengths.to(sums)[:, None]
        return h + self.b if self.config.biased else h


class BagPrefixes(NamedTuple):
    sources: Tensor
    h: Tensor


class BagStepper(NetworkStepper):
    def encode(self, ids, lengths):
        trie = build_trie(ids, lengths)
        nothing = torch.zeros(trie.roots, self._model.config.embedding_size + 1, dtype=self._dtype, device=self.device)
        *sums, n = last_states(trie, self.device, nothing, self._count).split(self._model.config.embedding_size, 1)
        return (self._model.mean(*sums, n.squeeze(1)),), trie.leaf_of

    def _count(self, words, states, above):
        one = torch.ones(len(words), 1, dtype=self._dtype, device=self.device)
        return states.index_select(0, above) + torch.cat([self._model.e.index_select(0, words), one], 1)

    def start(self, encoded):
        return BagPrefixes(torch.arange(len(encoded[0]), device=self.device), encoded[0])

    def step(self, encoded, prefixes, rows, words):
        sources = prefixes.sources[rows]
        return BagPrefixes(sources, encoded[0].index_select(0, sources) + self._model.e_y.index_select(0, words))

    def _read_out(self, _encoded, prefixes):
        return prefixes.h


BAG = Architecture("bag", "bag of words", "BAG", BagConfig, Bag, stepper=BagStepper, format=2)
