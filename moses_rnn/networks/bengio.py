"""The neural probabilistic language model of Bengio, Ducharme, Vincent and Jauvin (2003), JMLR 3, section 2.

x is the concatenation of the embeddings of the n-1 words before, oldest first; E dimensions each. One layer of A
hidden units, direct connections from x to the words, and a softmax over the K words of the shortlist:

    y = b_G + W x + G tanh(b_1 + W_1 x)                     (1); the paper's b, W, U, d and H
    p(w | x) = exp(y_w) / Σ_k exp(y_k)

With the switch `direct` off, there is no W x; with A = 0, there is no hidden layer, and the model is log-linear in x.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding

from moses_rnn.networks.config import Architecture, Config, Size, SizeOrNone, Unit
from moses_rnn.networks.n_grams import NGramNetwork, NGramScores, NGramStepper, Order
from moses_rnn.networks.network import Drop, keep, unset
from moses_rnn.networks.softmax import Output


@dataclass(frozen=True)
class BengioConfig(Config):
    """Sizes and switches; the defaults are those of the paper's MLP1, except its vocabulary."""

    target_vocabulary_size: Size  # with <unk> and </s>
    order: Order = 5
    embedding_size: Size = 60
    hidden_size: SizeOrNone = 50  # A; 0: no hidden layer
    direct: bool = True  # connections from x to the words
    unit: Unit = "sentences"
    rare: None = None  # rare words are <unk>

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.direct or self.hidden_size):
            self.refuse("hidden_size", "above 0 without direct connections")

    @property
    def width(self) -> int:
        """Units of the hidden layer."""
        return self.hidden_size

    @property
    def description(self) -> str:
        """Description for logs."""
        sizes = self.embedding_size, self.embedding_size * (self.order - 1), self.hidden_size
        return f"{self.order}-gram, {' → '.join(map(str, sizes))}{' and directly' * self.direct}"


class Bengio(NGramNetwork):
    """The network; all weights are initially uniform in ±0.01, as in a CSLM."""

    def _build(self, config: BengioConfig) -> None:
        K, E, A = config.target_vocabulary_size, config.embedding_size, config.hidden_size
        read = (config.order - 1) * E
        self.embedding = unset(K + 1, E)  # the last row is <s>
        if A:
            self.W_1, self.b_1, self.G = unset(A, read), unset(A), unset(K, A)
        if config.direct:
            self.W = unset(K, read)
        self.b_G = unset(K)

    @property
    def output(self) -> Output:
        """[G W] without missing parts (K × (A + (n - 1)E)), and b_G."""
        matrices = [getattr(self, name) for name in "GW" if hasattr(self, name)]
        return torch.cat(matrices, 1) if len(matrices) > 1 else matrices[0], self.b_G

    def summary(self, contexts: Tensor, drop: Drop = keep) -> Tensor:
        """Return [tanh(b_1 + W_1 x); x]; `drop` applies to x and the hidden layer."""
        x = drop(embedding(contexts, self.embedding).flatten(1))  # n × (order - 1)E
        if not self.config.hidden_size:
            return x
        h = drop(torch.tanh(self.kernel.matmul(x, self.W_1) + self.b_1))
        return torch.cat([h, x], 1) if self.config.direct else h


BENGIO = Architecture(
    "bengio",
    "NPLM of Bengio et al.",
    "NPLM",
    BengioConfig,
    Bengio,
    sides=("target",),
    stepper=NGramStepper,
    words=NGramScores,
    format=2,
)
