"""The RNN Encoder-Decoder arranged for scoring and search: the same equations as in `models`, over tries of phrases.

Each distinct source prefix is stepped once and each source's terms in c are computed once. Products that share an
operand are one product; products may be bfloat16, states, gates and normalisation are float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.inference import kernel as kernels
from moses_rnn.inference.native import NativeEncDec
from moses_rnn.inference.normalising import OutputLayer
from moses_rnn.inference.steps import Columns, NodeBlock, Stepper
from moses_rnn.inference.tries import Trie, build_trie, copy_levels
from moses_rnn.models.batches import Lengths
from moses_rnn.models.encdec import EncDec, EncDecConfig, Terms
from moses_rnn.models.folders import FIRST_NETWORK, Architecture
from moses_rnn.models.vocabulary import Ids


class EncDecPrefixes(NamedTuple):
    """Beginnings of target phrases, with what the decoder needs to predict the word after each; a row each."""

    sources: Tensor  # row of each one's source among the terms
    eh: Tensor  # e(y_{t-1}), zeros before the first word, beside h'_t, in the type of products; E + H
    h: Tensor  # h'_t; H

    def take(self, rows: slice) -> EncDecPrefixes:
        """Some of them."""
        return EncDecPrefixes(*(tensor[rows] for tensor in self))


class EncDecStepper(Stepper[Terms, EncDecPrefixes]):
    """The RNN Encoder-Decoder, stepped over packed rows.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
    """

    def __init__(
        self,
        model: EncDec,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.device = torch.device(device)
        self.config = model.config
        self.words = model.config.target_vocabulary_size
        self._product_dtype = dtype
        self._dtype = torch.float64 if dtype == torch.float64 else torch.float32
        self._prepare_encoder(model)
        self._prepare_decoder(model)

    def _prepare_encoder(self, model: EncDec) -> None:
        encoder = model.encoder
        self._x_e = self._weight(encoder.embedding)
        self._x_gates = self._weight(_beside([encoder.W_z, encoder.U_z], [encoder.W_r, encoder.U_r]))
        self._x_gates_b = self._bias(torch.cat([encoder.b_z, encoder.b_r]))
        self._x_candidate = self._weight(_beside([encoder.W, encoder.U]))
        self._x_candidate_b = self._bias(encoder.b)
        self._summary = (self._weight(encoder.V), self._bias(encoder.b_V)) if encoder.has_summary else None

    def _prepare_decoder(self, model: EncDec) -> None:
        decoder = model.decoder
        # maxout takes the larger of the units (0, 1), (2, 3), …: with the even ones first, of two halves
        units = torch.arange(decoder.b_O.shape[0], device=decoder.b_O.device).view(-1, 2).T.flatten()
        self._terms_W = self._weight(torch.cat([decoder.V, decoder.C_z, decoder.C_r, decoder.C, decoder.O_c[units]]))
        no_b = torch.zeros_like(decoder.b)
        self._terms_b = self._bias(torch.cat([decoder.b_V, decoder.b_z, decoder.b_r, no_b, decoder.b_O[units]]))
        self._y_e = self._weight(decoder.embedding)
        self._y_gates = self._weight(_beside([decoder.W_z, decoder.U_z], [decoder.W_r, decoder.U_r]))
        self._W, self._U, self._b = self._weight(decoder.W), self._weight(decoder.U), self._bias(decoder.b)
        self._O = self._weight(_beside([decoder.O_y, decoder.O_h])[units])
        self._G_r = self._bias(decoder.G_r)
        G_l, b_G = decoder.G_l.to(self.device), decoder.b_G.to(self.device)
        self._output = OutputLayer(G_l, b_G, self._product_dtype, self._dtype)

    def _weight(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self.device, self._product_dtype).contiguous()

    def _bias(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self.device, self._dtype).contiguous()

    def _times(self, rows: Tensor, matrix: Tensor) -> Tensor:
        """A product, given back in the type of states."""
        return linear(rows.to(self._product_dtype), matrix).to(self._dtype)

    def read(self, ids: Ids, lengths: Lengths) -> tuple[Terms, npt.NDArray[np.int64]]:
        """See `Stepper`; each distinct prefix of the sources is stepped once."""
        sources = build_trie(ids, lengths)
        return self.encode(sources), sources.leaf_of

    @torch.inference_mode()
    def encode(self, sources: Trie) -> Terms:
        """The terms of every distinct source, in the order of the trie's leaves."""
        h = torch.zeros(sources.roots, self.config.hidden_size, dtype=self._dtype, device=self.device)
        last: list[Tensor] = []
        for words, parents, alive, leaves in copy_levels(sources.levels, self.device):
            h = self._encoder_step(words, h, parents)
            last.append(h.index_select(0, leaves))
            h = h.index_select(0, alive)
        return self._terms(torch.cat(last))

    def _encoder_step(self, words: Tensor, states: Tensor, above: Tensor) -> Tensor:
        """One step of the encoder for each node, from its word and the row of the state above it."""
        eh, h = kernels.gathered(self._x_e, words, states, above)
        z, erh = kernels.reset_state(linear(eh, self._x_gates), self._x_gates_b, eh, h)
        return kernels.encoder_state(linear(erh, self._x_candidate), self._x_candidate_b, z, h)

    def _terms(self, h_N: Tensor) -> Terms:
        c = h_N if self._summary is None else self._times(h_N, self._summary[0]).add_(self._summary[1]).tanh_()
        Wc = linear(c.to(self._product_dtype), self._terms_W)
        return Terms(*kernels.terms(Wc, self._terms_b, self.config.hidden_size))

    @torch.inference_mode()
    def start(self, terms: Terms) -> EncDecPrefixes:
        """The empty prefix of each source: y_1 is predicted from h'_0, or after a step with e(y_0) = 0."""
        sources = torch.arange(len(terms.h_0), device=self.device)
        e = torch.zeros(len(sources), self.config.embedding_size, dtype=self._product_dtype, device=self.device)
        eh = torch.cat([e, terms.h_0.to(self._product_dtype)], 1)
        if self.config.first_step == "zero-embedding":
            return EncDecPrefixes(sources, *self._decoder_step(eh, terms.h_0, sources, terms))
        return EncDecPrefixes(sources, eh, terms.h_0)

    @torch.inference_mode()
    def step(self, terms: Terms, prefixes: EncDecPrefixes, rows: Tensor, words: Tensor) -> EncDecPrefixes:
        """Chosen rows of the prefixes, each with one word more; `rows` and `words` are as many."""
        sources = prefixes.sources[rows]
        eh, h = kernels.gathered(self._y_e, words, prefixes.h, rows)
        return EncDecPrefixes(sources, *self._decoder_step(eh, h, sources, terms))

    @torch.inference_mode()
    def next_log_probs(self, terms: Terms, prefixes: EncDecPrefixes, columns: Columns | None = None) -> Tensor:
        """See `Stepper`; as exact as the products are: bfloat16 ones show in its second decimal."""
        return self._output.log_probs(self._read_out(prefixes, terms), prefixes.sources, columns)

    def _decoder_step(self, eh: Tensor, h: Tensor, sources: Tensor, terms: Terms) -> tuple[Tensor, Tensor]:
        """One step of the decoder for each node: [e h] with the next h, and that h.

        Args:
            eh: e of the node's word beside h, in the type of products.
            h: the state above it.
            sources: the node's row of `terms`.
            terms: of the sources.
        """
        gates = linear(eh, self._y_gates)
        e = eh[:, : self.config.embedding_size]
        We = linear(e, self._W)
        if self.config.decoder_reset == "after":
            Uh = linear(eh[:, self.config.embedding_size :], self._U)
            return kernels.decoder_state(gates, terms.gates, Uh, terms.Cc, We, self._b, sources, eh, h)
        z, r = kernels.decoder_gates(gates, terms.gates, sources).chunk(2, 1)
        h_tilde = self._times(r * h, self._U).add_(terms.Cc.index_select(0, sources)).add_(We).add_(self._b).tanh_()
        state = torch.lerp(h_tilde, h, z)
        return torch.cat([e, state.to(self._product_dtype)], 1), state

    def _read_out(self, prefixes: EncDecPrefixes, terms: Terms) -> Tensor:
        """G_r s_t of each prefix: what it predicts, before the words; prefixes × R."""
        s = kernels.maxout(linear(prefixes.eh, self._O), terms.O_cc, prefixes.sources)
        return linear(s, self._G_r)

    @torch.inference_mode()
    def word_log_probs(
        self, terms: Terms, prefixes: EncDecPrefixes, rows: Tensor, words: Tensor, blocks: Sequence[NodeBlock]
    ) -> Tensor:
        """See `Stepper`; each prefix is normalised once, whatever the number of words after it."""
        return self._output.chosen(self._read_out(prefixes, terms), rows, words, blocks)


def _beside(*rows: list[Tensor]) -> Tensor:
    """Matrices beside each other, and such rows of matrices above each other."""
    return torch.cat([torch.cat(row, 1) for row in rows])


ENCDEC = Architecture(
    FIRST_NETWORK,
    "RNN Encoder-Decoder",
    "RNN",
    ("source", "target"),
    EncDecConfig,
    EncDec,
    stepper=EncDecStepper,
    native=NativeEncDec,
)
