"""The Transformer (Vaswani et al. 2017, arXiv 1706.03762), normalised before each sublayer (Xiong et al. 2020).

An encoder of L layers reads the source words x_1 … x_N, the last of them ``</s>``; a decoder of L layers predicts the
target words y_1 … y_T, and y_0 is ``</s>``. e and e' are the embeddings, d the hidden size, f the feed-forward size,
d_k = d / heads; K words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, layer_norm, relu, scaled_dot_product_attention

from moses_rnn.errors import number_of
from moses_rnn.networks.batches import Batch, Ints, Lengths, Values, in_slots, take_rows
from moses_rnn.networks.compute import EAGER, Kernel
from moses_rnn.networks.config import Architecture, Config, Rare, Size, Unit
from moses_rnn.networks.network import Drop, NetworkStepper, TranslationNetwork, keep, previous_words, unset
from moses_rnn.networks.softmax import Output
from moses_rnn.networks.steps import node_blocks
from moses_rnn.networks.tries import (
    NOTHING,
    IdPhrases,
    Mask,
    distinct_phrases,
    number_prefixes,
    sort_prefixes,
    take_phrases,
)
from moses_rnn.networks.vocabulary import END_ID, Ids
from moses_rnn.options import Option

EPSILON = 1e-5  # added to a variance
LONGEST_WAVE = 10_000  # of position codes, over 2π (section 3.5)


@dataclass(frozen=True)
class TransformerConfig(Config):
    """Sizes; the defaults are the paper's base model."""

    source_vocabulary_size: Size  # with <unk> and </s>
    target_vocabulary_size: Size
    hidden_size: Size = 512
    feed_forward_size: Size = 2048
    heads: Annotated[int, Option(min=1, max=64)] = 8
    layers: Annotated[int, Option(min=1, max=64)] = 6
    shared: bool = False  # whether both sides have the same words, and so the same embeddings
    unit: Unit = "sentences"  # of its training data
    rare: Rare | None = None  # None: <unk>

    def __post_init__(self) -> None:
        """Check the values, each and together."""
        super().__post_init__()
        if self.hidden_size % self.heads:
            self.refuse("hidden_size", f"a multiple of heads, {self.heads}")
        if self.shared and self.source_vocabulary_size != self.target_vocabulary_size:
            self.refuse("source_vocabulary_size", f"that of the target, {self.target_vocabulary_size}, as it is shared")

    @property
    def width(self) -> int:
        """d."""
        return self.hidden_size

    @property
    def description(self) -> str:
        """Description for logs."""
        sizes = f"d {self.hidden_size}, f {self.feed_forward_size}, {number_of(self.heads, 'head')}"
        return f"Transformer, {self.layers} + {number_of(self.layers, 'layer')}, {sizes}"


class Transformer(TranslationNetwork):
    """Encoder and decoder; weights are initially N(0, deviation²), biases 0, gains of norms 1."""

    deviation = 512**-0.5

    def _build(self, config: TransformerConfig) -> None:
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    def _draw(self, name: str, tensor: Tensor, deviation: float, random: torch.Generator) -> Tensor:
        if tensor.dim() == 1:
            return torch.full_like(tensor, name.endswith(".g"))
        return deviation * torch.randn(tensor.shape, generator=random)

    @property
    def embeddings(self) -> dict[str, nn.Parameter]:
        """See `Network`; both sides may have the same."""
        e = self.decoder.embedding
        return {"source": e if self.config.shared else self.encoder.get_parameter("embedding"), "target": e}

    @property
    def output(self) -> Output:
        """G and b_G; G is e' (section 3.4)."""
        return self.decoder.embedding, self.decoder.b_G

    def read(self, sources: Batch, drop: Drop = keep) -> Tensor:
        """Return h_j of each of ``sources.packed()``; nodes × d."""
        h: Tensor = self.encoder(self.embeddings["source"], sources, drop)
        return h

    def predict(self, sources: Batch, targets: Batch, source_of: Tensor, drop: Drop) -> Tensor:
        """Return r_i; `drop` applies to what enters the first layers and to what each sublayer adds."""
        decoder, places = self.decoder, Places.of(targets)
        memory = decoder.memory(self.read(sources, drop), Places.of(sources, source_of))
        s = drop(inputs(decoder.embedding, previous_words(targets), targets.steps(), len(targets.active)))
        r: Tensor = decoder(s, places, places, memory, drop)
        return r


# -- parts of a layer


class Norm(nn.Module):
    """LN(x) = g ⊙ (x - mean(x)) / √(var(x) + ε) + b (Ba et al. 2016)."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.g, self.b = unset(d), unset(d)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise rows; rows × d."""
        return layer_norm(x, self.g.shape, self.g, self.b, EPSILON)


class FeedForward(nn.Module):
    """FFN(x) = W_2 max(0, W_1 LN(x) + b_1) + b_2 (section 3.3)."""

    kernel: Kernel = EAGER

    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.norm = Norm(d)
        self.W_1, self.b_1, self.W_2, self.b_2 = unset(f, d), unset(f), unset(d, f), unset(d)

    def forward(self, x: Tensor) -> Tensor:
        """Return what is added to x; rows × d."""
        matmul = self.kernel.matmul
        return matmul(relu(matmul(self.norm(x), self.W_1) + self.b_1), self.W_2) + self.b_2


class Attention(nn.Module):
    """Attention of x_i to memories m_j, in several heads (section 3.2).

    α_ij = softmax_j(W_Q LN(x_i) · W_K m_j / √d_k)          in each head, with its d_k rows of W_Q and W_K
    ATT(x, m)_i = W_O Σ_j α_ij W_V m_j                      the sums of all heads, one below the other
    """

    kernel: Kernel = EAGER

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.norm, self.heads = Norm(d), heads
        self.W_Q, self.W_K, self.W_V, self.W_O = (unset(d, d) for _ in range(4))

    def of_itself(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return W_Q, W_K and W_V times LN(x), which is its own memory; nodes × d each."""
        q, k, v = self.kernel.matmul(self.norm(x), torch.cat([self.W_Q, self.W_K, self.W_V])).chunk(3, 1)
        return q, k, v

    def queries(self, x: Tensor) -> Tensor:
        """Return W_Q LN(x); nodes × d."""
        return self.kernel.matmul(self.norm(x), self.W_Q)

    def memories(self, m: Tensor) -> tuple[Tensor, Tensor]:
        """Return W_K m and W_V m; nodes × d each."""
        k, v = self.kernel.matmul(m, torch.cat([self.W_K, self.W_V])).chunk(2, 1)
        return k, v

    def by_head(self, x: Tensor) -> Tensor:
        """Split rows × positions × d; rows × heads × positions × d_k."""
        return x.view(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def read(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Return the sums of all heads, given q, k and v by head; rows × positions × d."""
        return scaled_dot_product_attention(q, k, v, mask, is_causal=causal).transpose(1, 2).flatten(2)

    def written(self, sums: Tensor) -> Tensor:
        """Return what is added to x; nodes × d."""
        return self.kernel.matmul(sums, self.W_O)


class Places(NamedTuple):
    """Where the packed nodes of a batch are in rows of positions, and back."""

    of_rows: Tensor  # packed node at each position of a row, any node at padding; rows × positions
    of_nodes: Tensor  # position of each packed node, counted over all rows; nodes
    present: Tensor  # whether a position is no padding; rows × 1 × 1 × positions

    @classmethod
    def of(cls, batch: Batch, rows: Tensor | None = None) -> Places:
        """Return the places of a batch, or of its `rows`, which may repeat; then there is no way back."""
        places, width, device = batch.places(), len(batch.active), batch.ids.device
        present = torch.arange(width)[None, :] < batch.lengths()[:, None]
        of_nodes = batch.rows() * width + batch.steps()
        present = present[:, None, None, :].to(device)
        return cls(places, of_nodes, present) if rows is None else cls(places[rows], of_nodes, present[rows])

    @classmethod
    def of_numbers(cls, numbers: Ints, first: Mask, device: torch.device) -> Places:
        """Return the places of nodes numbered in rows, `NOTHING` at padding; where a number is first is its place."""
        arrays = np.maximum(numbers, 0), np.flatnonzero(first), (numbers != NOTHING)[:, None, None, :]
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))

    def spread(self, x: Tensor) -> Tensor:
        """Arrange packed nodes in rows; rows × positions × d."""
        return x.index_select(0, self.of_rows.flatten()).view(*self.of_rows.shape, x.shape[1])

    def pack(self, x: Tensor) -> Tensor:
        """Return the packed nodes of rows; nodes × d."""
        return x.flatten(0, 1).index_select(0, self.of_nodes)


def position_codes(count: int, d: int, like: Tensor) -> Tensor:
    """Return PE(i), i from 0: sin(i / 10000^(k/d)) for even k, cos(i / 10000^((k-1)/d)) for odd k; count × d."""
    even = torch.arange(0, d, 2, dtype=torch.float64)
    angles = torch.arange(count, dtype=torch.float64)[:, None] * torch.exp(-math.log(LONGEST_WAVE) / d * even)
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :d].to(like)


def inputs(e: Tensor, words: Tensor, positions: Tensor, count: int) -> Tensor:
    """Return √d e(x_i) + PE(i) of words at positions i below `count`; nodes × d."""
    d = e.shape[1]
    return math.sqrt(d) * embedding(words, e) + position_codes(count, d, e).index_select(0, positions)


# -- encoder and decoder


class EncoderLayer(nn.Module):
    """The sublayers of a layer of the encoder."""

    def __init__(self, d: int, f: int, heads: int) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(d, heads), FeedForward(d, f)


class DecoderLayer(EncoderLayer):
    """The sublayers of a layer of the decoder, which also looks at the source."""

    def __init__(self, d: int, f: int, heads: int) -> None:
        super().__init__(d, f, heads)
        self.look = Attention(d, heads)


class Encoder(nn.Module):
    """Reads source words (section 3.1).

    h_j = √d e(x_j) + PE(j), and in each layer
    h_j += ATT(h, LN(h))_j
    h_j += FFN(h_j)                                         at last, h_j = LN(h_j)
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        d, f = config.hidden_size, config.feed_forward_size
        if not config.shared:
            self.embedding = unset(config.source_vocabulary_size, d)
        self.layers: Any = nn.ModuleList(EncoderLayer(d, f, config.heads) for _ in range(config.layers))
        self.norm = Norm(d)

    def forward(self, e: Tensor, sources: Batch, drop: Drop = keep) -> Tensor:
        """Return h_j of each of ``sources.packed()``; nodes × d."""
        places = Places.of(sources)
        h = drop(inputs(e, sources.packed(), sources.steps(), len(sources.active)))
        for layer in self.layers:
            h = h + drop(attend(layer.attention, h, places))
            h = h + drop(layer.feed_forward(h))
        normed: Tensor = self.norm(h)
        return normed


class Memory(NamedTuple):
    """What each layer of the decoder reads of the sources; one row per source."""

    layers: tuple[tuple[Tensor, Tensor], ...]  # W_K h and W_V h by head; sources × heads × N × d_k
    present: Tensor  # sources × 1 × 1 × N


class Decoder(nn.Module):
    """Predicts target words (section 3.1).

    s_i = √d e'(y_{i-1}) + PE(i), and in each layer
    s_i += ATT(s, LN(s))_i                                  over positions up to i
    s_i += ATT(s, h)_i                                      h of the source
    s_i += FFN(s_i)                                         at last, r_i = LN(s_i)
    p(y_i | y_<i, x) = softmax(e' r_i + b_G)
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        d, f = config.hidden_size, config.feed_forward_size
        self.embedding, self.b_G = unset(config.target_vocabulary_size, d), unset(config.target_vocabulary_size)
        self.layers: Any = nn.ModuleList(DecoderLayer(d, f, config.heads) for _ in range(config.layers))
        self.norm = Norm(d)

    def forward(self, s: Tensor, targets: Places, readers: Places, memory: Memory, drop: Drop = keep) -> Tensor:
        """Return r_i of each node of targets; nodes × d.

        Nodes are in rows of `targets`, and in those of `readers`, which each read a row of the memory.
        """
        for layer, of_source in zip(self.layers, memory.layers, strict=True):
            s = s + drop(attend(layer.attention, s, targets, causal=True))
            look = layer.look
            q = look.by_head(readers.spread(look.queries(s)))
            s = s + drop(look.written(readers.pack(look.read(q, *of_source, memory.present))))
            s = s + drop(layer.feed_forward(s))
        normed: Tensor = self.norm(s)
        return normed

    def memory(self, h: Tensor, places: Places) -> Memory:
        """Return what each layer reads of h, packed; one row for each of `places`."""
        every = ([layer.look.by_head(places.spread(x)) for x in layer.look.memories(h)] for layer in self.layers)
        return Memory(tuple((k, v) for k, v in every), places.present)


def attend(attention: Attention, x: Tensor, places: Places, *, causal: bool = False) -> Tensor:
    """Return what attention to its own rows adds to x; nodes × d. Padding comes last, so no earlier word sees it."""
    q, k, v = (attention.by_head(places.spread(part)) for part in attention.of_itself(x))
    return attention.written(places.pack(attention.read(q, k, v, None if causal else places.present, causal=causal)))


# -- scoring and search: the same equations, stepped over prefixes of equal length

CELLS = 1 << 13  # words of pairs that are scored at once
READERS = 64  # prefixes that read a source together


class TransformerPrefixes(NamedTuple):
    """Prefixes of targets, all of one length, with what predicts the next word; one row each."""

    sources: Tensor  # row of each prefix's source in the memory
    layers: tuple[tuple[Tensor, Tensor], ...]  # keys and values so far, by head; rows × heads × length × d_k
    looks: Tensor  # queries to the source of the layer that aligns best; d
    r: Tensor  # predicts the next word; d


class TransformerStepper(NetworkStepper):
    """Steps the Transformer over prefixes of equal length."""

    _model: Transformer

    def _prepare(self) -> None:
        config = self._model.config
        self._aligning = max(config.layers - 2, 0)  # the layer before the last aligns best (Garg et al. 2019)

    @torch.inference_mode()
    def encode(self, ids: Ids, lengths: Lengths) -> tuple[Memory, Ints]:
        """See `Stepper`; equal sources are read once, and all are padded to the longest."""
        (distinct, of_distinct), row_of = distinct_phrases(ids, lengths)
        order = np.argsort(-of_distinct, kind="stable")
        sources = Batch.from_flat(*take_phrases(distinct, of_distinct, order), self.device)
        memory = self._model.decoder.memory(self._model.read(sources), Places.of(sources))
        return memory, np.argsort(order)[row_of]

    @torch.inference_mode()
    def start(self, encoded: Memory) -> TransformerPrefixes:
        """Return the empty prefix of each source, after a step with ``</s>``."""
        sources = torch.arange(len(encoded.present), device=self.device)
        nothing = tuple((k[:, :, :0], v[:, :, :0]) for k, v in encoded.layers)
        return self._next(encoded, sources, nothing, torch.full_like(sources, END_ID))

    @torch.inference_mode()
    def step(self, encoded: Memory, prefixes: TransformerPrefixes, rows: Tensor, words: Tensor) -> TransformerPrefixes:
        """See `Stepper`."""
        return self._next(encoded, prefixes.sources[rows], take_rows(prefixes.layers, rows), words)

    def _next(
        self, encoded: Memory, sources: Tensor, layers: Sequence[tuple[Tensor, Tensor]], words: Tensor
    ) -> TransformerPrefixes:
        """Return the prefixes after one more word each."""
        decoder, length, extended, looks = self._model.decoder, layers[0][0].shape[2], [], []
        present = encoded.present[sources]
        s = inputs(decoder.embedding, words, torch.full_like(words, length), length + 1)
        for layer, before, source in zip(decoder.layers, layers, encoded.layers, strict=True):
            attention, look = layer.attention, layer.look
            q, *new = (attention.by_head(part[:, None]) for part in attention.of_itself(s))
            keys, values = (torch.cat(both, 2) for both in zip(before, new, strict=True))
            extended.append((keys, values))
            s = s + attention.written(attention.read(q, keys, values)[:, 0])
            looks.append(look.queries(s))
            of_source = take_rows(source, sources)
            s = s + look.written(look.read(look.by_head(looks[-1][:, None]), *of_source, present)[:, 0])
            s = s + layer.feed_forward(s)
        return TransformerPrefixes(sources, tuple(extended), looks[self._aligning], decoder.norm(s))

    @torch.inference_mode()
    def pair_log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """Return log p of pairs; all distinct prefixes of the targets of each source are computed at once."""
        encoded, row_of = self.encode(*sources)
        ids, order, new = sort_prefixes(*targets, row_of)
        numbers, first = number_prefixes(ids, row_of[order], new)
        readers, read = readers_of(np.repeat(row_of[order], first.sum(1)), self.device)
        prefixes, memory = Places.of_numbers(numbers, first, self.device), take_rows(encoded, read)
        r = self._model.decoder(self._inputs(ids, prefixes.of_nodes), prefixes, readers, memory)
        there = numbers != NOTHING
        by_prefix = np.argsort(numbers[there], kind="stable")
        above, words = numbers[there][by_prefix], ids[there][by_prefix]
        blocks = node_blocks(above, len(r), self.vocabulary_size, self.device)
        log_probs = self._output.chosen(r, self._there(above), self._there(words), blocks)
        values = np.empty(len(ids))
        values[order] = np.bincount(np.nonzero(there)[0][by_prefix], log_probs.cpu())
        return values

    def _inputs(self, ids: Ints, places: Tensor) -> Tensor:
        """Return what the decoder reads before words at some places of targets; places × d."""
        before, width = np.column_stack([np.full(len(ids), END_ID), ids[:, :-1]]), ids.shape[1]
        words = self._there(before).flatten().index_select(0, places)
        return inputs(self._model.decoder.embedding, words, places % width, width)

    def _there(self, array: Ints) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def alignment(self, encoded: Memory, prefixes: TransformerPrefixes) -> Tensor:
        """Return the mean α of the heads of the layer before the last; prefixes × longest N, zeros at padding."""
        look = self._model.decoder.layers[self._aligning].look
        q, k = look.by_head(prefixes.looks[:, None]), encoded.layers[self._aligning][0][prefixes.sources]
        energies = (q @ k.transpose(2, 3)).squeeze(2) / math.sqrt(k.shape[3])
        energies = energies.masked_fill(~encoded.present[prefixes.sources].squeeze(1), -torch.inf)
        alphas: Tensor = energies.softmax(2).mean(1)
        return alphas

    def _read_out(self, encoded: Memory, prefixes: TransformerPrefixes) -> Tensor:
        """Return r of each prefix; prefixes × d."""
        return prefixes.r


def readers_of(sources: Ints, device: torch.device) -> tuple[Places, Tensor]:
    """Arrange prefixes, ordered by source, in rows of at most `READERS` of a source; return rows and their sources."""
    counts = np.bincount(sources)
    rows = -(-counts // READERS)
    lengths = np.full(rows.sum(), READERS)
    lengths[np.cumsum(rows) - 1] = counts - READERS * (rows - 1)
    numbers = in_slots(np.arange(len(sources)), lengths, int(lengths.max()), NOTHING)
    read = torch.from_numpy(np.repeat(np.arange(len(counts)), rows))
    return Places.of_numbers(numbers, numbers != NOTHING, device), read.to(device)


class TransformerPairs:
    """Scores pairs, few enough at once for the processor's cache."""

    def __init__(self, stepper: TransformerStepper) -> None:
        self.stepper = stepper
        self.device = stepper.device

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """See `PairNetwork`; pairs of one source stay together if they can."""
        count, longest = len(targets[1]), int(max(sources[1].max(), targets[1].max()))
        if count == 1 or count * (longest + 1) <= CELLS:
            return self.stepper.pair_log_probs(sources, targets)
        order = np.argsort(distinct_phrases(*sources)[1], kind="stable")
        values = np.empty(count)
        for part in np.array_split(order, 2):
            values[part] = self.log_probs(take_phrases(*sources, part), take_phrases(*targets, part))
        return values


TRANSFORMER = Architecture(
    "transformer",
    "Transformer",
    "TRANSFORMER",
    TransformerConfig,
    Transformer,
    stepper=TransformerStepper,
    pairs=lambda model, device, dtype, _floor: TransformerPairs(TransformerStepper(model, device, dtype)),
    format=2,
)
