"""Sequence to sequence learning with deep LSTMs (Sutskever, Vinyals and Le 2014, arXiv 1409.3215, section 2).

An encoder of L layers reads the source words in reverse. A decoder of L layers, each starting from the final state of
the same encoder layer, writes the target. x_t and y_t are the t-th source and target word, e and e' the embeddings,
h^l and m^l hidden states and memories of layer l; a prime marks the decoder's. H hidden units, E embedding dimensions,
K words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor

from moses_rnn.errors import number_of
from moses_rnn.networks.batches import Batch, Ints, Lengths, reverse_each, take_rows
from moses_rnn.networks.config import Architecture, Config, Rare, Size, Unit
from moses_rnn.networks.layers import LstmStack, State, SteppedLayer
from moses_rnn.networks.network import Drop, NetworkStepper, TranslationNetwork, keep, previous_words, unset
from moses_rnn.networks.softmax import Output
from moses_rnn.networks.tries import build_trie, last_states
from moses_rnn.networks.vocabulary import END_ID, Ids
from moses_rnn.options import Option


@dataclass(frozen=True)
class Seq2SeqConfig(Config):
    """Sizes and switches; the defaults are the paper's."""

    source_vocabulary_size: Size  # with <unk> and </s>
    target_vocabulary_size: Size
    hidden_size: Size = 1000
    embedding_size: Size = 1000
    layers: Annotated[int, Option(min=1, max=64)] = 4
    source_order: Literal["reversed", "forward"] = "reversed"  # </s> comes last either way
    peepholes: bool = True
    unit: Unit = "sentences"  # of its training data
    rare: Rare | None = None  # None: <unk>

    @property
    def width(self) -> int:
        """Units of the hidden layer."""
        return self.hidden_size

    @property
    def description(self) -> str:
        """Description for logs."""
        return f"deep LSTM, {number_of(self.layers, 'layer')}, source {self.source_order}, H {self.hidden_size}"


class Seq2Seq(TranslationNetwork):
    """Encoder and decoder; all weights are initially uniform in ±0.08 (section 3.4)."""

    deviation = 0.08

    def _build(self, config: Seq2SeqConfig) -> None:
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    @property
    def output(self) -> Output:
        """G and b_G."""
        return self.decoder.G, self.decoder.b_G

    def predict(self, sources: Batch, targets: Batch, source_of: Tensor, drop: Drop) -> Tensor:
        """Return h'^L_i; `drop` applies to each layer's inputs and to h'^L_i."""
        start = take_rows(self.encoder(sources, drop), source_of)
        return drop(self.decoder(start, targets, drop))


class Encoder(LstmStack):
    """Reads source words x_1 … x_N, the last of them ``</s>``, into the last state of each layer.

    The order is x_{N-1} … x_1 ``</s>``, or x_1 … x_{N-1} ``</s>`` with `source_order` "forward"; layer 1 reads e(x),
    layer l the h^{l-1} below it; h^l_0 = m^l_0 = 0.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        sizes = config.source_vocabulary_size, config.embedding_size, config.hidden_size, config.layers
        super().__init__(*sizes, peepholes=config.peepholes)
        self.reverses = config.source_order == "reversed"

    def forward(self, sources: Batch, drop: Drop = keep) -> tuple[State, ...]:
        """Return h^l_N and m^l_N of each layer l; one row per source."""
        sources = reverse_words(sources) if self.reverses else sources
        start = self.nothing(sources.active[0])
        return self.states(sources.packed(), start, sources.active, drop)[1]


class Decoder(LstmStack):
    """Predicts target words y_1 … y_T from the encoder's last states.

    h'^l_0 = h^l_N, m'^l_0 = m^l_N                          of each layer l
    a'^1_i = e'(y_{i-1})                                    y_0 is ``</s>``
    a'^l_i = h'^{l-1}_i                                     l > 1
    p(y_i | y_<i, x) = softmax(G h'^L_i + b_G)
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        words = config.target_vocabulary_size
        super().__init__(words, config.embedding_size, config.hidden_size, config.layers, peepholes=config.peepholes)
        self.G, self.b_G = unset(words, config.hidden_size), unset(words)

    def forward(self, start: Sequence[State], targets: Batch, drop: Drop = keep) -> Tensor:
        """Return h'^L_i, which predicts each of ``targets.packed()``; nodes × H."""
        return self.states(previous_words(targets), start, targets.active, drop)[0]


def reverse_words(batch: Batch) -> Batch:
    """Reverse the words of each phrase; ``</s>`` stays last."""
    steps = torch.arange(len(batch.active), device=batch.ids.device)[None, :]
    every = torch.arange(batch.active[0], device=batch.ids.device)[:, None]
    words = (torch.tensor(batch.active[1:], dtype=torch.int64).to(batch.ids.device) > every).sum(1, keepdim=True)
    return Batch(batch.ids.gather(1, torch.where(steps < words, words - 1 - steps, steps)), batch.active)


# -- scoring and search: the same equations over tries of sentences

# Sources with a common prefix, in reading order, share its states. Products with a common operand are merged; they may
# be bfloat16, while states, gates and normalisation are float32.


class Seq2SeqPrefixes(NamedTuple):
    """Prefixes of targets with the decoder's states that predict the next word; one row each."""

    sources: Tensor  # row of each prefix's source in the encoded sources
    layers: tuple[State, ...]


class Seq2SeqStepper(NetworkStepper):
    """Steps the deep LSTM over packed rows."""

    _model: Seq2Seq

    def _prepare(self) -> None:
        encoder, decoder = self._model.encoder, self._model.decoder
        self._encoder, self._decoder = map(SteppedStack, (encoder, decoder))

    @torch.inference_mode()
    def encode(self, ids: Ids, lengths: Lengths) -> tuple[tuple[State, ...], Ints]:
        """See `Stepper`; steps each distinct prefix of the sources, in reading order, once."""
        sources = build_trie(reverse_each(ids, lengths) if self._model.encoder.reverses else ids, lengths)
        start = self._model.encoder.nothing(sources.roots)
        return last_states(sources, self.device, start, self._encoder.step), sources.leaf_of

    @torch.inference_mode()
    def start(self, encoded: tuple[State, ...]) -> Seq2SeqPrefixes:
        """Return the empty prefix of each source, after a step with ``</s>``."""
        sources = torch.arange(len(encoded[0][0]), device=self.device)
        words = torch.full_like(sources, END_ID)
        return Seq2SeqPrefixes(sources, self._decoder.step(words, encoded, sources))

    @torch.inference_mode()
    def step(
        self, encoded: tuple[State, ...], prefixes: Seq2SeqPrefixes, rows: Tensor, words: Tensor
    ) -> Seq2SeqPrefixes:
        """See `Stepper`."""
        return Seq2SeqPrefixes(prefixes.sources[rows], self._decoder.step(words, prefixes.layers, rows))

    def _read_out(self, encoded: tuple[State, ...], prefixes: Seq2SeqPrefixes) -> Tensor:
        """Return h'^L of each prefix; prefixes × H."""
        return prefixes.layers[-1][0]

    def summaries(self, ids: Ids, lengths: Lengths) -> Tensor:
        """Return h of all layers after each source's last word, lowest layer first; sources × LH.

        The memory m is omitted: it is unbounded and would outweigh h.
        """
        encoded, row_of = self.encode(ids, lengths)
        return torch.cat([h for h, _ in encoded], 1)[row_of]


class SteppedStack:
    """Steps the layers of an encoder or decoder; states are rows of a trie's level or a beam."""

    def __init__(self, stack: LstmStack) -> None:
        self._embedding = stack.kernel.rounded(stack.embedding)
        self._layers = [(SteppedLayer(layer), layer.stacked("b")) for layer in stack.layers]

    def step(self, words: Tensor, states: tuple[State, ...], rows: Tensor) -> tuple[State, ...]:
        """Return the next states of `rows`, each after one of `words`; both have the same length."""
        a, stepped = self._embedding.index_select(0, words), []
        for (layer, b), state in zip(self._layers, states, strict=True):
            stepped.append(layer.step(a, take_rows(state, rows), b))
            a = stepped[-1][0]
        return tuple(stepped)


SEQ2SEQ = Architecture("seq2seq", "deep LSTM", "LSTM", Seq2SeqConfig, Seq2Seq, stepper=Seq2SeqStepper, format=2)
