"""The element-wise work between the products of the RNN Encoder-Decoder, in functions.

H hidden units, M maxout units, E embedding dimensions.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gathered(embeddings: Tensor, words: Tensor, states: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """[e h] of each node, e of its word and h the state above it, in the type of products; and h."""
    h = states.index_select(0, rows)
    return torch.cat([embeddings.index_select(0, words), h.to(embeddings.dtype)], 1), h


def reset_state(gates: Tensor, b: Tensor, eh: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """The encoder's z and [e r⊙h] of each node, from its products W_z e + U_z h and W_r e + U_r h."""
    z, r = gates.to(h.dtype).add_(b).sigmoid_().chunk(2, 1)
    return z, torch.cat([eh[:, : -h.shape[1]], (r * h).to(eh.dtype)], 1)


def encoder_state(candidate: Tensor, b: Tensor, z: Tensor, h: Tensor) -> Tensor:
    """z h + (1 - z) tanh(W e + U (r ⊙ h) + b)."""
    return torch.lerp(candidate.to(h.dtype).add_(b).tanh_(), h, z)


def terms(Wc: Tensor, b: Tensor, H: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """h'_0 and the terms of the gates, of h~' and of the read-out, from the products of c; see `Terms`."""
    Wc = Wc.to(b.dtype) + b
    h_0, gates, Cc, O_cc = torch.split(Wc, [H, 2 * H, H, Wc.shape[1] - 4 * H], 1)
    return h_0.tanh(), gates.contiguous(), Cc.contiguous(), O_cc.contiguous()


def decoder_gates(gates: Tensor, Cc: Tensor, sources: Tensor) -> Tensor:
    """The decoder's z' and r' of each node; C_z c and C_r c are those of the node's source."""
    return gates.to(Cc.dtype).add_(Cc.index_select(0, sources)).sigmoid_()


def decoder_state(  # noqa: PLR0913, PLR0917, the operands of an equation
    gates: Tensor,
    gates_c: Tensor,
    Uh: Tensor,
    Cc: Tensor,
    We: Tensor,
    b: Tensor,
    sources: Tensor,
    eh: Tensor,
    h: Tensor,
) -> tuple[Tensor, Tensor]:
    """The next h' = z' h' + (1 - z') tanh(W' e + r' ⊙ (U' h' + C c) + b'), where the reset gate acts after the product.

    And [e h'] with it, for the read-out.
    """
    z, r = decoder_gates(gates, gates_c, sources).chunk(2, 1)
    h_tilde = Uh.to(h.dtype).add_(Cc.index_select(0, sources)).mul_(r).add_(We).add_(b).tanh_()
    state = torch.lerp(h_tilde, h, z)
    return torch.cat([eh[:, : -h.shape[1]], state.to(eh.dtype)], 1), state


def maxout(s: Tensor, O_cc: Tensor, sources: Tensor) -> Tensor:
    """The larger of each pair of units; the first ones of all pairs come before the second ones."""
    return torch.maximum(*s.to(O_cc.dtype).add_(O_cc.index_select(0, sources)).chunk(2, 1))


def normaliser(logits: Tensor, b_G: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The largest logit of each state, its word, and the sum of the others' exp(logit - largest); may overwrite logits.

    Near p = 1, log p is the small difference of two large numbers; with the largest taken out of the sum,
    log p = (logit - largest) - log1p(rest) keeps its precision. `numbers` are those of the words, as floats, which is
    faster than argmax.
    """
    x = logits.to(b_G.dtype).add_(b_G)
    largest = x.amax(1, keepdim=True)
    at = torch.where(x == largest, numbers, 0.0).amax(1, keepdim=True).long()  # the last one of equals; 0 for NaN
    rest = x.scatter_(1, at, -torch.inf).sub_(largest).exp_().sum(1)
    return largest.squeeze(1), at.squeeze(1), rest
