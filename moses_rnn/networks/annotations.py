"""Words in their context: a gated layer in each direction over a source (Bahdanau et al. 2015, section 3.2).

E embedding dimensions, H hidden units, N words of a source, its ``</s>`` included.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from moses_rnn.networks.batches import Batch
from moses_rnn.networks.config import GatedStep, unset
from moses_rnn.networks.dropout import Drop, keep
from moses_rnn.networks.hardware import EAGER, Kernel
from moses_rnn.networks.native_learning import times
from moses_rnn.networks.recurrence import Recurrence


class Gru(GatedStep):
    """A gated recurrent layer, as of an RNN Encoder-Decoder."""

    def __init__(self, hidden_size: int, embedding_size: int) -> None:
        super().__init__()
        self._add_cell(hidden_size, embedding_size)

    def inputs(self, e: Tensor, product_dtype: torch.dtype, kernel: Kernel) -> Tensor:
        """What a word adds inside z, r and h~, in this order, with their biases; nodes × 3H."""
        We = times(e, torch.cat([self.W_z, self.W_r, self.W]), product_dtype, kernel)
        return We + torch.cat([self.b_z, self.b_r, self.b])


class Annotator(nn.Module):
    """Source words to annotations, by one layer in each direction over the same embeddings (section 3.2).

    →h_j = GRU→(e(x_j), →h_{j-1})      →h_0 = 0          z_j, r_j, h~_j as of an RNN Encoder-Decoder's encoder
    ←h_j = GRU←(e(x_j), ←h_{j+1})      ←h_{N+1} = 0
    h_j  = [→h_j ; ←h_j]

    Args:
        words: of the source, with ``<unk>`` and ``</s>``.
        embedding_size: E.
        hidden_size: H.
    """

    def __init__(self, words: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.embedding = unset(words, embedding_size)
        sizes = hidden_size, embedding_size
        # "forward" is the name in checkpoints, and a method of every module: there is no attribute of that name.
        self._modules |= {"forward": Gru(*sizes), "backward": Gru(*sizes)}
        self.kernel = EAGER

    def annotations(self, sources: Batch, product_dtype: torch.dtype, drop: Drop = keep) -> Tensor:
        """h_j of every word of each source; S × longest N × 2H, where a source is shorter its last words' again."""
        e = drop(embedding(sources.packed(), self.embedding))  # nodes × E
        mirrored = sources.mirrored()
        forward, backward = self.layers()
        to_right = self._states(forward, e, sources, product_dtype)
        to_left = self._states(backward, e[mirrored], sources, product_dtype)
        h = torch.cat([to_right, to_left[mirrored]], 1)  # nodes × 2H
        places = sources.places()
        annotations: Tensor = h.index_select(0, places.flatten()).view(*places.shape, h.shape[1])
        return annotations

    def layers(self) -> tuple[Gru, Gru]:
        """Forward and backward."""
        forward, backward = self._modules["forward"], self._modules["backward"]
        assert isinstance(forward, Gru)
        assert isinstance(backward, Gru)
        return forward, backward

    def _states(self, layer: Gru, e: Tensor, sources: Batch, product_dtype: torch.dtype) -> Tensor:
        """All states of a direction, packed in the order in which it reads; nodes × H."""
        x = layer.inputs(e, product_dtype, self.kernel)
        rows, H = sources.active[0], layer.U.shape[0]
        recurrence = Recurrence(layer.U_z, layer.U_r, layer.U, False, product_dtype, self.kernel)
        return recurrence.states(x, x.new_zeros(1, 1).expand(rows, 3 * H), x.new_zeros(rows, H), sources.active)
