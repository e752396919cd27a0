"""The CSLM of Schwenk (2012) as Cho et al. (EMNLP 2014, section 4.1.2) use it: a feed-forward n-gram language model.

x is the concatenation of the embeddings of the n-1 words before, oldest first; E dimensions each. Two rectified layers
h_1 and h_2 of H_1 and H_2 units, and a softmax over the K words of the shortlist:
h_1 = max(0, W_1 x + b_1), h_2 = max(0, W_2 h_1 + b_2), p(w | x) = exp(G h_2 + b_G)_w / Z.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from moses_rnn.networks.config import Config, Size, unset
from moses_rnn.networks.dropout import Drop, keep
from moses_rnn.networks.folders import Architecture
from moses_rnn.networks.n_grams import NGramNetwork, NGramScores, Order


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
        """Hidden units, which decide what pays on a processor."""
        return self.first_size

    @property
    def description(self) -> str:
        """For a log."""
        sizes = self.embedding_size, self.embedding_size * (self.order - 1), self.first_size, self.second_size
        return f"{self.order}-gram, {' → '.join(map(str, sizes))}"


class Cslm(NGramNetwork):
    """The network; `state_dict` has the tensor names of the checkpoint format.

    Args:
        config: sizes.
        seed: of the initial weights, uniform in ±0.01 as in the paper; None leaves them unset.
    """

    def __init__(self, config: CslmConfig, *, seed: int | None) -> None:
        super().__init__()
        self.config = config
        K, E, H_1, H_2 = config.vocabulary_size, config.embedding_size, config.first_size, config.second_size
        self.embedding = unset(K + 1, E)  # the last one is that of <s>
        self.W_1, self.b_1 = unset(H_1, (config.order - 1) * E), unset(H_1)
        self.W_2, self.b_2 = unset(H_2, H_1), unset(H_2)
        self.G, self.b_G = unset(K, H_2), unset(K)
        if seed is not None:
            self.initialise(seed)

    @property
    def bias(self) -> Tensor:
        """b_G; K."""
        return self.b_G

    @property
    def output(self) -> Tensor:
        """G; K × H_2."""
        return self.G

    def summary(self, contexts: Tensor, product_dtype: torch.dtype | None = None, drop: Drop = keep) -> Tensor:
        """h_2 of some contexts, see `NGramNetwork`; n × H_2. `drop` leaves units of both layers out."""
        dtype = product_dtype or self.G.dtype
        x = embedding(contexts, self.embedding).flatten(1)  # n × (order - 1)E
        for W, b in ((self.W_1, self.b_1), (self.W_2, self.b_2)):
            x = drop(torch.relu(linear(x.to(dtype), W.to(dtype)).to(b.dtype) + b))
        return x


CSLM = Architecture("cslm", "CSLM", "CSLM", ("target",), CslmConfig, Cslm, words=NGramScores)
