"""RNNsearch arranged for scoring and search: the equations of `models/rnnsearch`, stepped over packed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.inference.normalising import OutputLayer
from moses_rnn.inference.steps import Columns, NodeBlock, Stepper, for_scoring
from moses_rnn.inference.tries import build_trie, take_phrases
from moses_rnn.models.attention import Annotations, weigh
from moses_rnn.models.batches import Batch, Lengths
from moses_rnn.models.folders import Architecture
from moses_rnn.models.rnnsearch import RnnSearch, RnnSearchConfig, SearchNodes, SearchTerms, gates, updated
from moses_rnn.models.vocabulary import Ids

ENERGIES_AT_ONCE = 1 << 22  # prefixes × positions × A: what is looked at in one piece


class SearchPrefixes(NamedTuple):
    """Beginnings of targets, with what the decoder needs to predict the word after each; a row each."""

    sources: Tensor  # row of each one's source among the terms
    e: Tensor  # e'(y_{i-1}), zeros before the first word; E
    s: Tensor  # s_i, or s_{i-1} where the state is updated after the word; H
    c: Tensor  # c_i; 2H
    alpha: Tensor  # that c_i is made by; longest N

    def take(self, rows: slice) -> SearchPrefixes:
        """Some of them."""
        return SearchPrefixes(*(tensor[rows] for tensor in self))


class RnnSearchStepper(Stepper[SearchTerms, SearchPrefixes]):
    """RNNsearch, stepped over packed rows.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
    """

    def __init__(
        self,
        model: RnnSearch,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.device = torch.device(device)
        self.words = model.config.target_vocabulary_size
        self._product_dtype = dtype
        self._model, self._dtype = for_scoring(model, self.device, dtype)
        decoder, align = self._model.decoder, self._model.align
        self._v = align.v
        self._W_e = self._weight(torch.cat([decoder.W_z, decoder.W_r, decoder.W]))
        self._b = torch.cat([decoder.b_z, decoder.b_r, decoder.b])
        self._W_a, self._U_gates = self._weight(align.W_a), self._weight(torch.cat([decoder.U_z, decoder.U_r]))
        self._C = self._weight(torch.cat([decoder.C_z, decoder.C_r, decoder.C]))
        self._U = self._weight(decoder.U)
        self._output = OutputLayer(decoder.output, decoder.b_G, dtype, self._dtype)

    def _weight(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self._product_dtype).contiguous()

    def _times(self, rows: Tensor, matrix: Tensor) -> Tensor:
        """A product, given back in the type of states."""
        return linear(rows.to(self._product_dtype), matrix).to(self._dtype)

    @torch.inference_mode()
    def read(self, ids: Ids, lengths: Lengths) -> tuple[SearchTerms, npt.NDArray[np.int64]]:
        """See `Stepper`; equal sources are read once, and all are padded to the longest."""
        leaf_of = build_trie(ids, lengths).leaf_of
        first = np.unique(leaf_of, return_index=True)[1]  # of each distinct source, by its leaf
        order = np.argsort(-lengths[first], kind="stable")
        sources = Batch.from_flat(*take_phrases(ids, lengths, first[order]), self.device)
        row_of = np.empty_like(order)
        row_of[order] = np.arange(len(order))
        return self._model.read(sources, self._product_dtype), row_of[leaf_of]

    @torch.inference_mode()
    def start(self, terms: SearchTerms) -> SearchPrefixes:
        """The empty prefix of each source, with its first look; in the paper's phases also updated once."""
        sources = torch.arange(len(terms.s_0), device=self.device)
        e = terms.s_0.new_zeros(len(sources), self._model.config.embedding_size)
        c, alpha = self._look(terms, sources, terms.s_0)
        s = self._update(e, terms.s_0, c) if self._updates_first else terms.s_0
        return SearchPrefixes(sources, e, s, c, alpha)

    @torch.inference_mode()
    def step(self, terms: SearchTerms, prefixes: SearchPrefixes, rows: Tensor, words: Tensor) -> SearchPrefixes:
        """Chosen rows of the prefixes, each with one word more; `rows` and `words` are as many."""
        sources, s = prefixes.sources.index_select(0, rows), prefixes.s.index_select(0, rows)
        e = self._model.decoder.embedding.index_select(0, words)
        if self._updates_first:
            c, alpha = self._look(terms, sources, s)
            return SearchPrefixes(sources, e, self._update(e, s, c), c, alpha)
        s = self._update(e, s, prefixes.c.index_select(0, rows))
        return SearchPrefixes(sources, e, s, *self._look(terms, sources, s))

    @torch.inference_mode()
    def next_log_probs(self, terms: SearchTerms, prefixes: SearchPrefixes, columns: Columns | None = None) -> Tensor:
        """See `Stepper`."""
        return self._output.log_probs(self._read_out(prefixes), prefixes.sources, columns)

    @torch.inference_mode()
    def word_log_probs(
        self,
        terms: SearchTerms,
        prefixes: SearchPrefixes,
        rows: Tensor,
        words: Tensor,
        blocks: Sequence[NodeBlock],
    ) -> Tensor:
        """See `Stepper`; each prefix is normalised once, whatever the number of words after it."""
        return self._output.chosen(self._read_out(prefixes), rows, words, blocks)

    def alignment(self, terms: SearchTerms, prefixes: SearchPrefixes) -> Tensor:
        """α of the word that follows each prefix; prefixes × longest N, zeros where a source has no word."""
        return prefixes.alpha

    def summaries(self, terms: SearchTerms) -> Tensor:
        """s_0 of each source: tanh(W_s ←h_1), all that the decoder knows before it looks; sources × H."""
        return terms.s_0

    @property
    def _updates_first(self) -> bool:
        return self._model.decoder.updates_first

    def _look(self, terms: SearchTerms, sources: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """c and α of some states of some sources; rows × 2H and rows × longest N.

        The only work that grows with the padding is done here, in pieces that do not, each as wide as its longest
        source where that is known without waiting for the device.
        """
        Ws = self._times(s, self._W_a)
        pieces = [self._look_at(terms.annotations, sources[rows], Ws[rows]) for rows in self._pieces(terms, len(s))]
        if not pieces:
            return s.new_zeros(0, terms.annotations.h.shape[2]), s.new_zeros(0, terms.annotations.h.shape[1])
        c, alpha = (torch.cat(tensors) for tensors in zip(*pieces, strict=True))
        return c, alpha

    def _look_at(self, annotations: Annotations, sources: Tensor, Ws: Tensor) -> tuple[Tensor, Tensor]:
        present, N = annotations.present.index_select(0, sources), annotations.h.shape[1]
        width = int(present.sum(1).max()) if self.device.type == "cpu" else N
        these = Annotations(
            annotations.h[:, :width].index_select(0, sources),
            annotations.Uh[:, :width].index_select(0, sources),
            present[:, :width],
        )
        alpha = weigh(Ws, self._v, these)
        c = torch.bmm(alpha[:, None, :], these.h).squeeze(1)
        return c, torch.nn.functional.pad(alpha, (0, N - width))

    def _pieces(self, terms: SearchTerms, rows: int) -> Iterator[slice]:
        at_once = max(ENERGIES_AT_ONCE // terms.annotations.Uh[0].numel(), 1)
        for first in range(0, rows, at_once):
            yield slice(first, min(first + at_once, rows))

    def _update(self, e: Tensor, s: Tensor, c: Tensor) -> Tensor:
        """GRU'(e, s, c); rows × H."""
        x = self._times(e, self._W_e) + self._b
        Cc = self._times(c, self._C)
        z, rs = gates(x, self._times(s, self._U_gates), Cc, s)
        return updated(x, self._times(rs, self._U), Cc, z, s)

    def _read_out(self, prefixes: SearchPrefixes) -> Tensor:
        """t_i, or G_r t_i: what each prefix predicts, before the words; prefixes × M or prefixes × R."""
        return self._model.decoder.read_out(SearchNodes(prefixes.s, prefixes.e, prefixes.c), self._product_dtype)


RNNSEARCH = Architecture(
    "rnnsearch",
    "RNNsearch",
    "SEARCH",
    ("source", "target"),
    RnnSearchConfig,
    RnnSearch,
    stepper=RnnSearchStepper,
    format=2,
)
