"""Long short-term memory over packed phrases, layer upon layer (Hochreiter and Schmidhuber 1997; Graves 2013).

Packed rows come step by step: those of step 1 for all phrases, of step 2 for the phrases that have one, …; phrases are
sorted, longest first. H hidden units, A inputs of a layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from moses_rnn.networks.hardware import EAGER, Kernel
from moses_rnn.networks.native_learning import NativeKernel, times
from moses_rnn.networks.network import Drop, keep

SUMS = ("i", "f", "m", "o")  # input gate, forget gate, new memory, output gate
PEEPHOLES = ("i", "f", "o")


def lstm_step(Wa: Tensor, Uh: Tensor, p: Tensor | None, m: Tensor) -> tuple[Tensor, Tensor]:
    """One step: h_t and m_t; rows × H each.

    Args:
        Wa: what the inputs and b add inside the gates and the new memory, in the order of `SUMS`; rows × 4H, or 4H.
        Uh: what h_{t-1} adds there; rows × 4H.
        p: the diagonals of the peepholes, in the order of `PEEPHOLES`; 3 × H.
        m: m_{t-1}; rows × H.
    """
    in_i, in_f, in_m, in_o = (Wa + Uh).chunk(4, 1)
    if p is not None:
        in_i, in_f = in_i + p[0] * m, in_f + p[1] * m
    m_t = torch.sigmoid(in_f) * m + torch.sigmoid(in_i) * torch.tanh(in_m)
    o = torch.sigmoid(in_o if p is None else in_o + p[2] * m_t)
    return o * torch.tanh(m_t), m_t


class State(NamedTuple):
    """What a layer carries from step to step; a row each."""

    h: Tensor  # H
    m: Tensor  # the memory; H


class Lstm(nn.Module):
    """A layer with inputs a_t, hidden states h_t and memories m_t (Graves 2013, equations 7 to 11).

    i_t  = σ(W_i a_t + U_i h_{t-1} + p_i ⊙ m_{t-1} + b_i)   what is written
    f_t  = σ(W_f a_t + U_f h_{t-1} + p_f ⊙ m_{t-1} + b_f)   what is kept
    m~_t = tanh(W_m a_t + U_m h_{t-1} + b_m)
    m_t  = f_t ⊙ m_{t-1} + i_t ⊙ m~_t
    o_t  = σ(W_o a_t + U_o h_{t-1} + p_o ⊙ m_t + b_o)       what is shown; sees the new memory
    h_t  = o_t ⊙ tanh(m_t)

    Args:
        inputs: A.
        hidden_size: H.
        peepholes: whether there are p_i, p_f and p_o.
    """

    def __init__(self, inputs: int, hidden_size: int, *, peepholes: bool) -> None:
        super().__init__()
        self.peepholes = peepholes
        for name, shape in (("W", (hidden_size, inputs)), ("U", (hidden_size, hidden_size)), ("b", (hidden_size,))):
            self._add(name, SUMS, *shape)
        self._add("p", PEEPHOLES if peepholes else (), hidden_size)

    def _add(self, name: str, gates: Sequence[str], *shape: int) -> None:
        for gate in gates:
            self.register_parameter(f"{name}_{gate}", nn.Parameter(torch.empty(*shape)))

    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """W (4H × A), U (4H × H), b (4H) and p (3 × H), those of the gates above each other in the order of `SUMS`."""
        W, U, b = (torch.cat([self.get_parameter(f"{name}_{gate}") for gate in SUMS]) for name in "WUb")
        p = torch.stack([self.get_parameter(f"p_{gate}") for gate in PEEPHOLES]) if self.peepholes else None
        return W, U, b, p

    def states(
        self, a: Tensor, start: State, active: Sequence[int], product_dtype: torch.dtype, kernel: Kernel
    ) -> tuple[Tensor, State]:
        """All h_t, packed (nodes × H), and the last state of each phrase.

        Args:
            a: inputs, packed; nodes × A.
            start: h_0 and m_0 of each phrase.
            active: how many phrases have a step; descending.
            product_dtype: the type that matrix products are computed in.
            kernel: may have the native core do the products; the work between them is autograd's, which is no faster
                when it is compiled.
        """
        W, U, b, p = self.weights()
        U = U if isinstance(kernel, NativeKernel) else U.to(product_dtype)
        Wa = times(a, W, product_dtype, kernel) + b
        state, outputs, ended = start, [], []
        for Wa_t, going_on in zip(torch.split(Wa, list(active)), [*active[1:], 0], strict=True):
            Uh = times(state.h, U, product_dtype, kernel)
            h, m = lstm_step(Wa_t, Uh, p, state.m)
            outputs.append(h)
            ended.append(State(h[going_on:], m[going_on:]))
            state = State(h[:going_on], m[:going_on])
        # the phrases that end last come first
        last = State(*(torch.cat(parts) for parts in zip(*reversed(ended), strict=True)))
        return torch.cat(outputs), last


class LstmStack(nn.Module):
    """Layers upon an embedding: the first reads e(x_t), each further one the h_t below it.

    Args:
        words: K.
        embedding_size: E.
        hidden_size: H.
        layers: how many.
        peepholes: whether the layers have them.
    """

    kernel: Kernel = EAGER

    def __init__(self, words: int, embedding_size: int, hidden_size: int, layers: int, *, peepholes: bool) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(words, embedding_size))
        self.hidden_size, self.count = hidden_size, layers
        for i in range(layers):
            self.add_module(
                f"layer{i + 1}", Lstm(hidden_size if i else embedding_size, hidden_size, peepholes=peepholes)
            )

    @property
    def layers(self) -> Iterator[Lstm]:
        """From the lowest to the highest."""
        for i in range(self.count):
            layer = self.get_submodule(f"layer{i + 1}")
            assert isinstance(layer, Lstm)
            yield layer

    def states(
        self,
        words: Tensor,
        start: Sequence[State],
        active: Sequence[int],
        product_dtype: torch.dtype,
        drop: Drop = keep,
    ) -> tuple[Tensor, list[State]]:
        """All h_t of the highest layer, packed (nodes × H), and the last state of each phrase in each layer.

        Args:
            words: ids, packed; nodes.
            start: of each layer.
            active: how many phrases have a step; descending.
            product_dtype: the type that matrix products are computed in.
            drop: leaves units out of what each layer reads, for training.
        """
        a, last = nn.functional.embedding(words, self.embedding), []
        for layer, before in zip(self.layers, start, strict=True):
            a, state = layer.states(drop(a), before, active, product_dtype, self.kernel)
            last.append(state)
        return a, last

    def nothing(self, rows: int) -> list[State]:
        """h_0 = m_0 = 0 of each layer."""
        zeros = self.embedding.new_zeros(rows, self.hidden_size)
        return [State(zeros, zeros)] * self.count
