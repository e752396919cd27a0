"""The deep LSTM of Sutskever et al. (2014) arranged for scoring and search, over tries of sentences.

Sources that begin alike in the order of reading share what is read; an equal source is read once. Products that share
an operand are one product; they may be bfloat16, states, gates and normalisation are float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.inference.normalising import OutputLayer
from moses_rnn.inference.steps import Columns, NodeBlock, Stepper
from moses_rnn.inference.tries import build_trie, copy_levels
from moses_rnn.models.batches import Lengths
from moses_rnn.models.folders import Architecture
from moses_rnn.models.lstm import Lstm, LstmStack, State, lstm_step
from moses_rnn.models.seq2seq import Seq2Seq, Seq2SeqConfig
from moses_rnn.models.vocabulary import END_ID, Ids


class Seq2SeqTerms(NamedTuple):
    """What the decoder begins with; a row for each source."""

    layers: tuple[State, ...]

    def take(self, rows: Tensor) -> Seq2SeqTerms:
        """The same for chosen rows, repeated at will."""
        return Seq2SeqTerms(tuple(state.take(rows) for state in self.layers))


class Seq2SeqPrefixes(NamedTuple):
    """Beginnings of targets, with the decoder's states that predict the word after each; a row each."""

    sources: Tensor  # row of each one's source among the terms
    layers: tuple[State, ...]

    def take(self, rows: slice) -> Seq2SeqPrefixes:
        """Some of them."""
        layers = tuple(State(*(tensor[rows] for tensor in state)) for state in self.layers)
        return Seq2SeqPrefixes(self.sources[rows], layers)


class Seq2SeqStepper(Stepper[Seq2SeqTerms, Seq2SeqPrefixes]):
    """The deep LSTM, stepped over packed rows.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
    """

    def __init__(
        self,
        model: Seq2Seq,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.device = torch.device(device)
        self.words = model.config.target_vocabulary_size
        self._reverses = model.encoder.reverses
        self._encoder, self._decoder = (
            SteppedStack(stack, self.device, dtype) for stack in (model.encoder, model.decoder)
        )
        G, b_G = model.decoder.G.to(self.device), model.decoder.b_G.to(self.device)
        self._output = OutputLayer(G, b_G, dtype, self._decoder.dtype)

    @torch.inference_mode()
    def read(self, ids: Ids, lengths: Lengths) -> tuple[Seq2SeqTerms, npt.NDArray[np.int64]]:
        """See `Stepper`; each distinct beginning of the sources, in the order of reading, is stepped once."""
        sources = build_trie(reverse_each(ids, lengths) if self._reverses else ids, lengths)
        states = self._encoder.nothing(sources.roots)
        last = []
        for words, parents, alive, leaves in copy_levels(sources.levels, self.device):
            states = self._encoder.step(words, states, parents)
            last.append([state.take(leaves) for state in states])
            states = tuple(state.take(alive) for state in states)
        layers = tuple(State(*map(torch.cat, zip(*levels, strict=True))) for levels in zip(*last, strict=True))
        return Seq2SeqTerms(layers), sources.leaf_of

    @torch.inference_mode()
    def start(self, terms: Seq2SeqTerms) -> Seq2SeqPrefixes:
        """The empty prefix of each source, after a step with ``</s>``."""
        sources = torch.arange(len(terms.layers[0].h), device=self.device)
        words = torch.full_like(sources, END_ID)
        return Seq2SeqPrefixes(sources, self._decoder.step(words, terms.layers, sources))

    @torch.inference_mode()
    def step(self, terms: Seq2SeqTerms, prefixes: Seq2SeqPrefixes, rows: Tensor, words: Tensor) -> Seq2SeqPrefixes:
        """Chosen rows of the prefixes, each with one word more; `rows` and `words` are as many."""
        return Seq2SeqPrefixes(prefixes.sources[rows], self._decoder.step(words, prefixes.layers, rows))

    @torch.inference_mode()
    def next_log_probs(self, terms: Seq2SeqTerms, prefixes: Seq2SeqPrefixes, columns: Columns | None = None) -> Tensor:
        """See `Stepper`."""
        return self._output.log_probs(prefixes.layers[-1].h, prefixes.sources, columns)

    @torch.inference_mode()
    def word_log_probs(
        self,
        terms: Seq2SeqTerms,
        prefixes: Seq2SeqPrefixes,
        rows: Tensor,
        words: Tensor,
        blocks: Sequence[NodeBlock],
    ) -> Tensor:
        """See `Stepper`; each prefix is normalised once, whatever the number of words after it."""
        return self._output.chosen(prefixes.layers[-1].h, rows, words, blocks)

    def summaries(self, terms: Seq2SeqTerms) -> Tensor:
        """h of all layers after each source's last word, the lowest layer's first; sources × LH.

        The memory m is left out: it has no bounds, and would outweigh h.
        """
        return torch.cat([state.h for state in terms.layers], 1)


class SteppedLayer(NamedTuple):
    """A layer's weights, those of the gates and of the new memory above each other."""

    WU: Tensor  # in the type of products; 4H × (A + H), where A are the layer's inputs
    b: Tensor  # 4H
    p: Tensor | None  # 3 × H


class SteppedStack:
    """The layers of an encoder or decoder, whose states are the rows of a trie's level or of a beam.

    Args:
        stack: as trained.
        device: where to compute.
        product_dtype: of matrix products.
    """

    def __init__(self, stack: LstmStack, device: torch.device, product_dtype: torch.dtype) -> None:
        self.dtype = torch.float64 if product_dtype == torch.float64 else torch.float32  # of states
        self._device, self._product_dtype = device, product_dtype
        self._embedding = stack.embedding.detach().to(device, product_dtype)
        self._layers = [self._prepared(layer) for layer in stack.layers]
        self._hidden_size = stack.hidden_size

    @torch.no_grad()
    def _prepared(self, layer: Lstm) -> SteppedLayer:
        W, U, b, p = layer.weights()
        WU = torch.cat([W, U], 1).to(self._device, self._product_dtype)
        return SteppedLayer(WU, b.to(self._device, self.dtype), None if p is None else p.to(self._device, self.dtype))

    def nothing(self, rows: int) -> tuple[State, ...]:
        """h_0 = m_0 = 0 of each layer."""
        zeros = torch.zeros(rows, self._hidden_size, dtype=self.dtype, device=self._device)
        return (State(zeros, zeros),) * len(self._layers)

    def step(self, words: Tensor, states: Sequence[State], rows: Tensor) -> tuple[State, ...]:
        """The next states of chosen rows, each after one word more; `rows` and `words` are as many."""
        a, stepped = self._embedding.index_select(0, words), []
        for (WU, b, p), state in zip(self._layers, states, strict=True):
            h, m = state.take(rows)
            sums = linear(torch.cat([a, h.to(self._product_dtype)], 1), WU).to(self.dtype)
            stepped.append(State(*lstm_step(b, sums, p, m)))
            a = stepped[-1].h.to(self._product_dtype)
        return tuple(stepped)


def reverse_each(ids: Ids, lengths: Lengths) -> Ids:
    """Phrases laid end to end, the words of each in reverse."""
    ends = np.cumsum(lengths)
    return ids[np.repeat(2 * ends - lengths, lengths) - 1 - np.arange(len(ids))]


SEQ2SEQ = Architecture(
    "seq2seq",
    "deep LSTM",
    "LSTM",
    ("source", "target"),
    Seq2SeqConfig,
    Seq2Seq,
    stepper=Seq2SeqStepper,
    format=2,
)
