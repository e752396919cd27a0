"""log p of some words after some prefixes, with as few passes over the logits as that takes.

Products may be rounded to bfloat16; sums are float32. K words, R numbers that a prefix predicts them by.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.networks import kernel as kernels
from moses_rnn.networks.steps import Columns, NodeBlock


class OutputLayer:
    """softmax(G r + b_G), for scoring and for search.

    Args:
        G: K × R.
        b_G: K.
        product_dtype: of matrix products.
        dtype: of everything else.
    """

    def __init__(self, G: Tensor, b_G: Tensor, product_dtype: torch.dtype, dtype: torch.dtype) -> None:
        self._G = G.detach().to(product_dtype).contiguous()
        self._exact_G = G.detach().to(dtype).contiguous()
        self._b_G = b_G.detach().to(dtype).contiguous()
        self._numbers = torch.arange(len(b_G), device=b_G.device, dtype=dtype)
        self._product_dtype, self._dtype = product_dtype, dtype

    def log_probs(self, projected: Tensor, sources: Tensor, columns: Columns | None = None) -> Tensor:
        """log p of every word after each prefix; natural, prefixes × K, float64.

        As exact as the products are: bfloat16 ones show in its second decimal.

        Args:
            projected: r of each prefix; prefixes × R.
            sources: the row of each prefix's source among the terms; prefixes.
            columns: words to normalise over; see `Stepper.next_log_probs`.
        """
        G, b_G = self._G, self._b_G
        if columns is not None:
            G, b_G = G.index_select(0, columns.words), b_G.index_select(0, columns.words)
        logits = linear(projected.to(self._product_dtype), G).to(self._dtype) + b_G
        if columns is not None:
            logits = logits.masked_fill(~columns.allowed.index_select(0, sources), -torch.inf)
        return torch.log_softmax(logits, 1, dtype=torch.float64)

    def chosen(self, projected: Tensor, rows: Tensor, words: Tensor, blocks: Sequence[NodeBlock]) -> Tensor:
        """log p of some words; each prefix is normalised once, whatever the number of words after it.

        Args:
            projected: r of each prefix; prefixes × R.
            rows: the prefix of each word; ascending.
            words: ids.
            blocks: of prefixes and words, all of them in order.
        """
        parts = [self._normalised(projected[block], rows[nodes] - block.start, words[nodes]) for block, nodes in blocks]
        return torch.cat(parts) if parts else projected.new_zeros(0)

    def _normalised(self, projected: Tensor, above: Tensor, words: Tensor) -> Tensor:
        """log p of words, each after one of a few prefixes; nodes.

        Rounded products would show in the logits of the word and of the likeliest one, which are therefore computed
        again; over all others their errors cancel.
        """
        logits = linear(projected.to(self._product_dtype), self._G)  # prefixes × K
        chosen = logits[above, words] + self._b_G[words]
        largest, at, rest = kernels.normaliser(logits, self._b_G, self._numbers)
        if self._product_dtype != self._dtype:
            exact = self._logit(projected, at)
            rest *= torch.exp(largest - exact)
            chosen, largest = self._logit(projected[above], words), exact
        return chosen - largest[above] - torch.log1p(rest)[above]

    def _logit(self, projected: Tensor, words: Tensor) -> Tensor:
        """The logit of one word for each prefix."""
        return (projected * self._exact_G.index_select(0, words)).sum(1) + self._b_G[words]
