"""Recurrent layers that use autograd, mainly LSTMs (Hochreiter and Schmidhuber 1997; Graves 2013).

Packed rows are ordered by step: step 1 of all phrases, then step 2 of the phrases that have one, …; phrases are sorted,
longest first. H hidden units, A inputs, S sums inside a step: one, or four in an LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from moses_rnn.networks.batches import join_rows, take_rows
from moses_rnn.networks.compute import EAGER, Kernel
from moses_rnn.networks.network import Drop, keep, unset

State = tuple[Tensor, ...]  # carried from step to step: h_t, and the memory m_t of an LSTM; rows × H each


class Cell(NamedTuple):
    """The computation of a layer's step."""

    # takes the part of inputs and b in the sums (rows × SH), U h_{t-1} (rows × SH), further weights, and the state
    step: Callable[[Tensor, Tensor, Tensor | None, State], State]
    sums: tuple[str, ...] = ("",)  # endings of the tensors' names, for each sum
    carried: int = 1  # tensors of a state
    fixed: tuple[str, ...] = ()  # further tensors of size H that are stored but not learned
    learned: tuple[str, ...] = ()  # further tensors of size H that are learned

    def begin(self, h_0: Tensor) -> State:
        """Return the state before the first step: h_0, and an empty memory."""
        return (h_0, *(torch.zeros_like(h_0) for _ in range(self.carried - 1)))


def lstm_step(x: Tensor, Uh: Tensor, p: Tensor | None, state: State) -> State:
    """Take one step of an LSTM (Graves 2013, equations 7 to 11); `p` are the diagonals p_i, p_f and p_o, if any.

    i_t  = σ(W_i a_t + U_i h_{t-1} + p_i ⊙ m_{t-1} + b_i)   what is written
    f_t  = σ(W_f a_t + U_f h_{t-1} + p_f ⊙ m_{t-1} + b_f)   what is kept
    m~_t = tanh(W_m a_t + U_m h_{t-1} + b_m)
    m_t  = f_t ⊙ m_{t-1} + i_t ⊙ m~_t
    o_t  = σ(W_o a_t + U_o h_{t-1} + p_o ⊙ m_t + b_o)       what is shown; sees the new memory
    h_t  = o_t ⊙ tanh(m_t)
    """
    _, m = state
    in_i, in_f, in_m, in_o = (x + Uh).chunk(4, 1)
    if p is not None:
        in_i, in_f = in_i + p[0] * m, in_f + p[1] * m
    m_t = torch.sigmoid(in_f) * m + torch.sigmoid(in_i) * torch.tanh(in_m)
    o = torch.sigmoid(in_o if p is None else in_o + p[2] * m_t)
    return o * torch.tanh(m_t), m_t


LSTM = Cell(lstm_step, ("_i", "_f", "_m", "_o"), carried=2)
LSTM_PEEPHOLE = LSTM._replace(learned=("p_i", "p_f", "p_o"))


class Layer(nn.Module):
    """The weights of a cell."""

    cell: Cell
    kernel: Kernel = EAGER

    def _add_cell(self, H: int, A: int) -> None:
        for name, shape in (("W", (H, A)), ("U", (H, H)), ("b", (H,))):
            self._add_sums(name, *shape)
        for name in self.cell.learned:
            self.register_parameter(name, unset(H))
        for name in self.cell.fixed:
            self.register_buffer(name, torch.empty(H))

    def _add_sums(self, name: str, *shape: int) -> None:
        for ending in self.cell.sums:
            self.register_parameter(name + ending, unset(*shape))

    def stacked(self, name: str) -> Tensor:
        """Stack the weights of all sums, such as W, vertically."""
        return torch.cat([self.get_parameter(name + ending) for ending in self.cell.sums])

    def own(self) -> Tensor | None:
        """Return a step's further weights: a fixed tensor (H) or peepholes (3 × H)."""
        if self.cell.fixed:
            return self.get_buffer(*self.cell.fixed)
        return torch.stack([self.get_parameter(name) for name in self.cell.learned]) if self.cell.learned else None

    def inputs(self, a: Tensor) -> Tensor:
        """Return the part of inputs and b in the sums; nodes × SH."""
        return self.kernel.matmul(a, self.stacked("W")) + self.stacked("b")

    def run(self, x: Tensor, c: Tensor | None, state: State, active: Sequence[int]) -> tuple[Tensor, State]:
        """Return all h_t, packed (nodes × H), and the last state of each phrase, given the initial states.

        `x` is added inside the sums (nodes × SH), and so is `c`, if given, at every step of a phrase (phrases × SH);
        `active` is the number of phrases at each step. The native core may compute the products.
        """
        U, own = self.kernel.prepared(self.stacked("U")), self.own()
        outputs, ended = [x.new_empty(0, state[0].shape[1])], []
        for x_t, going_on in zip(torch.split(x, list(active)), [*active[1:], 0], strict=False):
            above = take_rows(state, slice(len(x_t)))
            Uh = self.kernel.matmul(above[0], U)
            state = self.cell.step(x_t if c is None else x_t + c[: len(x_t)], Uh, own, above)
            outputs.append(state[0])
            ended.append(take_rows(state, slice(going_on, None)))
        return torch.cat(outputs), join_rows(ended[::-1]) if ended else state  # phrases that end last come first


class LstmLayer(Layer):
    """An LSTM layer of A inputs and H units."""

    def __init__(self, A: int, H: int, *, peepholes: bool) -> None:
        super().__init__()
        self.cell = LSTM_PEEPHOLE if peepholes else LSTM
        self._add_cell(H, A)


class LstmStack(nn.Module):
    """LSTM layers on an embedding of K words: the first reads e(x_t), each other one the h_t below it."""

    kernel: Kernel = EAGER

    def __init__(self, K: int, E: int, H: int, layers: int, *, peepholes: bool) -> None:
        super().__init__()
        self.embedding = unset(K, E)
        self.hidden_size = H
        self.layers = [LstmLayer(H if i else E, H, peepholes=peepholes) for i in range(layers)]  # from bottom to top
        for i, layer in enumerate(self.layers, 1):  # a ModuleList would name the tensors differently
            self.add_module(f"layer{i}", layer)

    def states(
        self, words: Tensor, start: Sequence[State], active: Sequence[int], drop: Drop = keep
    ) -> tuple[Tensor, tuple[State, ...]]:
        """Return all h_t of the top layer, packed (nodes × H), and each layer's last state of each phrase.

        `words` are packed, `start` is each layer's initial state; `drop` applies to each layer's inputs.
        """
        a, last = embedding(words, self.embedding), []
        for layer, before in zip(self.layers, start, strict=True):
            a, state = layer.run(layer.inputs(drop(a)), None, before, active)
            last.append(state)
        return a, tuple(last)

    def nothing(self, rows: int) -> tuple[State, ...]:
        """Return h_0 = m_0 = 0 of each layer."""
        zeros = self.embedding.new_zeros(rows, self.hidden_size)
        return ((zeros, zeros),) * len(self.layers)


class SteppedLayer:
    """A layer prepared to step over rows of a trie's level or a beam, with one product per step."""

    def __init__(self, layer: Layer) -> None:
        self._cell, self._own = layer.cell, layer.own()
        self._WU = layer.kernel.rounded(torch.cat([layer.stacked("W"), layer.stacked("U")], 1))  # SH × (A + H)

    def step(self, a: Tensor, state: State, more: Tensor) -> State:
        """Return the next state of each row; `more` is the part of c and b in the sums (rows × SH, or SH)."""
        h = state[0]
        ah = torch.cat([a.to(self._WU.dtype), h.to(self._WU.dtype)], 1)
        return self._cell.step(more, linear(ah, self._WU).to(h.dtype), self._own, state)
