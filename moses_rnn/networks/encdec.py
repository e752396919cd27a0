"""The RNN Encoder-Decoder of Cho et al. (EMNLP 2014; arXiv 1406.1078v3, section 2 and appendix A).

Letters are the paper's: e is the source phrase, f the target phrase, so log p(f|e) is log p(target | source).
x_t and y_t are the t-th source and target word, e(·) an embedding, h and h' the states of encoder and decoder, c the
summary of the source phrase. H hidden units, E embedding dimensions, M maxout units, R output rank, K words.
A matrix W maps a column vector; on rows of states that is ``x @ W.T``, written ``linear(x, W)``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from moses_rnn.native import PRECISIONS, NativeCore
from moses_rnn.networks.batches import Batch, Ints, Lengths, Values, take_rows
from moses_rnn.networks.config import FIRST_NETWORK, Architecture, Config, SettingError, Size
from moses_rnn.networks.native_learning import addresses, numbers
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
from moses_rnn.networks.softmax import Output
from moses_rnn.networks.tries import IdPhrases, Trie, build_trie, last_states
from moses_rnn.networks.vocabulary import Ids

SWITCHES = {
    "paper": {"summary": "tanh", "first_step": "zero-embedding", "decoder_reset": "after"},
    "groundhog": {"summary": "last", "first_step": "initial-state", "decoder_reset": "before"},
}
Reset = Literal["after", "before"]


@dataclass(frozen=True)
class EncDecConfig(Config):
    """Sizes and switches; `variant` names the three switches together (see SWITCHES)."""

    source_vocabulary_size: Size  # with <unk> and </s>
    target_vocabulary_size: Size
    hidden_size: Size = 1000
    embedding_size: Size = 100
    maxout_size: Size = 500
    output_rank: Size = 100
    variant: Literal["paper", "groundhog", "custom"] = "paper"
    summary: Literal["tanh", "last"] = "tanh"  # last: c = h_N
    first_step: Literal["zero-embedding", "initial-state"] = "zero-embedding"  # initial-state: h'_0 predicts y_1
    decoder_reset: Reset | None = "after"  # before: r' gates h' before the product, and never C c

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_resets()
        if self.variant != "custom" and not _is_named(self.variant, vars(self)):
            self.refuse("variant", "paper or groundhog with their three switches, otherwise custom")

    def _check_resets(self) -> None:
        if self.decoder_reset is None:
            self.refuse("decoder_reset", "'after' or 'before'")

    @classmethod
    def complete(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the switches of the variant, which names those that are given if it can."""
        variant = given.get("variant", "paper")
        if variant not in [*SWITCHES]:
            raise SettingError("variant", " or ".join(SWITCHES), variant)
        switches = {key: given.get(key, value) for key, value in SWITCHES[variant].items()}
        named = next((name for name in SWITCHES if _is_named(name, switches)), "custom")
        return {**given, "variant": named, **switches}

    @property
    def width(self) -> int:
        """Units of the hidden layer."""
        return self.hidden_size

    @property
    def description(self) -> str:
        """Description for logs."""
        return f"{self.variant} variant, H {self.hidden_size}"


def _is_named(variant: str, switches: Mapping[str, object]) -> bool:
    """Whether a variant has these switches; None stands for one that the cell does not have."""
    return all(switches[key] in (value, None) for key, value in SWITCHES[variant].items())


class EncDec(TranslationNetwork):
    """Encoder and decoder; initial weights are N(0, 0.01²), recurrent ones orthogonal, biases 0 (appendix A.1)."""

    deviation = 0.01

    def _build(self, config: Any) -> None:
        self.encoder, self.decoder = Encoder(config), Decoder(config)

    _draw = staticmethod(orthogonal_or_gaussian)

    @property
    def output(self) -> Output:
        """G_l and b_G."""
        return self.decoder.G_l, self.decoder.b_G

    def predict(self, sources: Batch, targets: Batch, source_of: Tensor, drop: Drop) -> Tensor:
        """Return G_r s_t; `drop` applies to embeddings and maxout."""
        c = self.encoder(sources, drop)  # S × H
        encoded = take_rows(self.decoder.source_parts(c), source_of)  # T rows
        return self.decoder.read_out(*self.decoder.nodes(encoded, targets, drop), drop)


class Encoder(GatedStep):
    """Reads source words x_1 … x_N, the last of them ``</s>``, into the summary c (section 2.3, appendix A.1.1).

    z_t  = σ(W_z e(x_t) + U_z h_{t-1} + b_z)                update gate (6): z keeps the old state
    r_t  = σ(W_r e(x_t) + U_r h_{t-1} + b_r)                reset gate (5)
    h~_t = tanh(W e(x_t) + U (r_t ⊙ h_{t-1}) + b)           (8)
    h_t  = z_t ⊙ h_{t-1} + (1 - z_t) ⊙ h~_t                 (7); h_0 = 0
    c    = tanh(V h_N + b_V)                                or h_N, depending on `summary`
    """

    def __init__(self, config: EncDecConfig) -> None:
        super().__init__()
        self.config = config
        H, E = config.hidden_size, config.embedding_size
        self.embedding = unset(config.source_vocabulary_size, E)
        self._add_cell(H, E)
        if config.summary == "tanh":
            self.V, self.b_V = unset(H, H), unset(H)

    def forward(self, sources: Batch, drop: Drop = keep) -> Tensor:
        """Return the summary c of each source phrase; S × H."""
        states = self.states(*self.operands(sources, drop))  # nodes × H
        return self.summary(states.index_select(0, sources.last()))

    def operands(self, sources: Batch, drop: Drop = keep) -> tuple[Tensor, None, None, list[int]]:
        """Return the recurrence's operands: only words."""
        e = drop(embedding(sources.packed(), self.embedding))  # nodes × E
        return self.inputs(e), None, None, sources.active

    def summary(self, h_N: Tensor) -> Tensor:
        """Return c of each last state; S × H."""
        return h_N if self.config.summary == "last" else torch.tanh(self.kernel.matmul(h_N, self.V) + self.b_V)


class EncodedPhrases(NamedTuple):
    """What the decoder needs of the sources; one row per source."""

    h_0: Tensor  # tanh(V' c + b_V'); H
    gates: Tensor  # C_z c + b'_z and C_r c + b'_r; 2H
    Cc: Tensor  # H
    O_cc: Tensor  # O_c c + b_O; 2M


class Decoder(GatedStep):
    """Predicts target words y_1 … y_T from the summary c, which enters all gates and the read-out (appendix A.1.2).

    h'_0  = tanh(V' c + b_V')                               e(y_0) = 0
    z'_t  = σ(W'_z e(y_{t-1}) + U'_z h'_{t-1} + C_z c + b'_z)
    r'_t  = σ(W'_r e(y_{t-1}) + U'_r h'_{t-1} + C_r c + b'_r)
    h~'_t = tanh(W' e(y_{t-1}) + r'_t ⊙ (U' h'_{t-1} + C c) + b')
    h'_t  = z'_t ⊙ h'_{t-1} + (1 - z'_t) ⊙ h~'_t
    s'_t  = O_h h'_t + O_y e(y_{t-1}) + O_c c + b_O
    s_t,i = max(s'_t,2i-1 , s'_t,2i)                        maxout
    p(y_t | y_<t, e) = softmax(G_l G_r s_t + b_G)

    With `decoder_reset` "before", h~'_t = tanh(W' e(y_{t-1}) + U' (r'_t ⊙ h'_{t-1}) + C c + b') instead; with
    `first_step` "initial-state", y_1 is predicted from h'_0, without a step before it.
    """

    def __init__(self, config: EncDecConfig) -> None:
        super().__init__()
        self.config = config
        H, E, M = config.hidden_size, config.embedding_size, config.maxout_size
        K, R = config.target_vocabulary_size, config.output_rank
        self.resets_after = config.decoder_reset == "after"
        self.embedding = unset(K, E)
        self._add_cell(H, E)
        self.V, self.b_V = unset(H, H), unset(H)
        self._add_context(H)
        self.O_h, self.O_c, self.O_y, self.b_O = unset(2 * M, H), unset(2 * M, H), unset(2 * M, E), unset(2 * M)
        self.G_r, self.G_l, self.b_G = unset(R, M), unset(K, R), unset(K)

    def _add_context(self, H: int) -> None:
        self.C, self.C_z, self.C_r = unset(H, H), unset(H, H), unset(H, H)

    def source_parts(self, c: Tensor) -> EncodedPhrases:
        """Return what depends only on the source; c is S × H."""
        c, matmul = self.kernel.prepared(c), self.kernel.matmul
        C_zc, C_rc, Cc = (matmul(c, C).to(self.b.dtype) for C in (self.C_z, self.C_r, self.C))
        return EncodedPhrases(
            h_0=torch.tanh(matmul(c, self.V) + self.b_V),
            gates=torch.cat([C_zc + self.b_z, C_rc + self.b_r], 1),
            Cc=Cc,
            O_cc=matmul(c, self.O_c) + self.b_O,
        )

    def inputs(self, e: Tensor) -> Tensor:
        """Return a word's part of the sums in z', r' and h~', with only the bias of h~'; nodes × 3H."""
        We = self.kernel.matmul(e, torch.cat([self.W_z, self.W_r, self.W]))
        no_b = torch.zeros_like(self.b)
        return We + torch.cat([no_b, no_b, self.b])

    def nodes(self, encoded: EncodedPhrases, targets: Batch, drop: Drop) -> tuple[Tensor, Tensor, Tensor]:
        """Return the predictors of ``targets.packed()``: h'_t (nodes × H), e(y_{t-1}) (E) and O_c c + b_O (2M)."""
        e = drop(previous_embeddings(self.embedding, targets))  # nodes × E
        h = self.states(*self.operands(encoded, e, targets))
        if self.config.first_step == "initial-state":
            h = torch.cat([encoded.h_0, h])
        return h, e, encoded.O_cc.index_select(0, targets.rows())

    def operands(self, encoded: EncodedPhrases, e: Tensor, targets: Batch) -> tuple[Tensor, Tensor, Tensor, list[int]]:
        """Return the recurrence's operands: words (without e(y_0) for "initial-state"), c and h'_0."""
        skipped = 0 if self.config.first_step == "zero-embedding" else 1
        x = self.inputs(e[targets.active[0] * skipped :])
        return x, torch.cat([encoded.gates, encoded.Cc], 1), encoded.h_0, targets.active[skipped:]

    def read_out(self, h: Tensor, e: Tensor, O_cc: Tensor, drop: Drop = keep) -> Tensor:
        """Return G_r s_t, the input of the softmax; nodes × R."""
        matmul = self.kernel.matmul
        s = matmul(h, self.O_h) + matmul(e, self.O_y) + O_cc  # s'_t; nodes × 2M
        s = torch.maximum(*s.view(len(s), -1, 2).unbind(2))  # s_t; nodes × M
        return matmul(drop(s), self.G_r)


# -- scoring and search: the same equations over tries of phrases

# Each distinct source prefix is stepped once, and the terms in c of each source are computed once. Products with a
# common operand are merged; products may be bfloat16, while states, gates and normalisation are float32.


class EncDecPrefixes(NamedTuple):
    """Prefixes of target phrases with the decoder's inputs for the next word; one row each."""

    sources: Tensor  # row of each prefix's source in the encoded sources
    e: Tensor  # e(y_{t-1}), zeros before the first word, in the type of products; E
    state: Tensor  # h'_t; H. Other cells: all carried tensors, concatenated


class EncDecStepper(NetworkStepper):
    """Steps the RNN Encoder-Decoder over packed rows."""

    _model: EncDec

    def _prepare(self) -> None:
        encoder, decoder = self._model.encoder, self._model.decoder
        self._x_e, self._x_W, self._x_U = map(self._weight, (encoder.embedding, encoder.W, encoder.U))
        self._x_gates = self._weight(_beside(encoder.W_z, encoder.U_z), _beside(encoder.W_r, encoder.U_r))
        self._x_gates_b = torch.cat([encoder.b_z, encoder.b_r])
        self._x_candidate = torch.cat([self._x_W, self._x_U], 1)
        # maxout pairs the units (0, 1), (2, 3), …; with even units first, it pairs two halves
        units = torch.arange(len(decoder.b_O), device=self.device).view(-1, 2).T.flatten()
        self._terms_W = self._weight(decoder.V, decoder.C_z, decoder.C_r, decoder.C, decoder.O_c[units])
        no_b = torch.zeros_like(decoder.b)
        self._terms_b = torch.cat([decoder.b_V, decoder.b_z, decoder.b_r, no_b, decoder.b_O[units]])
        self._y_e, self._W, self._U = map(self._weight, (decoder.embedding, decoder.W, decoder.U))
        self._y_gates = self._weight(_beside(decoder.W_z, decoder.U_z), _beside(decoder.W_r, decoder.U_r))
        self._O = self._weight(_beside(decoder.O_y, decoder.O_h)[units])

    def encode(self, ids: Ids, lengths: Lengths) -> tuple[EncodedPhrases, Ints]:
        """See `Stepper`; each distinct prefix of the sources is stepped once."""
        sources = build_trie(ids, lengths)
        return self.encode_trie(sources), sources.leaf_of

    def summaries(self, ids: Ids, lengths: Lengths) -> Tensor:
        """Return c of each source; sources × H."""
        sources = build_trie(ids, lengths)
        return self._summaries(sources)[sources.leaf_of]

    @torch.inference_mode()
    def encode_trie(self, sources: Trie) -> EncodedPhrases:
        """Return every distinct source, encoded, in the order of the trie's leaves."""
        return self._source_parts(self._summaries(sources))

    @torch.inference_mode()
    def _summaries(self, sources: Trie) -> Tensor:
        """Return c of every distinct source, in the same order."""
        nothing = torch.zeros(sources.roots, self._model.config.hidden_size, dtype=self._dtype, device=self.device)
        last = last_states(sources, self.device, self._begin(nothing), self._encoder_step)
        return self._model.encoder.summary(self._shown(last).contiguous())

    @torch.inference_mode()
    def start(self, encoded: EncodedPhrases) -> EncDecPrefixes:
        """Return the empty prefix of each source: y_1 is predicted from h'_0, or after a step with e(y_0) = 0."""
        sources = torch.arange(len(encoded.h_0), device=self.device)
        e = torch.zeros(len(sources), self._model.config.embedding_size, dtype=self._product_dtype, device=self.device)
        state = self._begin(encoded.h_0)
        if self._model.config.first_step == "zero-embedding":
            state = self._decoder_step(e, state, sources, encoded)
        return EncDecPrefixes(sources, e, state)

    @torch.inference_mode()
    def step(self, encoded: EncodedPhrases, prefixes: EncDecPrefixes, rows: Tensor, words: Tensor) -> EncDecPrefixes:
        """See `Stepper`."""
        sources, e = prefixes.sources[rows], self._y_e.index_select(0, words)
        state = self._decoder_step(e, prefixes.state.index_select(0, rows), sources, encoded)
        return EncDecPrefixes(sources, e, state)

    # -- methods that other cells override; each row is a node of a trie or of a beam

    def _begin(self, h_0: Tensor) -> Tensor:
        return h_0

    def _shown(self, state: Tensor) -> Tensor:
        """Return h of a state."""
        return state

    def _source_parts(self, c: Tensor) -> EncodedPhrases:
        H = self._model.config.hidden_size
        Wc = self._matmul(c, self._terms_W) + self._terms_b
        h_0, gates, Cc, O_cc = torch.split(Wc, [H, 2 * H, H, Wc.shape[1] - 4 * H], 1)
        return EncodedPhrases(h_0.tanh(), gates.contiguous(), Cc.contiguous(), O_cc.contiguous())

    def _encoder_step(self, words: Tensor, states: Tensor, above: Tensor) -> Tensor:
        """Return the encoder's state after each node's word, from the row `above` of the states."""
        e, h = self._x_e.index_select(0, words), states.index_select(0, above)
        z, r = self._matmul(_beside(e, h.to(e.dtype)), self._x_gates).add_(self._x_gates_b).sigmoid_().chunk(2, 1)
        if self._model.encoder.resets_after:
            h_tilde = self._matmul(h, self._x_U).mul_(r).add_(self._matmul(e, self._x_W))
        else:
            h_tilde = self._matmul(_beside(e, (r * h).to(e.dtype)), self._x_candidate)
        return torch.lerp(h_tilde.add_(self._model.encoder.b).tanh_(), h, z)

    def _decoder_step(self, e: Tensor, h: Tensor, sources: Tensor, encoded: EncodedPhrases) -> Tensor:
        """Return the decoder's state after the word with embedding e; `sources` are rows of `encoded`."""
        eh = _beside(e, h.to(e.dtype))
        z, r = self._matmul(eh, self._y_gates).add_(encoded.gates.index_select(0, sources)).sigmoid_().chunk(2, 1)
        Cc = encoded.Cc.index_select(0, sources)
        if self._model.decoder.resets_after:
            h_tilde = self._matmul(eh[:, e.shape[1] :], self._U).add_(Cc).mul_(r)
        else:
            h_tilde = self._matmul(r * h, self._U).add_(Cc)
        return torch.lerp(h_tilde.add_(linear(e, self._W)).add_(self._model.decoder.b).tanh_(), h, z)

    def _read_out(self, encoded: EncodedPhrases, prefixes: EncDecPrefixes) -> Tensor:
        """Return G_r s_t of each prefix; prefixes × R."""
        eh = _beside(prefixes.e, prefixes.state.to(prefixes.e.dtype))
        s = self._matmul(eh, self._O).add_(encoded.O_cc.index_select(0, prefixes.sources))  # s'_t
        return linear(torch.maximum(*s.chunk(2, 1)), self._model.decoder.G_r)


def _beside(*parts: Tensor) -> Tensor:
    return torch.cat(parts, 1)


# -- scoring by the native core: whole chunks of pairs in one call, without the GIL

# The same equations and sharing, in one thread per chunk.

CELL = ("embedding", "W", "W_z", "W_r", "U", "U_z", "U_r", "b", "b_z", "b_r", "V", "b_V")
READ_OUT = ("C", "C_z", "C_r", "O_h", "O_c", "O_y", "b_O", "G_r", "G_l", "b_G")


class NativeEncDec:
    """A trained network with weights packed for products in a precision of the core.

    States, gates and sums are float32.
    """

    def __init__(self, model: EncDec, core: NativeCore, precision: str = "fp32") -> None:
        self.device = torch.device("cpu")
        self._functions = core.functions
        config = model.config
        self._words = config.source_vocabulary_size, config.target_vocabulary_size
        sizes = [
            *(config.hidden_size, config.embedding_size, config.maxout_size, config.output_rank, *self._words),
            *(config.summary == "tanh", config.first_step == "zero-embedding", config.decoder_reset == "after"),
        ]
        weights = _weights(model)  # the library copies what it needs: torch may move a tensor's memory at any time
        new = self._functions.moses_rnn_network_new
        new.restype = ctypes.c_void_p
        kind = core.instructions, PRECISIONS.index(precision)
        self._network = new(numbers(sizes), addresses(weights), *kind)
        if not self._network:
            raise MemoryError("cannot allocate memory for the network's packed weights")

    def __del__(self) -> None:
        if getattr(self, "_network", None):
            self._functions.moses_rnn_network_free(ctypes.c_void_p(self._network))

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """See `PairNetwork`."""
        count = len(sources[1])
        if len(targets[1]) != count:
            raise ValueError(f"expected as many targets as sources, found {len(targets[1]):,} and {count:,}")
        source_words, target_words = self._words
        arrays = *_checked(*sources, source_words), *_checked(*targets, target_words)
        log_probs = np.empty(count)
        failed = self._functions.moses_rnn_network_score(
            ctypes.c_void_p(self._network),
            *(array.ctypes.data_as(ctypes.c_void_p) for array in arrays),
            ctypes.c_int64(count),
            log_probs.ctypes.data_as(ctypes.c_void_p),
        )
        if failed:
            raise MemoryError(f"cannot allocate memory for the states of {count:,} phrase pairs")
        return log_probs


def _weights(model: EncDec) -> Sequence[Tensor | None]:
    """Return all matrices in the order of native/network.h, as contiguous float32 on the CPU; None if missing."""
    tensors = [getattr(model.encoder, name, None) for name in CELL]
    tensors += [getattr(model.decoder, name) for name in (*CELL, *READ_OUT)]
    return [None if tensor is None else tensor.detach().to("cpu", torch.float32).contiguous() for tensor in tensors]


def _checked(ids: Ids, lengths: Lengths, most: int) -> IdPhrases:
    """Check ids and lengths, because the library does not, and make them contiguous."""
    ids, lengths = (np.ascontiguousarray(array, np.int64) for array in (ids, lengths))
    if lengths.sum() != len(ids) or lengths.min(initial=0) < 0:
        raise ValueError(f"expected lengths that come to {len(ids):,} words, found {lengths.sum():,}")
    if len(ids) and not 0 <= ids.min() <= ids.max() < most:
        raise ValueError(f"expected ids from 0 to {most - 1:,}, found {ids.min():,} to {ids.max():,}")
    return ids, lengths


ENCDEC = Architecture(
    FIRST_NETWORK, "RNN Encoder-Decoder", "RNN", EncDecConfig, EncDec, stepper=EncDecStepper, native=NativeEncDec
)
