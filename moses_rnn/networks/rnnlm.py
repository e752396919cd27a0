"""The recurrent language model of Mikolov, Karafiát, Burget, Černocký and Khudanpur (Interspeech 2010), section 2.

A state of H units represents the sentence so far; e(w) is an embedding, w_0 = ``<s>``, σ the logistic function:

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
import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, pad

from moses_rnn.networks.batches import Batch, Ints, Lengths, Values, row_slices
from moses_rnn.networks.compute import EAGER, Kernel
from moses_rnn.networks.config import Architecture, Config, Size, Unit
from moses_rnn.networks.network import (
    Drop,
    LanguageNetwork,
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
    """Sizes; the default is the paper's 250/5, except its vocabulary."""

    target_vocabulary_size: Size  # with <unk> and </s>
    hidden_size: Size = 250
    unit: Unit = "sentences"
    rare: None = None  # rare words are <unk>

    @property
    def width(self) -> int:
        """Units of the hidden layer."""
        return self.hidden_size

    @property
    def description(self) -> str:
        """Description for logs."""
        return f"RNNLM, H {self.hidden_size}"


class Rnnlm(LanguageNetwork):
    """The network; all weights are initially N(0, 0.1²)."""

    deviation = 0.1

    def _build(self, config: RnnlmConfig) -> None:
        K, H = config.target_vocabulary_size, config.hidden_size
        self.embedding = unset(K + 1, H)  # the last row is <s>
        self.U, self.G = unset(H, H), unset(K, H)

    def _draw(self, name: str, tensor: Tensor, deviation: float, random: torch.Generator) -> Tensor:
        return deviation * torch.randn(tensor.shape, generator=random)

    @property
    def output(self) -> Output:
        """G, and biases of 0."""
        return self.G, self.G.new_zeros(len(self.G))

    def first_states(self) -> Tensor:
        """Return s_0, the state before the first word; 1 × H."""
        return self.U.new_full((1, len(self.U)), FIRST_STATE)

    def word_log_probs(
        self,
        sentences: Batch,
        drop: Drop = keep,  # applies to e(w) and to states, except where a state feeds the next one
        reach: int = 0,  # steps back that a word's error is propagated: 1 as in the paper, 0 the whole sentence
    ) -> Tensor:
        """Return log p of every word, ``</s>`` included; one for each of ``sentences.packed()``."""
        e = drop(embedding(previous_words(sentences, self.vocabulary_size), self.embedding))  # nodes × H
        s: Tensor = _States.apply(e, self.U, sentences.active, self.kernel, reach)  # type: ignore[no-untyped-call]
        return chosen_log_probs(drop(s), *self.output, sentences.packed(), self.kernel)


class _States(torch.autograd.Function):
    """All states of packed sentences, with a gradient that goes back a given number of steps.

    Autograd could only cut all paths at the same words; here, each word's error goes back equally far.
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
    """Return the gradients of the sums in σ, given those of packed states by their own words' errors; nodes × H.

    U is in the type of products; an error goes back `reach` steps, or to the first word if 0.
    """
    kept = min(max(reach - 1, 0), len(active)) if reach else 1  # errors by age; without a limit, all together
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


# -- scoring: computes each distinct prefix of sentences once

# All products and the operations between them have the same number of rows. Summands are padded with zeros to whole
# vectors, because libraries treat the last rows differently. So a value does not depend on its batch, to the last bit,
# and a model that learns while it reads gives the same values as one that does not if its rate is 0.

ROWS = 32  # prefixes computed together; a multiple of the processor's vector width
DEPTH = 8  # units in products are padded to a multiple of this
WORDS = 1 << 17  # approximate number of words scored together


class SentenceScores:
    """Scores sentences of ids, with the current weights of its copy of a network."""

    def __init__(self, model: Rnnlm, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.model, _ = for_scoring(model, device, dtype)
        self.model.use_kernel(EAGER)  # learning while reading does not round
        self._precision = dtype
        self._device = self.model.G.device

    def log_probs(self, ids: Ids, lengths: Lengths) -> Values:
        """See `WordNetwork`."""
        new = np.flatnonzero(np.diff(np.cumsum(lengths + 1) // WORDS)) + 1  # sentences that begin a further group
        groups = np.split(np.arange(len(lengths)), new)
        return np.concatenate([self._score_group(*take_phrases(ids, lengths, group)) for group in groups])

    @torch.no_grad()
    def next_states(self, words: Tensor, states: Tensor) -> Tensor:
        """Return the states after one more word each; n × H."""
        e, U = self.model.embedding[words], self._operand(self.model.U)
        following = torch.empty_like(states)
        for rows in row_slices(len(states), ROWS):
            e_t, s = _filled(e[rows]), _filled(states[rows])
            s = torch.sigmoid(e_t + linear(self._operand(s), U).to(s.dtype))
            following[rows] = s[: len(following[rows])]
        return following

    @torch.no_grad()
    def next_log_probs(self, states: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Yield log p of every word after each state, for ROWS states at a time: the rows, and rows × K."""
        G = self._operand(self.model.G)
        for rows in row_slices(len(states), ROWS):
            logits = linear(self._operand(_filled(states[rows])), G).to(states.dtype)
            yield rows, torch.log_softmax(logits, 1)[: rows.stop - rows.start]

    def _operand(self, matrix: Tensor) -> Tensor:
        """Return an operand in the precision of products, padded with zero units to a multiple of DEPTH."""
        return pad(matrix.to(self._precision), (0, -matrix.shape[1] % DEPTH))

    def _score_group(self, ids: Ids, lengths: Lengths) -> Values:
        """Score sentences: compute one state per distinct prefix, and normalise each state once."""
        K = self.model.vocabulary_size
        words = np.insert(ids.astype(np.int64), np.cumsum(lengths), END_ID)
        begins = np.cumsum(lengths + 1) - lengths - 1  # position of each sentence in `words`
        states = [self.next_states(torch.tensor([K], device=self._device), self.model.first_states())]  # after <s>
        prefixes = np.zeros(len(lengths), np.int64)  # index in the last states, for sentences long enough
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

    def _chosen(self, states: Tensor, state_of: Ints, words: Ints) -> Values:
        """Return log p of words, each after one of the states; words."""
        order = np.argsort(state_of, kind="stable")
        ordered, values = state_of[order], np.empty(len(words))
        for rows, log_p in self.next_log_probs(states):
            here = order[slice(*np.searchsorted(ordered, [rows.start, rows.stop]))]
            places = (torch.from_numpy(part).to(self._device) for part in (state_of[here] - rows.start, words[here]))
            values[here] = log_p[tuple(places)].double().cpu().numpy()
        return values


def _filled(rows: Tensor) -> Tensor:
    """Pad rows with zeros to ROWS."""
    return pad(rows, (0, 0, 0, ROWS - len(rows)))


# -- sampling


class RnnlmStepper(WordStepper):
    """Steps the network word by word; a state is s_t."""

    _model: Rnnlm

    def _prepare(self) -> None:
        self._U = self._weight(self._model.U)

    def _begin(self) -> Tensor:
        return self._next(self._model.first_states(), torch.full((1,), self.vocabulary_size, device=self.device))

    def _next(self, states: Tensor, words: Tensor) -> Tensor:
        return torch.sigmoid(self._model.embedding[words] + self._matmul(states, self._U))

    def _read_out(self, encoded: tuple[Tensor], prefixes: WordPrefixes) -> Tensor:
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
