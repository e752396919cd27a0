"""The recurrent language model of Mikolov, Karafiát, Burget, Černocký and Khudanpur (Interspeech 2010), section 2.

A state of H units has read the sentence so far; e(w) is a row of the embedding, w_0 = ``<s>``, σ the logistic function:

    s_t = σ(e(w_{t-1}) + U s_{t-1})                         s_0 = 0.1 in every unit
    p(w_t | w_<t) = softmax(G s_t)

There are no biases. Each sentence begins with s_0: its score depends on it alone. The paper's tool goes on from one
sentence's state to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from moses_rnn.models.batches import Batch
from moses_rnn.models.config import Config, Size, Unit
from moses_rnn.models.dropout import Drop, keep
from moses_rnn.models.hardware import EAGER
from moses_rnn.models.initial_weights import unset
from moses_rnn.models.softmax import chosen_log_probs

FIRST_STATE = 0.1  # of every unit
INITIAL_DEVIATION = 0.1


@dataclass(frozen=True)
class RnnlmConfig(Config):
    """Sizes; the default is the paper's 250/5, but for its vocabulary."""

    target_vocabulary_size: Size  # with <unk> and </s>
    hidden_size: Size = 250
    unit: Unit = "sentences"
    rare: None = None  # rare words are <unk>

    @property
    def description(self) -> str:
        """For a log."""
        return f"RNNLM, H {self.hidden_size}"


class Rnnlm(nn.Module):
    """The network; `state_dict` has the tensor names of the checkpoint format.

    Ids are the vocabulary's; what stands before a sentence, ``<s>``, has the id K, which is never predicted.

    Args:
        config: sizes.
        seed: of the initial weights; equal seeds give equal weights. None leaves them unset.
    """

    def __init__(self, config: RnnlmConfig, *, seed: int | None) -> None:
        super().__init__()
        self.config = config
        K, H = config.target_vocabulary_size, config.hidden_size
        self.embedding = unset(K + 1, H)  # the last one is that of <s>
        self.U, self.G = unset(H, H), unset(K, H)
        if seed is not None:
            self.initialise(seed)

    @torch.no_grad()
    def initialise(self, seed: int, deviation: float = INITIAL_DEVIATION) -> None:
        """Draw all weights from N(0, `deviation`²)."""
        random = torch.Generator().manual_seed(seed)
        for tensor in self.parameters():
            tensor.copy_(deviation * torch.randn(tensor.shape, generator=random))

    @property
    def words(self) -> int:
        """K, how many words can be predicted, ``<unk>`` and ``</s>`` among them."""
        return len(self.G)

    def word_log_probs(
        self, sentences: Batch, product_dtype: torch.dtype | None = None, drop: Drop = keep, reach: int = 0
    ) -> Tensor:
        """log p of every word, the closing ``</s>`` included; one for each of ``sentences.packed()``.

        Args:
            sentences: at least one.
            product_dtype: the type that matrix products are computed in; by default that of the weights.
            drop: leaves units of e(w) and of the states out, for training, but not on their way to the next state.
            reach: how many steps back the error of a word is followed: 1 is the paper, 0 the whole sentence.
        """
        dtype = product_dtype or self.U.dtype
        begins = torch.full_like(sentences.ids[:, 0], self.words)
        before = torch.cat([begins, *(sentences.ids[:rows, t] for t, rows in enumerate(sentences.active[1:]))])
        e = drop(embedding(before, self.embedding))  # nodes × H
        how = sentences.active, dtype, reach
        s: Tensor = _States.apply(e, self.U, *how)  # type: ignore[no-untyped-call]
        return chosen_log_probs(drop(s), self.G, s.new_zeros(self.words), sentences.packed(), dtype, EAGER)


class _States(torch.autograd.Function):
    """All states of packed sentences, with a gradient that goes back as many steps as are wanted.

    Autograd could only cut every path at the same words; here each word's error goes back equally far.
    """

    @staticmethod
    def forward(
        ctx: Any, e: Tensor, U: Tensor, active: Sequence[int], product_dtype: torch.dtype, reach: int
    ) -> Tensor:
        matrix = U.to(product_dtype)
        s = torch.full_like(e[: active[0]], FIRST_STATE)
        states, above = [], []
        for e_t in torch.split(e, list(active)):
            above.append(s[: len(e_t)])
            s = torch.sigmoid(e_t + linear(above[-1].to(product_dtype), matrix).to(e.dtype))
            states.append(s)
        every = torch.cat(states)
        ctx.save_for_backward(every, torch.cat(above), matrix)
        ctx.active, ctx.reach = active, reach
        return every

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        states, above, U = ctx.saved_tensors
        grad_e = grad_sums(gradients[0], states, U, ctx.active, ctx.reach)
        grad_U = (grad_e.to(U.dtype).T @ above.to(U.dtype)).to(grad_e.dtype)
        return grad_e, grad_U, None, None, None


def grad_sums(grad_states: Tensor, states: Tensor, U: Tensor, active: Sequence[int], reach: int) -> Tensor:
    """From the gradients of packed states, each by its own word's error, to those of the sums inside σ; nodes × H.

    Args:
        grad_states: nodes × H.
        states: nodes × H.
        U: H × H, in the type of products.
        active: how many sentences have a step; descending.
        reach: how many steps back an error is followed; 0: to the sentence's first.
    """
    kept = max(reach - 1, 0) if reach else 1  # errors by their age; without a limit, all of them together
    carried = grad_states.new_zeros(kept, active[0], grad_states.shape[1])
    sums: list[Tensor] = []  # last step first
    last = len(states)
    for rows in reversed(active):
        s, own = states[last - rows : last], grad_states[last - rows : last]
        slopes = s * (1 - s)
        errors = torch.cat([own[None], carried[:, :rows]]) if reach else own[None] + carried[:, :rows]
        errors = errors * slopes
        sums.append(errors.sum(0))
        if kept:
            carried[:, :rows] = (errors[:kept].to(U.dtype) @ U).to(s.dtype)
        last -= rows
    return torch.cat(sums[::-1])
