"""A trained RNN Encoder-Decoder arranged for scoring: the same equations as `encdec`, over tries of phrases.

Each distinct source prefix is stepped once, each source's terms in c are computed once, each distinct target prefix of
a source is stepped and normalised once. Products that share an operand are one product; products may be bfloat16,
states, gates and normalisation are float32. The element-wise work between products stands in functions of its own,
which `torch.compile` can fuse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.inference.kernel import Elementwise, decoder_gates
from moses_rnn.inference.tries import Trie
from moses_rnn.models.encdec import EncDec

LOGITS_AT_ONCE = 1 << 20  # of several states: they stay near the processor


class SourceTerms(NamedTuple):
    """All that the decoder needs of a source; a row each. H hidden units, M maxout units."""

    h_0: Tensor  # tanh(V' c + b_V'); H
    gates: Tensor  # C_z c + b'_z and C_r c + b'_r; 2H
    Cc: Tensor  # H
    O_cc: Tensor  # O_c c + b_O; 2M

    def take(self, rows: Tensor) -> SourceTerms:
        """The same for chosen rows, repeated at will."""
        return SourceTerms(*(tensor.index_select(0, rows) for tensor in self))


class Prefixes(NamedTuple):
    """Beginnings of target phrases, with what the decoder needs to predict the word after each; a row each."""

    sources: Tensor  # row of each one's source among the terms
    eh: Tensor  # e(y_{t-1}), zeros before the first word, beside h'_t, in the type of products; E + H
    h: Tensor  # h'_t; H

    def take(self, rows: slice) -> Prefixes:
        """Some of them."""
        return Prefixes(*(tensor[rows] for tensor in self))


class EncDecScorer:
    """log p of target phrases given source phrases.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
        elementwise: the work between products.
    """

    def __init__(
        self,
        model: EncDec,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        elementwise: Elementwise | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.config = model.config
        self._do = elementwise or Elementwise.eager()
        self._product = dtype
        self._state = torch.float64 if dtype == torch.float64 else torch.float32
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
        self._of_c = self._weight(torch.cat([decoder.V, decoder.C_z, decoder.C_r, decoder.C, decoder.O_c[units]]))
        no_b = torch.zeros_like(decoder.b)
        self._of_c_b = self._bias(torch.cat([decoder.b_V, decoder.b_z, decoder.b_r, no_b, decoder.b_O[units]]))
        self._y_e = self._weight(decoder.embedding)
        self._y_gates = self._weight(_beside([decoder.W_z, decoder.U_z], [decoder.W_r, decoder.U_r]))
        self._W, self._U, self._b = self._weight(decoder.W), self._weight(decoder.U), self._bias(decoder.b)
        self._O = self._weight(_beside([decoder.O_y, decoder.O_h])[units])
        self._G_r, self._b_G = self._bias(decoder.G_r), self._bias(decoder.b_G)
        self._numbers = torch.arange(len(self._b_G), device=self.device, dtype=self._state)
        self._G_l, self._exact_G_l = self._weight(decoder.G_l), self._bias(decoder.G_l)

    def _weight(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self.device, self._product).contiguous()

    def _bias(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self.device, self._state).contiguous()

    def _on_device(self, ids: npt.NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(ids).to(self.device)

    def _times(self, rows: Tensor, matrix: Tensor) -> Tensor:
        """A product, given back in the type of states."""
        return linear(rows.to(self._product), matrix).to(self._state)

    @torch.inference_mode()
    def encode(self, sources: Trie) -> SourceTerms:
        """The terms of every distinct source phrase, in the order of the trie's leaves."""
        h = torch.zeros(sources.roots, self.config.hidden_size, dtype=self._state, device=self.device)
        last: list[Tensor] = []
        for level in sources.levels:
            h = self._encoder_step(self._on_device(level.words), h, self._on_device(level.parents))
            last.append(h.index_select(0, self._on_device(level.leaves)))
            h = h.index_select(0, self._on_device(level.alive))
        return self._terms(torch.cat(last))

    def _encoder_step(self, words: Tensor, states: Tensor, above: Tensor) -> Tensor:
        """One step of the encoder for each node, from its word and the row of the state above it."""
        eh, h = self._do.gathered(self._x_e, words, states, above)
        z, erh = self._do.reset_state(linear(eh, self._x_gates), self._x_gates_b, eh, h)
        return self._do.encoder_state(linear(erh, self._x_candidate), self._x_candidate_b, z, h)

    def _terms(self, last: Tensor) -> SourceTerms:
        """What depends on c; `last` is h_N of each source."""
        c = last if self._summary is None else self._times(last, self._summary[0]).add_(self._summary[1]).tanh_()
        of_c = linear(c.to(self._product), self._of_c)
        return SourceTerms(*self._do.source_terms(of_c, self._of_c_b, self.config.hidden_size))

    @torch.inference_mode()
    def decode(self, terms: SourceTerms, targets: Trie) -> npt.NDArray[np.float64]:
        """log p of every distinct target phrase given the source that is its root.

        Args:
            terms: of the sources; a row for each root.
            targets: tries below their sources.

        Returns:
            Natural logarithms, ``</s>`` included, in the order of the trie's leaves.
        """
        answers: list[Tensor] = []
        prefixes = self.begin(terms)
        totals = torch.zeros(len(prefixes.h), dtype=torch.float64, device=self.device)
        for level in targets.levels:
            parents, words = self._on_device(level.parents), self._on_device(level.words)
            totals = totals.index_select(0, parents) + self._edges(self._read_out(prefixes, terms), parents, words)
            answers.append(totals.index_select(0, self._on_device(level.leaves)))
            alive = self._on_device(level.alive)
            totals = totals[alive]
            prefixes = self.extend(terms, prefixes, parents[alive], words[alive])
        found: npt.NDArray[np.float64] = torch.cat(answers).cpu().numpy()
        return found

    @torch.inference_mode()
    def begin(self, terms: SourceTerms) -> Prefixes:
        """The empty prefix of each source: y_1 is predicted from h'_0, or after a step with e(y_0) = 0."""
        sources = torch.arange(len(terms.h_0), device=self.device)
        e = torch.zeros(len(sources), self.config.embedding_size, dtype=self._product, device=self.device)
        eh = torch.cat([e, terms.h_0.to(self._product)], 1)
        if self.config.first_step == "zero-embedding":
            return Prefixes(sources, *self._decoder_step(eh, terms.h_0, sources, terms))
        return Prefixes(sources, eh, terms.h_0)

    @torch.inference_mode()
    def extend(self, terms: SourceTerms, prefixes: Prefixes, rows: Tensor, words: Tensor) -> Prefixes:
        """Chosen rows of the prefixes, each with one word more; `rows` and `words` are as many."""
        sources = prefixes.sources[rows]
        eh, h = self._do.gathered(self._y_e, words, prefixes.h, rows)
        return Prefixes(sources, *self._decoder_step(eh, h, sources, terms))

    @torch.inference_mode()
    def next_log_probs(self, terms: SourceTerms, prefixes: Prefixes) -> Tensor:
        """log p(y_t | y_<t, e) of every word after each prefix; natural, prefixes × K, float64.

        As exact as the products are: bfloat16 ones show in its second decimal.
        """
        logits = linear(self._read_out(prefixes, terms).to(self._product), self._G_l).to(self._state) + self._b_G
        return torch.log_softmax(logits, 1, dtype=torch.float64)

    def _decoder_step(self, eh: Tensor, h: Tensor, sources: Tensor, terms: SourceTerms) -> tuple[Tensor, Tensor]:
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
            return self._do.decoder_state(gates, terms.gates, Uh, terms.Cc, We, self._b, sources, eh, h)
        z, r = decoder_gates(gates, terms.gates, sources).chunk(2, 1)
        h_tilde = self._times(r * h, self._U).add_(terms.Cc.index_select(0, sources)).add_(We).add_(self._b).tanh_()
        state = torch.lerp(h_tilde, h, z)
        return torch.cat([e, state.to(self._product)], 1), state

    def _read_out(self, prefixes: Prefixes, terms: SourceTerms) -> Tensor:
        """G_r s' of each prefix: what it predicts, before the words; prefixes × R."""
        return linear(self._do.maxout(linear(prefixes.eh, self._O), terms.O_cc, prefixes.sources), self._G_r)

    def _edges(self, low: Tensor, parents: Tensor, words: Tensor) -> Tensor:
        """log p of each node's word after the prefix above it; nodes.

        Each state above is normalised once, whatever the number of nodes below it.
        """
        rows = max(LOGITS_AT_ONCE // len(self._b_G), 1)
        firsts = range(0, len(low), rows)
        bounds = torch.searchsorted(parents, torch.tensor([*firsts, len(low)], device=self.device)).tolist()
        parts = []
        for i, first in enumerate(firsts):  # parents are in order: each block of states has its nodes together
            nodes = slice(bounds[i], bounds[i + 1])
            states = low[first : first + rows]
            parts.append(self._normalised(states, parents[nodes] - first, words[nodes]))
        return torch.cat(parts)

    def _normalised(self, states: Tensor, above: Tensor, words: Tensor) -> Tensor:
        """log p of words, each after one of a few states; nodes.

        Rounded products would show in the logits of the word and of the likeliest one, which are therefore computed
        anew; over all others their errors cancel.
        """
        logits = linear(states.to(self._product), self._G_l)  # states × K
        chosen = logits[above, words] + self._b_G[words]
        largest, at, rest = self._do.normaliser(logits, self._b_G, self._numbers)  # may overwrite them
        if self._product != self._state:
            exact = self._logit(states, at)
            rest *= torch.exp(largest - exact)
            chosen, largest = self._logit(states[above], words), exact
        return chosen - largest[above] - torch.log1p(rest)[above]

    def _logit(self, states: Tensor, words: Tensor) -> Tensor:
        """The logit of one word for each state."""
        return (states * self._exact_G_l.index_select(0, words)).sum(1) + self._b_G[words]


def _beside(*rows: list[Tensor]) -> Tensor:
    """Matrices beside each other, and such rows of matrices above each other."""
    return torch.cat([torch.cat(row, 1) for row in rows])
