"""Sequence to sequence learning with deep LSTMs (Sutskever, Vinyals and Le 2014, arXiv 1409.3215, section 2).

An encoder of L layers reads the source, its words in reverse; a decoder of L layers begins each where the encoder's
same layer has ended, and writes the target. x_t and y_t are the t-th source and target word, e and e' the embeddings,
h^l and m^l hidden states and memories of layer l; a prime marks the decoder's. H hidden units, E embedding dimensions,
K words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from moses_rnn.models.batches import Batch
from moses_rnn.models.config import Config, Limits, Rare, Size, Unit
from moses_rnn.models.dropout import Drop, keep
from moses_rnn.models.hardware import Kernel
from moses_rnn.models.initial_weights import draw_uniformly, unset
from moses_rnn.models.lstm import LstmStack, State
from moses_rnn.models.softmax import Estimate, learned_log_probs
from moses_rnn.models.translation_network import TranslationNetwork
from moses_rnn.models.vocabulary import END_ID

INITIAL_RANGE = 0.08


@dataclass(frozen=True)
class Seq2SeqConfig(Config):
    """Sizes and switches; the defaults are the paper's."""

    source_vocabulary_size: Size  # with <unk> and </s>
    target_vocabulary_size: Size
    hidden_size: Size = 1000
    embedding_size: Size = 1000
    layers: Annotated[int, Limits(1, 64)] = 4
    source_order: Literal["reversed", "forward"] = "reversed"  # </s> comes last either way
    peepholes: bool = True
    unit: Unit = "sentences"  # that it learned from
    rare: Rare | None = None  # None: <unk>

    @property
    def description(self) -> str:
        """For a log."""
        return f"deep LSTM, {self.layers} layers, source {self.source_order}, H {self.hidden_size}"


class Seq2Seq(TranslationNetwork):
    """Encoder and decoder; `state_dict` has the tensor names of the checkpoint format.

    Args:
        config: sizes and switches.
        seed: of the initial weights; equal seeds give equal weights. None leaves them unset.
    """

    def __init__(self, config: Seq2SeqConfig, *, seed: int | None) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        if seed is not None:
            self.initialise(seed)

    def initialise(self, seed: int, deviation: float = INITIAL_RANGE) -> None:
        """Draw all weights uniformly from ± `deviation`, the paper's 0.08 (section 3.4); equal seeds, equal weights."""
        draw_uniformly(self, seed, deviation)

    def use_kernel(self, kernel: Kernel) -> None:
        """See `TranslationNetwork`."""
        self.kernel = self.encoder.kernel = self.decoder.kernel = kernel

    def word_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,
        product_dtype: torch.dtype | None = None,
        sample: Estimate | None = None,
        drop: Drop = keep,
    ) -> Tensor:
        """Score every target word by log p(y_i | y_<i, x); `drop` is for what each layer reads and for h'^L_i."""
        dtype = product_dtype or self.decoder.G.dtype
        start = [state.take(source_of) for state in self.encoder(sources, dtype, drop)]
        h = drop(self.decoder(start, targets, dtype, drop))
        output = self.decoder.G, self.decoder.b_G
        return learned_log_probs(h, output, targets.packed(), dtype, self.kernel, sample)


class Encoder(LstmStack):
    """Source words x_1 … x_N, the last of them ``</s>``, to the last state of each layer.

    They are read in the order x_{N-1} … x_1 ``</s>``, by the switch `source_order` in that of x_1 … x_{N-1} ``</s>``;
    layer 1 reads e(x), layer l the h^{l-1} below it; h^l_0 = m^l_0 = 0.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        sizes = config.source_vocabulary_size, config.embedding_size, config.hidden_size, config.layers
        super().__init__(*sizes, peepholes=config.peepholes)
        self.reverses = config.source_order == "reversed"

    def forward(self, sources: Batch, product_dtype: torch.dtype, drop: Drop = keep) -> list[State]:
        """h^l_N and m^l_N of each layer l, a row for each source."""
        sources = reverse_words(sources) if self.reverses else sources
        start = self.nothing(sources.active[0])
        return self.states(sources.packed(), start, sources.active, product_dtype, drop)[1]


class Decoder(LstmStack):
    """From the encoder's last states and target words y_1 … y_T to log-probabilities.

    h'^l_0 = h^l_N, m'^l_0 = m^l_N                          of each layer l
    a'^1_i = e'(y_{i-1})                                    y_0 is ``</s>``
    a'^l_i = h'^{l-1}_i                                     l > 1
    p(y_i | y_<i, x) = softmax(G h'^L_i + b_G)
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        words = config.target_vocabulary_size
        super().__init__(words, config.embedding_size, config.hidden_size, config.layers, peepholes=config.peepholes)
        self.G, self.b_G = unset(words, config.hidden_size), unset(words)

    def forward(self, start: Sequence[State], targets: Batch, product_dtype: torch.dtype, drop: Drop = keep) -> Tensor:
        """h'^L_i, from which each of ``targets.packed()`` is predicted; nodes × H.

        Args:
            start: of each layer; T rows.
            targets: T targets.
            product_dtype: the type that matrix products are computed in.
            drop: leaves units out of what each layer reads.
        """
        first = torch.full_like(targets.ids[:, 0], END_ID)
        words = torch.cat([first, *(targets.ids[:rows, t] for t, rows in enumerate(targets.active[1:]))])
        return self.states(words, start, targets.active, product_dtype, drop)[0]


def reverse_words(batch: Batch) -> Batch:
    """The same phrases, the words of each in reverse; ``</s>`` stays last."""
    steps = torch.arange(len(batch.active), device=batch.ids.device)[None, :]
    every = torch.arange(batch.active[0], device=batch.ids.device)[:, None]
    words = (torch.tensor(batch.active[1:], dtype=torch.int64).to(batch.ids.device) > every).sum(1, keepdim=True)
    return Batch(batch.ids.gather(1, torch.where(steps < words, words - 1 - steps, steps)), batch.active)
