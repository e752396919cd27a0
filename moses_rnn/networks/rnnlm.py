"""The recurrent language model of Mikolov, Karafiát, Burget, Černocký and Khudanpur (Interspeech 2010), section 2.

A state of H units has read the sentence so far; e(w) is a row of the embedding, w_0 = ``<s>``, σ the logistic function:

    s_t = σ(e(w_{t-1}) + U s_{t-1})                         s_0 = 0.1 in every unit
    p(w_t | w_<t) = softmax(G s_t)

There are no biases. Each sentence begins with s_0: its score depends on it alone. The paper's tool continues from one
sentence's state to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, pad

from moses_rnn.networks.batches import Batch, Lengths, row_slices
from moses_rnn.networks.config import Architecture, Config, Size, Unit
from moses_rnn.networks.hardware import EAGER, Kernel
from moses_rnn.networks.network import (
    Drop,
    LanguageNetwork,
    Unread,
    WordPrefixes,
    WordStepper,
    for_scoring,
    keep,
    previous_words,
    unset,
)
from moses_rnn.networks.softmax import Output, chosen_log_probs
from moses_rnn.networks.tries import take_phrases
from moses_rnn.networks.vocabulary import END_ID, Ids

FIRST_STATE = 0.1  # of every unit


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


class Rnnlm(LanguageNetwork):
    """The network; all weights are N(0, 0.1²) at first."""

    deviation = 0.1

    def _build(self, config: RnnlmConfig) -> None:
        K, H = config.target_vocabulary_size, config.hidden_size
        self.embedding = unset(K + 1, H)  # the last one is that of <s>
        self.U, self.G = unset(H, H), unset(K, H)

    def _draw(self, name: str, tensor: Tensor, deviation: float, random: torch.Generator) -> Tensor:
        return deviation * torch.randn(tensor.shape, generator=random)

    @property
    def output(self) -> Output:
        """G, and biases of 0."""
        return self.G, self.G.new_zeros(len(self.G))

    def first_states(self) -> Tensor:
        """s_0, in which nothing is read; 1 × H."""
        return self.U.new_full((1, len(self.U)), FIRST_STATE)

    def word_log_probs(
        self,
        sentences: Batch,
        drop: Drop = keep,  # of e(w) and of the states, but not on their way to the next state
        reach: int = 0,  # how many steps back the error of a word is followed: 1 is the paper, 0 the whole sentence
    ) -> Tensor:
        """log p of every word, the closing ``</s>`` included; one for each of ``sentences.packed()``."""
        e = drop(embedding(previous_words(sentences, self.vocabulary_size), self.embedding))  # nodes × H
        s: Tensor = _States.apply(e, self.U, sentences.active, self.kernel, reach)  # type: ignore[no-untyped-call]
        return chosen_log_probs(drop(s), *self.output, sentences.packed(), self.kernel)


class _States(torch.autograd.Function):
    """All states of packed sentences, with a gradient that goes back as many steps as are wanted.

    Autograd could only cut every path at the same words; here each word's error goes back equally far.
    """

    @staticmethod
    def forward(ctx: Any, e: Tensor, U: Tensor, active: Sequence[int], kernel: Kernel, reach: int) -> Tensor:
        matrix = kernel.rounded(U)
        s = torch.full_like(e[: active[0]], FIRST_STATE)
        states, above = [], []
        for e_t in torch.split(e, list(active)):
            above.append(s[: len(e_t)])
            s = torch.sigmoid(e_t + linear(kernel.rounded(above[-1]), matrix).to(e.dtype))
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

    U is in the type of products; an error is followed `reach` steps back, 0: to the sentence's first.
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


# -- scoring: each distinct prefix of sentences once

# Products always have as many rows, and so has the work between them. What is summed up is filled with zeros to whole
# vectors, for else libraries treat the last rows in another way. So a value does not depend on its company, to the last
# bit, and a model that learns while it reads gives what one that does not gives, as long as its rate is 0.

ROWS = 32  # prefixes computed together; a multiple of what the processor's vectors hold
DEPTH = 8  # of the numbers of units in products, a divisor
WORDS = 1 << 17  # of sentences that are scored together, about

Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class SentenceScores:
    """Scores sentences of ids, by the weights that its copy of a network has at the time."""

    def __init__(self, model: Rnnlm, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.model, _ = for_scoring(model, device, dtype)
        self.model.use_kernel(EAGER)  # what learns while it reads rounds nothing
        self._precision = dtype
        self._device = self.model.G.device

    def log_probs(self, ids: Ids, lengths: Lengths) -> Values:
        """See `WordNetwork`."""
        new = np.flatnonzero(np.diff(np.cumsum(lengths + 1) // WORDS)) + 1  # sentences that begin a further group
        groups = np.split(np.arange(len(lengths)), new)
        return np.concatenate([self._score_group(*take_phrases(ids, lengths, group)) for group in groups])

    @torch.no_grad()
    def next_states(self, words: Tensor, states: Tensor) -> Tensor:
        """What states become that read a word each; n × H."""
        e, U = self.model.embedding[words], self._operand(self.model.U)
        following = torch.empty_like(states)
        for rows in row_slices(len(states), ROWS):
            e_t, s = _filled(e[rows]), _filled(states[rows])
            s = torch.sigmoid(e_t + linear(self._operand(s), U).to(s.dtype))
            following[rows] = s[: len(following[rows])]
        return following

    @torch.no_grad()
    def next_log_probs(self, states: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """log p of every word after some states, ROWS of them at once; the rows, and rows × K."""
        G = self._operand(self.model.G)
        for rows in row_slices(len(states), ROWS):
            logits = linear(self._operand(_filled(states[rows])), G).to(states.dtype)
            yield rows, torch.log_softmax(logits, 1)[: rows.stop - rows.start]

    def _operand(self, matrix: Tensor) -> Tensor:
        """A factor of products over units, in their precision; units that are not there are zeros."""
        return pad(matrix.to(self._precision), (0, -matrix.shape[1] % DEPTH))

    def _score_group(self, ids: Ids, lengths: Lengths) -> Values:
        """Each distinct prefix has one state, and each state is normalised once."""
        K = self.model.vocabulary_size
        words = np.insert(ids.astype(np.int64), np.cumsum(lengths), END_ID)
        begins = np.cumsum(lengths + 1) - lengths - 1  # of sentences among the words
        states = [self.next_states(torch.tensor([K], device=self._device), self.model.first_states())]  # after <s>
        prefixes = np.zeros(len(lengths), np.int64)  # of sentences that have so many words, among the last states
        rows, first = np.arange(len(lengths)), 0
        state_of = np.empty_like(words)
        for t in range(int(lengths.max()) + 1):
            state_of[begins[rows] + t] = first + prefixes
            first += len(states[-1])
            live = lengths[rows] > t
            rows = rows[live]
            distinct, prefixes = np.unique(prefixes[live] * K + words[begins[rows] + t], return_inverse=True)
            above, read = (torch.from_numpy(part).to(self._device) for part in (distinct // K, distinct % K))
            states.append(self.next_states(read, states[-1][above]))
        return self._chosen(torch.cat(states), state_of, words)

    def _chosen(self, states: Tensor, state_of: Places, words: Places) -> Values:
        """log p of words, each after one of the states; as many as words."""
        order = np.argsort(state_of, kind="stable")
        ordered, values = state_of[order], np.empty(len(words))
        for rows, log_p in self.next_log_probs(states):
            here = order[slice(*np.searchsorted(ordered, [rows.start, rows.stop]))]
            places = (torch.from_numpy(part).to(self._device) for part in (state_of[here] - rows.start, words[here]))
            values[here] = log_p[tuple(places)].double().cpu().numpy()
        return values


def _filled(rows: Tensor) -> Tensor:
    """ROWS rows, of which the last may be zeros."""
    if len(rows) == ROWS:
        return rows
    whole = rows.new_zeros(ROWS, rows.shape[1])
    whole[: len(rows)] = rows
    return whole


# -- sampling


class RnnlmStepper(WordStepper):
    """The network, stepped word by word; a state is s_t."""

    _model: Rnnlm

    def _prepare(self) -> None:
        self._U = self._weight(self._model.U)

    def _begin(self) -> Tensor:
        return self._next(self._model.first_states(), torch.full((1,), self.vocabulary_size, device=self.device))

    def _next(self, states: Tensor, words: Tensor) -> Tensor:
        return torch.sigmoid(self._model.embedding[words] + self._times(states, self._U))

    def _read_out(self, terms: Unread, prefixes: WordPrefixes) -> Tensor:
        return prefixes.state


RNNLM = Architecture(
    "rnnlm",
    "RNNLM",
    "RNNLM",
    RnnlmConfig,
    Rnnlm,
    sides=("target",),
    stepper=RnnlmStepper,
    words=SentenceScores,
    format=2,
)
