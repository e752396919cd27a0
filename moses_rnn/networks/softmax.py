"""Log p of words, normalised over all K words, with as few passes over the logits as possible.

`learned_log_probs` is for training, `OutputLayer` for scoring and search. Products may be rounded to bfloat16; sums are
float32. R is the size of the softmax's input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.networks.compute import Kernel
from moses_rnn.networks.native_learning import ChosenLogProbs, NativeKernel
from moses_rnn.networks.steps import Candidates, NodeBlock

Output = tuple[Tensor, Tensor]  # G_l, K × R, and b_G, K


def learned_log_probs(
    projected: Tensor, output: Output, words: Tensor, kernel: Kernel, partition: Tensor | None
) -> Tensor:
    """Return log p of one word per row (nodes × R), normalised over all words or over a partition; nodes.

    A partition has the ids, ascending, of all words of some minibatches.
    """
    if partition is not None:
        output, words = _within(partition, output, words)
    return chosen_log_probs(projected, *output, words, kernel)


def logits_above_mean(projected: Tensor, output: Output, words: Tensor, partition: Tensor | None) -> Tensor:
    """Return the logit of one word per row (nodes × R) minus the mean logit of all words, or of a partition; nodes.

    Labels with 1 - ε for a word y and ε spread over all words (Szegedy et al. 2016, section 7) cost, in nats,
    -(1 - ε) log p_y - ε mean(log p) = -log p_y + ε (logit_y - mean logit).
    """
    if partition is not None:
        output, words = _within(partition, output, words)
    G_l, b_G = output
    rows = G_l.index_select(0, words) - G_l.mean(0)
    return (projected * rows).sum(1) + b_G.index_select(0, words) - b_G.mean()


def _within(partition: Tensor, output: Output, words: Tensor) -> tuple[Output, Tensor]:
    """Return the output rows of a partition, and the positions of words in it.

    With a proposal that is uniform on the partition and 0 elsewhere, the constant in the importance weights
    exp(E(y) - log Q(y)) cancels, which leaves the exact softmax over the partition (Jean et al. 2015, section 3.2). The
    rows of other words have no gradient.
    """
    G_l, b_G = output
    rows = G_l.index_select(0, partition), b_G.index_select(0, partition)
    return rows, torch.searchsorted(partition, words)


def chosen_log_probs(projected: Tensor, G_l: Tensor, b_G: Tensor, words: Tensor, kernel: Kernel) -> Tensor:
    """Return log softmax(G_l projected + b_G) at one word per row; nodes. The sum over words has the type of b_G."""
    function = ChosenLogProbs if isinstance(kernel, NativeKernel) else _Function
    log_probs: Tensor = function.apply(projected, G_l, b_G, words, kernel)  # type: ignore[no-untyped-call]
    return log_probs


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, G_l: Tensor, b_G: Tensor, words: Tensor, kernel: Kernel) -> Tensor:
        projected, G_l, b_G = kernel.rounded(projected), kernel.rounded(G_l), b_G.detach()
        logits = linear(projected, G_l)
        log_total = torch.logsumexp(logits.to(b_G.dtype) + b_G, 1, keepdim=True)
        ctx.save_for_backward(projected, G_l, b_G, words, logits, log_total)
        ctx.kernel = kernel
        return (logits.gather(1, words[:, None]) + b_G[words, None] - log_total).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        projected, G_l, b_G, words, logits, log_total = ctx.saved_tensors
        grad_x = (-(logits.to(b_G.dtype) + b_G - log_total).exp() * gradients[0][:, None]).to(logits.dtype)
        grad_x[torch.arange(len(words), device=words.device), words] += gradients[0].to(grad_x.dtype)
        every, kind = grad_x.new_ones(1, len(grad_x)), b_G.dtype
        grad_b = (every @ grad_x).squeeze(0)  # several times as fast as sum(0) in bfloat16
        return (grad_x @ G_l).to(kind), (grad_x.T @ projected).to(kind), grad_b.to(kind), None, None


class OutputLayer:
    """The layer softmax(G r + b_G) for scoring and search; `dtype` is that of everything except matrix products."""

    def __init__(self, G: Tensor, b_G: Tensor, product_dtype: torch.dtype, dtype: torch.dtype) -> None:
        self._G = G.detach().to(product_dtype).contiguous()
        self._exact_G = G.detach().to(dtype).contiguous()
        self._b_G = b_G.detach().to(dtype).contiguous()
        self._product_dtype, self._dtype = product_dtype, dtype

    def log_probs(self, projected: Tensor, sources: Tensor, candidates: Candidates | None = None) -> Tensor:
        """See `Stepper.next_log_probs`; takes each prefix's r (prefixes × R) and the row of its source."""
        G, b_G = self._G, self._b_G
        if candidates is not None:
            G, b_G = G.index_select(0, candidates.words), b_G.index_select(0, candidates.words)
        logits = linear(projected.to(self._product_dtype), G).to(self._dtype) + b_G
        if candidates is not None:
            logits = logits.masked_fill(~candidates.allowed.index_select(0, sources), -torch.inf)
        return torch.log_softmax(logits, 1, dtype=torch.float64)

    def chosen(self, projected: Tensor, rows: Tensor, words: Tensor, blocks: Sequence[NodeBlock]) -> Tensor:
        """See `Stepper.word_log_probs`; normalises each prefix once, whatever the number of words after it."""
        parts = [self._normalised(projected[block], rows[nodes] - block.start, words[nodes]) for block, nodes in blocks]
        return torch.cat(parts) if parts else projected.new_zeros(0)

    def _normalised(self, projected: Tensor, above: Tensor, words: Tensor) -> Tensor:
        """Return log p of words, each after one of a few prefixes; nodes.

        Near p = 1, log p is the small difference of two large numbers. With the largest logit taken out of the sum of
        exp(logit - largest), log p = (logit - largest) - log1p(rest) keeps its precision. Rounded products would affect
        the logits of the word and of the likeliest word, so these are recomputed; over all others, the errors cancel.
        """
        logits = linear(projected.to(self._product_dtype), self._G)  # prefixes × K
        chosen = logits[above, words] + self._b_G[words]
        x = logits.to(self._dtype).add_(self._b_G)
        largest = x.amax(1, keepdim=True)
        at = x.argmax(1) if self._product_dtype != self._dtype else None
        rest = x.sub_(largest).exp_().sum(1, dtype=torch.float64) - 1  # exp(0) is 1
        largest = largest.squeeze(1)
        if at is not None:
            exact = self._logit(projected, at)
            rest *= torch.exp(largest - exact)
            chosen, largest = self._logit(projected[above], words), exact
        return chosen - largest[above] - torch.log1p(rest)[above]

    def _logit(self, projected: Tensor, words: Tensor) -> Tensor:
        return (projected * self._exact_G.index_select(0, words)).sum(1) + self._b_G[words]
