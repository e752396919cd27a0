"""log p of chosen words, normalised over all words; the matrix of logits is gone through as seldom as can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.models.hardware import fused


def normaliser(logits: Tensor, b: Tensor) -> Tensor:
    """log Σ exp(logit + b) of each row; rows × 1."""
    return torch.logsumexp(logits.to(b.dtype) + b, 1, keepdim=True)


def of_logits(logits: Tensor, b: Tensor, log_total: Tensor, of_log_p: Tensor) -> Tensor:
    """From the gradient of a row's log p to that of all its logits, but for the chosen one's further 1."""
    return (-(logits.to(b.dtype) + b - log_total).exp() * of_log_p).to(logits.dtype)


class Passes(NamedTuple):
    """The passes over the logits; one operation after the other, or fused."""

    normaliser: Callable[[Tensor, Tensor], Tensor]
    of_logits: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

    @classmethod
    def eager(cls) -> Passes:
        """One operation after the other."""
        return cls(normaliser, of_logits)

    @classmethod
    def compiled(cls) -> Passes:
        """Fused by torch.compile."""
        return cls(fused(normaliser), fused(of_logits))


class WordSample(NamedTuple):
    """Words drawn, with replacement, to estimate a sum over all words by; n each."""

    words: Tensor
    log_expected: Tensor  # how often each was to be expected among them


def sampled_log_probs(
    low: Tensor, G_l: Tensor, b_G: Tensor, words: Tensor, product: torch.dtype, sample: WordSample
) -> Tensor:
    """As `chosen_log_probs`, with an estimate of the sum over all words: nodes.

    Importance sampling (Jean et al. 2015, section 3.2; Bengio and Sénécal 2008): the word itself counts as it is, every
    drawn word other than it by exp(logit) over how often it was to be expected. The estimate of the sum is unbiased.
    """
    rows = G_l.index_select(0, sample.words)
    drawn = linear(low.to(product), rows.to(product)).to(b_G.dtype) + (b_G[sample.words] - sample.log_expected)
    drawn = drawn.masked_fill(sample.words == words[:, None], -torch.inf)
    chosen = (low * G_l.index_select(0, words)).sum(1, keepdim=True) + b_G[words, None]
    return (chosen - torch.cat([chosen, drawn], 1).logsumexp(1, keepdim=True)).squeeze(1)


def chosen_log_probs(low: Tensor, G_l: Tensor, b_G: Tensor, words: Tensor, product: torch.dtype, do: Passes) -> Tensor:
    """log softmax(G_l low + b_G) at one word of each row; nodes.

    Args:
        low: nodes × R.
        G_l: K × R.
        b_G: K.
        words: nodes.
        product: the type that products are computed in; the sum over words has that of b_G.
        do: the passes over the logits.
    """
    log_probs: Tensor = _Function.apply(low, G_l, b_G, words, product, do)  # type: ignore[no-untyped-call]
    return log_probs


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, low: Tensor, G_l: Tensor, b_G: Tensor, words: Tensor, product: torch.dtype, do: Passes
    ) -> Tensor:
        low, G_l, b_G = low.to(product), G_l.to(product), b_G.detach()
        logits = linear(low, G_l)
        log_total = do.normaliser(logits, b_G)
        ctx.save_for_backward(low, G_l, b_G, words, logits, log_total)
        ctx.do = do
        return (logits.gather(1, words[:, None]) + b_G[words, None] - log_total).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        low, G_l, b_G, words, logits, log_total = ctx.saved_tensors
        of_log_p = gradients[0][:, None]
        of_x = ctx.do.of_logits(logits, b_G, log_total, of_log_p)
        of_x[torch.arange(len(words), device=words.device), words] += gradients[0].to(of_x.dtype)
        every, kind = of_x.new_ones(1, len(of_x)), b_G.dtype
        of_b = (every @ of_x).squeeze(0)  # several times as fast as sum(0) in bfloat16
        return (of_x @ G_l).to(kind), (of_x.T @ low).to(kind), of_b.to(kind), None, None, None
