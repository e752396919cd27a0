"""Soft alignment (Bahdanau et al. 2015, section 3.1): where in the source the next target word comes from.

    e_ij = v · tanh(W_a s_{i-1} + U_a h_j)      j = 1 … N
    α_ij = exp(e_ij) / Σ_k exp(e_ik)            over this source's positions only
    c_i  = Σ_j α_ij h_j

It has no biases; U_a h_j is the same for every target word and computed once. N words of a source, its ``</s>``
included, H hidden units, A units of alignment.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from moses_rnn.networks.config import unset


class Alignment(nn.Module):
    """The weights of the alignment.

    Args:
        hidden_size: H; annotations are twice as wide.
        alignment_size: A.
    """

    def __init__(self, hidden_size: int, alignment_size: int) -> None:
        super().__init__()
        self.W_a = unset(alignment_size, hidden_size)
        self.U_a = unset(alignment_size, 2 * hidden_size)
        self.v = unset(alignment_size)


class Annotations(NamedTuple):
    """What is read of some sources, padded to the longest; a row each.

    Padding is touched in one place, `look`, where it gets no weight; its numbers are finite and otherwise arbitrary.
    """

    h: Tensor  # h_j = [→h_j ; ←h_j]; sources × N × 2H
    Uh: Tensor  # U_a h_j; sources × N × A
    present: Tensor  # whether a source has a word there; sources × N

    def take(self, rows: Tensor) -> Annotations:
        """The same for chosen rows, repeated at will."""
        return Annotations(*(tensor.index_select(0, rows) for tensor in self))

    def first(self, rows: int) -> Annotations:
        """Those of the first rows."""
        return self if rows == len(self.h) else Annotations(*(tensor[:rows] for tensor in self))


def weigh(Ws: Tensor, v: Tensor, annotations: Annotations) -> Tensor:
    """α of every position; rows × N, zeros where a source has no word.

    Args:
        Ws: W_a s_{i-1}; rows × A.
        v: A.
        annotations: as many rows.
    """
    e = torch.tanh(Ws[:, None, :] + annotations.Uh).to(v.dtype) @ v  # rows × N
    return torch.softmax(e.masked_fill(~annotations.present, -torch.inf), 1)


def look(Ws: Tensor, v: Tensor, annotations: Annotations) -> Tensor:
    """The context c_i; rows × 2H. Arguments as of `weigh`."""
    alpha = weigh(Ws, v, annotations)
    return torch.bmm(alpha[:, None, :].to(annotations.h.dtype), annotations.h).squeeze(1)
