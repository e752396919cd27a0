"""The CSLM of Schwenk (2012) as Cho et al. (EMNLP 2014, section 4.1.2) use it: a feed-forward n-gram language model.

x is the concatenation of the embeddings of the n-1 words before, oldest first; E dimensions each. Two rectified layers
h_1 and h_2 of H_1 and H_2 units, and a softmax over the K words of the shortlist:
h_1 = max(0, W_1 x + b_1), h_2 = max(0, W_2 h_1 + b_2), p(w | x) = exp(G h_2 + b_G)_w / Z.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from moses_rnn.errors import InputError
from moses_rnn.networks.config import Architecture, Config, Size
from moses_rnn.networks.n_grams import NGramNetwork, NGramScores, NGramStepper, Order
from moses_rnn.networks.network import Drop, keep, unset
from moses_rnn.networks.softmax import Output
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.table.table_blocks import PhraseIds


@dataclass(frozen=True)
class CslmConfig(Config):
    """Sizes; the defaults are the paper's."""

    vocabulary_size: Size  # with <unk> and </s>
    order: Order = 7
    embedding_size: Size = 512
    first_size: Size = 1536
    second_size: Size = 1024

    @property
    def width(self) -> int:
        """Units of the first layer."""
        return self.first_size

    @property
    def description(self) -> str:
        """Description for logs."""
        sizes = self.embedding_size, self.embedding_size * (self.order - 1), self.first_size, self.second_size
        return f"{self.order}-gram, {' → '.join(map(str, sizes))}"


class Cslm(NGramNetwork):
    """The network; all weights are initially uniform in ±0.01."""

    def _build(self, config: CslmConfig) -> None:
        K, E, H_1, H_2 = config.vocabulary_size, config.embedding_size, config.first_size, config.second_size
        self.embedding = unset(K + 1, E)  # the last row is <s>
        self.W_1, self.b_1 = unset(H_1, (config.order - 1) * E), unset(H_1)
        self.W_2, self.b_2 = unset(H_2, H_1), unset(H_2)
        self.G, self.b_G = unset(K, H_2), unset(K)

    @property
    def output(self) -> Output:
        """G and b_G."""
        return self.G, self.b_G

    def summary(self, contexts: Tensor, drop: Drop = keep) -> Tensor:
        """Return h_2; `drop` applies to both layers."""
        x = embedding(contexts, self.embedding).flatten(1)  # n × (order - 1)E
        for W, b in ((self.W_1, self.b_1), (self.W_2, self.b_2)):
            x = drop(torch.relu(self.kernel.matmul(x, W) + b))
        return x


CSLM = Architecture(
    "cslm", "CSLM", "CSLM", CslmConfig, Cslm, sides=("target",), stepper=NGramStepper, words=NGramScores
)


@dataclass(frozen=True)
class Normalisers:
    """Statistics of log Z over the words and end symbols of a text."""

    tokens: int
    mean: float
    mean_abs: float
    mean_abs_without_mean: float  # after the mean is subtracted from the output biases


def normalisers(network: Cslm, vocabulary: Vocabulary, lines: Iterable[bytes], name: str) -> Normalisers:
    """Measure how far a CSLM is from self-normalisation on a text."""
    sentences = [line.rstrip(b"\r\n") for line in lines if line.strip(b" \t\r\n")]
    if not sentences:
        raise InputError(f"{name}: expected sentences, found none")
    scores = NGramScores(network)
    log_Z = scores.log_normalisers(scores.n_grams(*PhraseIds(vocabulary.id_of)(sentences)))
    mean = float(log_Z.mean())
    return Normalisers(len(log_Z), mean, float(np.abs(log_Z).mean()), float(np.abs(log_Z - mean).mean()))
