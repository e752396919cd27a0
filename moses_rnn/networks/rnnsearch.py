"""RNNsearch (Bahdanau, Cho and Bengio 2015; arXiv 1409.0473, section 3, appendices A and B).

x_1 … x_N is the source with ``</s>``, y_1 … y_{T+1} the target with ``</s>``. e(·) and e'(·) are embeddings of source
and target words, e'(y_0) = 0. H hidden units, E embedding dimensions, A units of alignment, M maxout units,
R output rank, K words. A matrix W maps a column vector; on rows of states that is ``linear(x, W)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, pad

from moses_rnn.networks.batches import Batch, Ints, Lengths, row_slices, take_rows
from moses_rnn.networks.config import Architecture, Config, Rare, Size, SizeOrNone, Unit
from moses_rnn.networks.network import (
    Drop,
    GatedStep,
    NetworkStepper,
    TranslationNetwork,
    keep,
    orthogonal_or_gaussian,
    previous_embeddings,
    unset,
)
from moses_rnn.networks.recurrence import gates_before, state_before
from moses_rnn.networks.softmax import Output
from moses_rnn.networks.tries import distinct_phrases, take_phrases
from moses_rnn.networks.vocabulary import Ids

# -- the encoder: annotates words with a gated layer in each direction over the source (section 3.2)


class Gru(GatedStep):
    """A gated recurrent layer, as in an RNN Encoder-Decoder."""

    def __init__(self, H: int, E: int) -> None:
        super().__init__()
        self._add_cell(H, E)


class Annotator(nn.Module):
    """Annotates source words with one layer in each direction over the same embeddings (section 3.2).

    →h_j = GRU→(e(x_j), →h_{j-1})      →h_0 = 0          z_j, r_j, h~_j as of an RNN Encoder-Decoder's encoder
    ←h_j = GRU←(e(x_j), ←h_{j+1})      ←h_{N+1} = 0
    h_j  = [→h_j ; ←h_j]
    """

    def __init__(self, K: int, E: int, H: int) -> None:
        super().__init__()
        self.embedding = unset(K, E)
        self.layers = Gru(H, E), Gru(H, E)  # forward and backward
        # Checkpoints use the name "forward", but it is a method of modules, so it cannot be an attribute.
        self._modules |= dict(zip(("forward", "backward"), self.layers, strict=True))

    def annotations(self, sources: Batch, drop: Drop = keep) -> Tensor:
        """Return h_j of every word of each source, repeating the last one in shorter sources; S × longest N × 2H."""
        e = drop(embedding(sources.packed(), self.embedding))  # nodes × E
        mirrored, places = sources.mirrored(), sources.places()
        to_right, to_left = (  # each packed in its reading order; nodes × H
            layer.states(layer.inputs(read), None, None, sources.active)
            for layer, read in zip(self.layers, (e, e[mirrored]), strict=True)
        )
        h = torch.cat([to_right, to_left[mirrored]], 1)  # nodes × 2H
        annotations: Tensor = h.index_select(0, places.flatten()).view(*places.shape, h.shape[1])
        return annotations


# -- soft alignment: where in the source the next target word comes from (section 3.1)


class Alignment(nn.Module):
    """The weights of the alignment, without biases; U_a h_j is computed once for all target words.

    e_ij = v · tanh(W_a s_{i-1} + U_a h_j)                  j = 1 … N
    α_ij = exp(e_ij) / Σ_k exp(e_ik)                        (6); over this source's positions only
    c_i  = Σ_j α_ij h_j                                     (5)
    """

    def __init__(self, H: int, A: int) -> None:
        super().__init__()
        self.W_a, self.U_a, self.v = unset(A, H), unset(A, 2 * H), unset(A)


class Annotations(NamedTuple):
    """The annotations of sources, padded to the longest; one row each.

    Only `look` touches padding, and gives it no weight; its values are finite but arbitrary.
    """

    h: Tensor  # h_j = [→h_j ; ←h_j]; sources × N × 2H
    Uh: Tensor  # U_a h_j; sources × N × A
    present: Tensor  # whether a source has a word at a position; sources × N

    def first(self, rows: int) -> Annotations:
        """Return the first rows."""
        return self if rows == len(self.h) else Annotations(*(tensor[:rows] for tensor in self))


def look(Ws: Tensor, v: Tensor, annotations: Annotations) -> tuple[Tensor, Tensor]:
    """Return c_i (rows × 2H) and α (rows × N, 0 at padding) for W_a s_{i-1} and one row of annotations each."""
    e = torch.tanh(Ws[:, None, :] + annotations.Uh).to(v.dtype) @ v  # e_ij; rows × N
    alpha = torch.softmax(e.masked_fill(~annotations.present, -torch.inf), 1)
    return torch.bmm(alpha[:, None, :].to(annotations.h.dtype), annotations.h).squeeze(1), alpha


# -- the network

ALIGNMENT_SHARE = 0.1  # deviation of W_a and U_a, relative to the other matrices


@dataclass(frozen=True)
class RnnSearchConfig(Config):
    """Sizes and switches; the defaults are the paper's, except its vocabulary."""

    source_vocabulary_size: Size  # with <unk> and </s>
    target_vocabulary_size: Size
    hidden_size: Size = 1000
    embedding_size: Size = 620
    alignment_size: Size = 1000
    maxout_size: Size = 500
    output_rank: SizeOrNone = 0  # R; 0: one matrix G from the maxout units to the words
    phases: Literal["paper", "groundhog"] = "paper"  # groundhog: as the released code, see Decoder
    unit: Unit = "sentences"  # of its training data
    rare: Rare | None = None  # None: <unk>

    @property
    def width(self) -> int:
        """Units of the hidden layer."""
        return self.hidden_size

    @property
    def description(self) -> str:
        """Description for logs."""
        return f"RNNsearch, phases of {self.phases}, H {self.hidden_size}"


class RnnSearch(TranslationNetwork):
    """Encoder, alignment and decoder; initial weights are N(0, 0.01²), recurrent ones orthogonal, biases 0 (B.1).

    W_a and U_a are N(0, 0.001²), and v is 0 too: alignments are initially uniform, and the gradient reaches v before
    W_a and U_a.
    """

    deviation = 0.01

    def _build(self, config: RnnSearchConfig) -> None:
        self.encoder = Annotator(config.source_vocabulary_size, config.embedding_size, config.hidden_size)
        self.align = Alignment(config.hidden_size, config.alignment_size)
        self.decoder = Decoder(config)

    def _draw(self, name: str, tensor: Tensor, deviation: float, random: torch.Generator) -> Tensor:
        if name in {"align.W_a", "align.U_a"}:
            return torch.randn(tensor.shape, generator=random) * deviation * ALIGNMENT_SHARE
        return orthogonal_or_gaussian(name, tensor, deviation, random)

    @property
    def output(self) -> Output:
        """G_l, or G, and b_G."""
        return self.decoder.G_l if self.config.output_rank else self.decoder.G, self.decoder.b_G

    def predict(self, sources: Batch, targets: Batch, source_of: Tensor, drop: Drop) -> Tensor:
        """Return t_i, or G_r t_i; `drop` applies to embeddings and maxout."""
        encoded = take_rows(self.read(sources, drop), source_of)
        return self.decoder.read_out(*self.decoder.nodes(encoded, targets, self.align, drop), drop)

    def read(self, sources: Batch, drop: Drop = keep) -> EncodedSentences:
        """Return what depends only on the sources."""
        h = self.encoder.annotations(sources, drop)  # S × N × 2H
        Uh = self.kernel.matmul(h.flatten(0, 1), self.align.U_a).view(*h.shape[:2], -1)
        present = torch.arange(h.shape[1])[None, :] < sources.lengths()[:, None]
        s_0 = self.decoder.first_state(h[:, 0, self.config.hidden_size :])
        return EncodedSentences(Annotations(h, Uh, present.to(h.device)), s_0)


class EncodedSentences(NamedTuple):
    """What the decoder needs of the sources; one row per source."""

    annotations: Annotations
    s_0: Tensor  # H


class Decoder(Gru):
    """Predicts target words y_1 … y_T from annotations (section 3.1, appendix A.2).

    s_0  = tanh(V ←h_1 + b_V)
    z    = σ(W_z e + U_z s + C_z c + b_z)                   z keeps the old state; the paper writes 1 - z
    r    = σ(W_r e + U_r s + C_r c + b_r)
    s~   = tanh(W e + U (r ⊙ s) + C c + b)
    GRU'(e, s, c) = z ⊙ s + (1 - z) ⊙ s~
    t~   = O_h s + O_y e + O_c c + b_O
    t_k  = max(t~_{2k-1}, t~_{2k})                          maxout
    p    = softmax(G t + b_G), or softmax(G_l G_r t + b_G)

    The switch `phases` decides the order; c_i is looked up with s_{i-1} in both:
    "paper"      s_i = GRU'(e'(y_{i-1}), s_{i-1}, c_i), and y_i is predicted from s_i, e'(y_{i-1}) and c_i
    "groundhog"  y_i is predicted from s_{i-1}, e'(y_{i-1}) and c_i, and s_i = GRU'(e'(y_i), s_{i-1}, c_i)
    """

    def __init__(self, config: RnnSearchConfig) -> None:
        super().__init__(config.hidden_size, config.embedding_size)
        H, E, M = config.hidden_size, config.embedding_size, config.maxout_size
        K, R = config.target_vocabulary_size, config.output_rank
        self.embedding = unset(K, E)
        self.C, self.C_z, self.C_r = unset(H, 2 * H), unset(H, 2 * H), unset(H, 2 * H)
        self.V, self.b_V = unset(H, H), unset(H)
        self.O_h, self.O_y, self.O_c, self.b_O = unset(2 * M, H), unset(2 * M, E), unset(2 * M, 2 * H), unset(2 * M)
        if R:
            self.G_r, self.G_l = unset(R, M), unset(K, R)
        else:
            self.G = unset(K, M)
        self.b_G = unset(K)
        self.updates_first = config.phases == "paper"

    def first_state(self, h_1: Tensor) -> Tensor:
        """Return s_0 from ←h_1; rows × H."""
        return torch.tanh(self.kernel.matmul(h_1, self.V) + self.b_V)

    def nodes(
        self, encoded: EncodedSentences, targets: Batch, align: Alignment, drop: Drop
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the predictors of ``targets.packed()``: s_i or s_{i-1} (nodes × H), e'(y_{i-1}) (E) and c_i (2H).

        `encoded` has the source of each target; `phases` decides which state predicts.
        """
        e = drop(previous_embeddings(self.embedding, targets))  # nodes × E
        inputs = torch.split(self.inputs(e), targets.active)
        s, c = (torch.cat(tensors) for tensors in zip(*self._steps(encoded, inputs, align), strict=True))
        return s, e, c

    def _steps(
        self, encoded: EncodedSentences, inputs: tuple[Tensor, ...], align: Alignment
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the state and the context that predict y_1, y_2, …; rows × H and rows × 2H.

        `inputs` are for e'(y_0), e'(y_1), …, each of the targets with a word to predict after it.
        """
        rounded = self.kernel.rounded
        W_s = rounded(torch.cat([align.W_a, self.U_z, self.U_r]))  # multiplies s_{i-1}
        C, U = rounded(torch.cat([self.C_z, self.C_r, self.C])), rounded(self.U)
        s = encoded.s_0
        for i, x in enumerate(inputs):
            s = s[: len(x)]
            W_as, U_s = torch.split(product(s, W_s), [len(align.v), 2 * s.shape[1]], 1)
            c, _ = look(W_as, align.v, encoded.annotations.first(len(x)))
            if self.updates_first:
                s = update(x, U_s, s, c, C, U)
                yield s, c
            else:
                yield s, c
                if i + 1 < len(inputs):
                    rows = len(inputs[i + 1])
                    s = update(inputs[i + 1], U_s[:rows], s[:rows], c[:rows], C, U)

    def read_out(self, s: Tensor, e: Tensor, c: Tensor, drop: Drop = keep) -> Tensor:
        """Return t_i, or G_r t_i, the input of the softmax; nodes × M or nodes × R."""
        matmul = self.kernel.matmul
        t = matmul(s, self.O_h) + matmul(e, self.O_y) + matmul(c, self.O_c) + self.b_O  # nodes × 2M
        t = drop(torch.maximum(*t.view(len(t), -1, 2).unbind(2)))  # nodes × M
        return matmul(t, self.G_r) if hasattr(self, "G_r") else t


def update(x: Tensor, U_s: Tensor, s: Tensor, c: Tensor, C: Tensor, U: Tensor) -> Tensor:
    """Return GRU'(e, s, c); rows × H. `x` is the part of e and biases, `U_s` of U_z and U_r; C stacks C_z, C_r, C."""
    Cc = product(c, C)
    gates, rs = gates_before(x, U_s, Cc, s)
    return state_before(x, product(rs, U), Cc, gates, s)[0]


def product(x: Tensor, matrix: Tensor) -> Tensor:
    """Multiply x by a matrix in the type of products; return the product in the type of x."""
    return linear(x.to(matrix.dtype), matrix).to(x.dtype)


# -- scoring and search: the same equations, stepped over packed rows

ENERGIES_AT_ONCE = 1 << 22  # prefixes × positions × A in one piece


class SearchPrefixes(NamedTuple):
    """Prefixes of targets with the decoder's inputs for the next word; one row each."""

    sources: Tensor  # row of each prefix's source in the encoded sources
    e: Tensor  # e'(y_{i-1}), zeros before the first word; E
    s: Tensor  # s_i, or s_{i-1} if the state is updated after the word; H
    c: Tensor  # c_i; 2H
    alpha: Tensor  # the weights of c_i; longest N


class RnnSearchStepper(NetworkStepper):
    """Steps RNNsearch over packed rows."""

    _model: RnnSearch

    def _prepare(self) -> None:
        decoder, align = self._model.decoder, self._model.align
        self._W_e = self._weight(decoder.W_z, decoder.W_r, decoder.W)
        self._b = torch.cat([decoder.b_z, decoder.b_r, decoder.b])
        self._W_a, self._U_gates = self._weight(align.W_a), self._weight(decoder.U_z, decoder.U_r)
        self._C = self._weight(decoder.C_z, decoder.C_r, decoder.C)
        self._U = self._weight(decoder.U)
        self._updates_first = decoder.updates_first

    @torch.inference_mode()
    def encode(self, ids: Ids, lengths: Lengths) -> tuple[EncodedSentences, Ints]:
        """See `Stepper`; equal sources are read once, and all are padded to the longest."""
        (distinct, of_distinct), row_of = distinct_phrases(ids, lengths)
        order = np.argsort(-of_distinct, kind="stable")
        sources = Batch.from_flat(*take_phrases(distinct, of_distinct, order), self.device)
        return self._model.read(sources), np.argsort(order)[row_of]

    @torch.inference_mode()
    def start(self, encoded: EncodedSentences) -> SearchPrefixes:
        """Return the empty prefix of each source after its first look and, in the paper's phases, one update."""
        sources = torch.arange(len(encoded.s_0), device=self.device)
        e = encoded.s_0.new_zeros(len(sources), self._model.config.embedding_size)
        c, alpha = self._look(encoded, sources, encoded.s_0)
        s = self._update(e, encoded.s_0, c) if self._updates_first else encoded.s_0
        return SearchPrefixes(sources, e, s, c, alpha)

    @torch.inference_mode()
    def step(self, encoded: EncodedSentences, prefixes: SearchPrefixes, rows: Tensor, words: Tensor) -> SearchPrefixes:
        """See `Stepper`."""
        sources, s = prefixes.sources.index_select(0, rows), prefixes.s.index_select(0, rows)
        e = self._model.decoder.embedding.index_select(0, words)
        if self._updates_first:
            c, alpha = self._look(encoded, sources, s)
            return SearchPrefixes(sources, e, self._update(e, s, c), c, alpha)
        s = self._update(e, s, prefixes.c.index_select(0, rows))
        return SearchPrefixes(sources, e, s, *self._look(encoded, sources, s))

    def alignment(self, encoded: EncodedSentences, prefixes: SearchPrefixes) -> Tensor:
        """Return α of each prefix's next word; prefixes × longest N, zeros at padding."""
        return prefixes.alpha

    def summaries(self, ids: Ids, lengths: Lengths) -> Tensor:
        """Return s_0 = tanh(V ←h_1 + b_V) of each source, the decoder's state before it looks; sources × H."""
        encoded, row_of = self.encode(ids, lengths)
        return encoded.s_0[row_of]

    def _look(self, encoded: EncodedSentences, sources: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Return c and α for states and their sources; rows × 2H and rows × longest N.

        Only this work grows with the padding. It is done in pieces of bounded size, each as wide as its longest source
        if that is known without waiting for the device.
        """
        Ws, at_once = self._matmul(s, self._W_a), max(ENERGIES_AT_ONCE // encoded.annotations.Uh[0].numel(), 1)
        pieces = [self._look_at(encoded.annotations, sources[rows], Ws[rows]) for rows in row_slices(len(s), at_once)]
        if not pieces:
            return s.new_zeros(0, encoded.annotations.h.shape[2]), s.new_zeros(0, encoded.annotations.h.shape[1])
        c, alpha = (torch.cat(tensors) for tensors in zip(*pieces, strict=True))
        return c, alpha

    def _look_at(self, annotations: Annotations, sources: Tensor, Ws: Tensor) -> tuple[Tensor, Tensor]:
        present, N = annotations.present.index_select(0, sources), annotations.h.shape[1]
        width = int(present.sum(1).max()) if self.device.type == "cpu" else N
        h, Uh = (tensor[:, :width].index_select(0, sources) for tensor in (annotations.h, annotations.Uh))
        c, alpha = look(Ws, self._model.align.v, Annotations(h, Uh, present[:, :width]))
        return c, pad(alpha, (0, N - width))

    def _update(self, e: Tensor, s: Tensor, c: Tensor) -> Tensor:
        """Return GRU'(e, s, c); rows × H."""
        x = self._matmul(e, self._W_e) + self._b
        return update(x, self._matmul(s, self._U_gates), s, c, self._C, self._U)

    def _read_out(self, encoded: EncodedSentences, prefixes: SearchPrefixes) -> Tensor:
        """Return t_i, or G_r t_i, of each prefix; prefixes × M or prefixes × R."""
        return self._model.decoder.read_out(prefixes.s, prefixes.e, prefixes.c)


RNNSEARCH = Architecture(
    "rnnsearch", "RNNsearch", "SEARCH", RnnSearchConfig, RnnSearch, stepper=RnnSearchStepper, format=2
)
