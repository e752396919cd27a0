"""What feed-forward language models have in common: the words before in, one summary and one softmax out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from moses_rnn.models.dropout import Drop, keep
from moses_rnn.models.hardware import EAGER
from moses_rnn.models.initial_weights import draw_uniformly
from moses_rnn.models.softmax import chosen_log_probs

INITIAL_RANGE = 0.01  # of a feed-forward one's weights: that of the CSLM of Cho et al. 2014, section 4.1.2


class NGramNetwork(nn.Module):
    """p(w | the n - 1 words before) = softmax(output · summary + b_G).

    Ids are the vocabulary's; what stands before a sentence, ``<s>``, has the id K, which is never predicted. The
    `config` has an `order` n and a `description`.
    """

    config: Any

    def initialise(self, seed: int, deviation: float = INITIAL_RANGE) -> None:
        """Draw all weights uniformly from ±`deviation`; equal seeds give equal weights."""
        draw_uniformly(self, seed, deviation)

    @property
    @abstractmethod
    def bias(self) -> Tensor:
        """b_G; K."""

    @property
    def words(self) -> int:
        """K, how many words can be predicted, ``<unk>`` and ``</s>`` among them."""
        return len(self.bias)

    @property
    @abstractmethod
    def output(self) -> Tensor:
        """What gives the words' logits; K × R."""

    @abstractmethod
    def summary(self, contexts: Tensor, product_dtype: torch.dtype | None = None, drop: Drop = keep) -> Tensor:
        """What some contexts come to; n × R.

        Args:
            contexts: ids of the words before, oldest first; n × (order - 1).
            product_dtype: the type that matrix products are computed in; by default that of the weights.
            drop: leaves units out, for training.
        """

    def log_probs(
        self, contexts: Tensor, words: Tensor, product_dtype: torch.dtype | None = None, drop: Drop = keep
    ) -> tuple[Tensor, Tensor]:
        """log p(w | context) and log Z of some n-grams; n each. Arguments as of `summary`, words: n."""
        dtype = product_dtype or self.bias.dtype
        output, summary = self.output, self.summary(contexts, dtype, drop)
        log_p = chosen_log_probs(summary, output, self.bias, words, dtype, EAGER)
        rows = output.index_select(0, words).to(dtype)
        chosen = (summary.to(dtype) * rows).to(self.bias.dtype).sum(1) + self.bias.index_select(0, words)
        return log_p, chosen - log_p
