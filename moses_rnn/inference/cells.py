"""An RNN Encoder-Decoder of other cells arranged for scoring and search: the equations of `models/cells`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.inference.normalising import OutputLayer
from moses_rnn.inference.steps import Columns, NodeBlock, Stepper, for_scoring
from moses_rnn.inference.tries import build_trie, copy_levels
from moses_rnn.models.batches import Lengths
from moses_rnn.models.cells import PLAIN, Carried, CellConfig, CellDecoder, CellEncDec, CellEncoder, PlainCell, begun
from moses_rnn.models.encdec import EncDec, Terms
from moses_rnn.models.folders import FIRST_NETWORK, Architecture
from moses_rnn.models.vocabulary import Ids


def cell_stepper(model: CellEncDec, device: str, dtype: torch.dtype) -> Stepper[Any, Any]:
    """The stepper of a network by its cell; arguments as of `EncDecStepper`."""
    if model.config.cell in PLAIN:
        return CellStepper(model, device, dtype)
    make = ResetAfterStepper if model.encoder.resets_after else EncDecStepper
    return make(model, device, dtype)


class ResetAfterStepper(EncDecStepper):
    """The RNN Encoder-Decoder whose encoder's reset gate acts after the product."""

    def _prepare_encoder(self, model: EncDec) -> None:
        super()._prepare_encoder(model)
        self._x_W, self._x_U = self._weight(model.encoder.W), self._weight(model.encoder.U)

    def _encoder_step(self, words: Tensor, states: Tensor, above: Tensor) -> Tensor:
        h, e = states.index_select(0, above), self._x_e.index_select(0, words)
        eh = torch.cat([e, h.to(e.dtype)], 1)
        z, r = torch.sigmoid(self._times(eh, self._x_gates) + self._x_gates_b).chunk(2, 1)
        inside = self._times(e, self._x_W) + r * self._times(h, self._x_U) + self._x_candidate_b
        return torch.lerp(torch.tanh(inside), h, z)


class CellPrefixes(NamedTuple):
    """Beginnings of target phrases, with what the decoder needs to predict the word after each; a row each."""

    sources: Tensor  # row of each one's source among the terms
    e: Tensor  # e(y_{t-1}), zeros before the first word; E
    state: Tensor  # h'_t, with m'_t beside it in an LSTM; H or 2H

    def take(self, rows: slice) -> CellPrefixes:
        """Some of them."""
        return CellPrefixes(*(tensor[rows] for tensor in self))


class SteppedCell:
    """A side's steps, word by word.

    Args:
        part: encoder or decoder, in the type of states.
        embedding: its words'; K × E.
        product_dtype: of matrix products.
    """

    def __init__(self, part: PlainCell, embedding: Tensor, product_dtype: torch.dtype) -> None:
        self.embedding = embedding
        self.cell, self._own = part.cell, part.own()
        self._WU = torch.cat([part.stacked("W"), part.stacked("U")], 1).to(product_dtype)  # SH × (E + H)

    def begin(self, h_0: Tensor) -> Tensor:
        """h_0, and an empty memory beside it."""
        return torch.cat(begun(self.cell, h_0), 1)

    def step(self, e: Tensor, state: Tensor, more: Tensor) -> Tensor:
        """The next state of each row; `more` is what c and b add inside the sums (rows × SH, or SH)."""
        parts: Carried = state.chunk(self.cell.carried, 1)
        sums = linear(torch.cat([e, parts[0]], 1).to(self._WU.dtype), self._WU).to(state.dtype)
        return torch.cat(self.cell.step(more, sums, self._own, parts), 1)

    def shown(self, state: Tensor) -> Tensor:
        """h of each state; rows × H."""
        return state.chunk(self.cell.carried, 1)[0]


class CellStepper(Stepper[Terms, CellPrefixes]):
    """An RNN Encoder-Decoder of another cell, stepped over packed rows.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
    """

    def __init__(
        self,
        model: CellEncDec,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.device = torch.device(device)
        self.words = model.config.target_vocabulary_size
        self._product_dtype = dtype
        model, kind = for_scoring(model, self.device, dtype)
        encoder, decoder = model.encoder, model.decoder
        assert isinstance(encoder, CellEncoder)
        assert isinstance(decoder, CellDecoder)
        self._model, self._decoder = model, decoder
        self._read, self._written = (SteppedCell(part, part.embedding, dtype) for part in (encoder, decoder))
        self._b = encoder.stacked("b")
        self._output = OutputLayer(decoder.G_l, decoder.b_G, dtype, kind)

    @torch.inference_mode()
    def read(self, ids: Ids, lengths: Lengths) -> tuple[Terms, npt.NDArray[np.int64]]:
        """See `Stepper`; each distinct prefix of the sources is stepped once."""
        sources, side = build_trie(ids, lengths), self._read
        state = side.begin(self._b.new_zeros(sources.roots, self._model.config.hidden_size))
        last: list[Tensor] = []
        for words, parents, alive, leaves in copy_levels(sources.levels, self.device):
            e = side.embedding.index_select(0, words)
            state = side.step(e, state.index_select(0, parents), self._b)
            last.append(side.shown(state).index_select(0, leaves))
            state = state.index_select(0, alive)
        c = self._model.encoder.summary(torch.cat(last), self._product_dtype)
        return self._decoder.terms(c, self._product_dtype), sources.leaf_of

    @torch.inference_mode()
    def start(self, terms: Terms) -> CellPrefixes:
        """The empty prefix of each source: y_1 is predicted from h'_0, or after a step with e(y_0) = 0."""
        sources = torch.arange(len(terms.h_0), device=self.device)
        e = terms.h_0.new_zeros(len(sources), self._model.config.embedding_size)
        state = self._written.begin(terms.h_0)
        if self._model.config.first_step == "zero-embedding":
            state = self._written.step(e, state, terms.Cc)
        return CellPrefixes(sources, e, state)

    @torch.inference_mode()
    def step(self, terms: Terms, prefixes: CellPrefixes, rows: Tensor, words: Tensor) -> CellPrefixes:
        """Chosen rows of the prefixes, each with one word more; `rows` and `words` are as many."""
        sources, e = prefixes.sources[rows], self._written.embedding.index_select(0, words)
        state = prefixes.state.index_select(0, rows)
        return CellPrefixes(sources, e, self._written.step(e, state, terms.Cc.index_select(0, sources)))

    @torch.inference_mode()
    def next_log_probs(self, terms: Terms, prefixes: CellPrefixes, columns: Columns | None = None) -> Tensor:
        """See `Stepper`."""
        return self._output.log_probs(self._read_out(terms, prefixes), prefixes.sources, columns)

    @torch.inference_mode()
    def word_log_probs(
        self, terms: Terms, prefixes: CellPrefixes, rows: Tensor, words: Tensor, blocks: Sequence[NodeBlock]
    ) -> Tensor:
        """See `Stepper`; each prefix is normalised once, whatever the number of words after it."""
        return self._output.chosen(self._read_out(terms, prefixes), rows, words, blocks)

    def _read_out(self, terms: Terms, prefixes: CellPrefixes) -> Tensor:
        """G_r s_t of each prefix: what it predicts, before the words; prefixes × R."""
        O_cc = terms.O_cc.index_select(0, prefixes.sources)
        return self._decoder.read_out(self._written.shown(prefixes.state), prefixes.e, O_cc, self._product_dtype)


ENCDEC_OF_CELLS = Architecture(
    FIRST_NETWORK,
    "RNN Encoder-Decoder",
    "RNN",
    ("source", "target"),
    CellConfig,
    CellEncDec,
    stepper=cell_stepper,
    format=2,
)
