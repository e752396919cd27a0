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
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from moses_rnn.native import PRECISIONS, NativeCore
from moses_rnn.networks.batches import Batch, Lengths, take_rows
from moses_rnn.networks.config import FIRST_NETWORK, Architecture, Config, Size, unset
from moses_rnn.networks.native_learning import NativeKernel, times
from moses_rnn.networks.network import Drop, NetworkStepper, TranslationNetwork, keep, previous_embeddings
from moses_rnn.networks.recurrence import GatedStep, Recurrence
from moses_rnn.networks.softmax import Estimate, learned_log_probs
from moses_rnn.networks.trie_scoring import IdPhrases
from moses_rnn.networks.tries import Trie, build_trie, copy_levels
from moses_rnn.networks.vocabulary import Ids

INITIAL_DEVIATION = 0.01
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
    first_step: Literal["zero-embedding", "initial-state"] = "zero-embedding"  # or y_1 is predicted from h'_0
    decoder_reset: Reset | None = "after"  # before: r' gates h' before the product, and never C c

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_resets()
        if self.variant != "custom" and not _is_named(self.variant, vars(self)):
            self.refuse("variant", "the name of its three switches (paper, groundhog, else custom)")

    def _check_resets(self) -> None:
        if self.decoder_reset is None:
            self.refuse("decoder_reset", "'after' or 'before'")

    @property
    def description(self) -> str:
        """For a log."""
        return f"{self.variant} variant, H {self.hidden_size}"


def variant_of(switches: Mapping[str, object]) -> str:
    """The name of three switches, or of those that a network has of them: paper, groundhog, or custom.

    Args:
        switches: by name; None where one means nothing.
    """
    return next((name for name in SWITCHES if _is_named(name, switches)), "custom")


def _is_named(variant: str, switches: Mapping[str, object]) -> bool:
    return all(switches[key] in {value, None} for key, value in SWITCHES[variant].items())


class EncDec(TranslationNetwork):
    """Encoder and decoder; `state_dict` has the tensor names of the checkpoint format.

    Args:
        config: sizes and switches.
        seed: of the initial weights; equal seeds give equal weights. None leaves them unset.
    """

    def __init__(self, config: EncDecConfig, *, seed: int | None) -> None:
        super().__init__()
        self.config = config
        self.encoder, self.decoder = self._parts()
        if seed is not None:
            self.initialise(seed)

    def _parts(self) -> tuple[Encoder, Decoder]:
        return Encoder(self.config), Decoder(self.config)

    @torch.no_grad()
    def initialise(self, seed: int, deviation: float = INITIAL_DEVIATION) -> None:
        """Draw the weights as the paper does (appendix A.1): N(0, 0.01²), recurrent matrices orthogonal, biases 0.

        Args:
            seed: equal seeds give equal weights.
            deviation: of the matrices that are not recurrent; the paper's is 0.01.
        """
        random = torch.Generator().manual_seed(seed)
        for name, tensor in self.named_parameters():
            if tensor.dim() == 1:
                tensor.zero_()
            elif ".U" in name:
                gaussian = torch.randn(tensor.shape, generator=random)
                tensor.copy_(torch.linalg.svd(gaussian)[0])
            else:
                tensor.copy_(torch.randn(tensor.shape, generator=random) * deviation)

    def word_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,
        product_dtype: torch.dtype | None = None,
        sample: Estimate | None = None,
        drop: Drop = keep,
    ) -> Tensor:
        """Score every target word by log p(y_t | y_<t, e); `drop` is for embeddings and maxout."""
        dtype = product_dtype or self.decoder.V.dtype
        terms = take_rows(self.decoder.terms(self.encoder(sources, dtype, drop), dtype), source_of)
        projected = self.decoder.read_out(*self.decoder.nodes(terms, targets, dtype, drop), dtype, drop)
        output = self.decoder.G_l, self.decoder.b_G
        return learned_log_probs(projected, output, targets.packed(), dtype, self.kernel, sample)


class Encoder(GatedStep):
    """Source words x_1 … x_N, the last of them ``</s>``, to the summary c (section 2.3, appendix A.1.1).

    z_t  = σ(W_z e(x_t) + U_z h_{t-1} + b_z)                update gate: z keeps the old state
    r_t  = σ(W_r e(x_t) + U_r h_{t-1} + b_r)                reset gate
    h~_t = tanh(W e(x_t) + U (r_t ⊙ h_{t-1}) + b)
    h_t  = z_t ⊙ h_{t-1} + (1 - z_t) ⊙ h~_t                 h_0 = 0
    c    = tanh(V h_N + b_V)                                or h_N, by the switch `summary`
    """

    resets_after = False  # True: h~_t = tanh(W e(x_t) + r_t ⊙ (U h_{t-1}) + b)

    def __init__(self, config: EncDecConfig) -> None:
        super().__init__()
        self.config = config
        H, E = config.hidden_size, config.embedding_size
        self.embedding = unset(config.source_vocabulary_size, E)
        self._add_cell(H, E)
        self.has_summary = config.summary == "tanh"
        if self.has_summary:
            self.V, self.b_V = unset(H, H), unset(H)

    def forward(self, sources: Batch, product_dtype: torch.dtype, drop: Drop = keep) -> Tensor:
        """The summary c of each source phrase; S × H."""
        states = self._states(sources, product_dtype, drop)  # nodes × H
        return self.summary(states.index_select(0, sources.last()), product_dtype)

    def summary(self, h_N: Tensor, product_dtype: torch.dtype) -> Tensor:
        """c of each last state; S × H."""
        return torch.tanh(times(h_N, self.V, product_dtype, self.kernel) + self.b_V) if self.has_summary else h_N

    def gates(self, sources: Batch) -> tuple[Tensor, Tensor]:
        """z_t and r_t at each of ``sources.packed()``; nodes × H each."""
        dtype = self.b.dtype
        return self._recurrence(dtype).gates(*self._operands(sources, dtype, keep))

    def _states(self, sources: Batch, product_dtype: torch.dtype, drop: Drop) -> Tensor:
        return self._recurrence(product_dtype).states(*self._operands(sources, product_dtype, drop))

    def _recurrence(self, product_dtype: torch.dtype) -> Recurrence:
        return Recurrence(self.U_z, self.U_r, self.U, self.resets_after, product_dtype, self.kernel)

    def _operands(
        self, sources: Batch, product_dtype: torch.dtype, drop: Drop
    ) -> tuple[Tensor, Tensor, Tensor, list[int]]:
        """What the words, what c and what h_0 add; see `Recurrence.states`."""
        e = drop(embedding(sources.packed(), self.embedding))  # nodes × E
        x = self.inputs(e, product_dtype)  # nodes × 3H
        h_0 = x.new_zeros(sources.active[0], self.U.shape[0])  # S × H
        nothing = x.new_zeros(1, 1).expand(sources.active[0], x.shape[1])  # S × 3H
        return x, nothing, h_0, sources.active


class Terms(NamedTuple):
    """What the decoder needs of a source, and what depends on it alone; a row each."""

    h_0: Tensor  # tanh(V' c + b_V'); H
    gates: Tensor  # C_z c + b'_z and C_r c + b'_r; 2H
    Cc: Tensor  # H
    O_cc: Tensor  # O_c c + b_O; 2M


class Decoder(GatedStep):
    """Summary c and target words y_1 … y_T to log-probabilities; c enters every gate and the read-out (appendix A.1.2).

    h'_0  = tanh(V' c + b_V')                               e(y_0) = 0
    z'_t  = σ(W'_z e(y_{t-1}) + U'_z h'_{t-1} + C_z c + b'_z)
    r'_t  = σ(W'_r e(y_{t-1}) + U'_r h'_{t-1} + C_r c + b'_r)
    h~'_t = tanh(W' e(y_{t-1}) + r'_t ⊙ (U' h'_{t-1} + C c) + b')
    h'_t  = z'_t ⊙ h'_{t-1} + (1 - z'_t) ⊙ h~'_t
    s'_t  = O_h h'_t + O_y e(y_{t-1}) + O_c c + b_O
    s_t,i = max(s'_t,2i-1 , s'_t,2i)                        maxout
    p(y_t | y_<t, e) = softmax(G_l G_r s_t + b_G)

    By the switch `decoder_reset`, h~'_t = tanh(W' e(y_{t-1}) + U' (r'_t ⊙ h'_{t-1}) + C c + b') instead; by the switch
    `first_step`, y_1 is predicted from h'_0, without a step before it.
    """

    def __init__(self, config: EncDecConfig) -> None:
        super().__init__()
        self.config = config
        H, E, M = config.hidden_size, config.embedding_size, config.maxout_size
        K, R = config.target_vocabulary_size, config.output_rank
        self.embedding = unset(K, E)
        self._add_cell(H, E)
        self.V, self.b_V = unset(H, H), unset(H)
        self._add_context(H)
        self.O_h, self.O_c, self.O_y, self.b_O = unset(2 * M, H), unset(2 * M, H), unset(2 * M, E), unset(2 * M)
        self.G_r, self.G_l, self.b_G = unset(R, M), unset(K, R), unset(K)

    def _add_context(self, H: int) -> None:
        """The weights of c in a step."""
        self.C, self.C_z, self.C_r = unset(H, H), unset(H, H), unset(H, H)

    def terms(self, c: Tensor, product_dtype: torch.dtype) -> Terms:
        """What depends on the source alone; c is S × H."""
        how = product_dtype, self.kernel
        c = c if isinstance(self.kernel, NativeKernel) else c.to(product_dtype)
        C_zc, C_rc, Cc = (times(c, C, *how).to(self.b.dtype) for C in (self.C_z, self.C_r, self.C))
        return Terms(
            h_0=torch.tanh(times(c, self.V, *how) + self.b_V),
            gates=torch.cat([C_zc + self.b_z, C_rc + self.b_r], 1),
            Cc=Cc,
            O_cc=times(c, self.O_c, *how) + self.b_O,
        )

    def nodes(
        self, terms: Terms, targets: Batch, product_dtype: torch.dtype, drop: Drop = keep
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What the read-out needs to predict each of ``targets.packed()``.

        Args:
            terms: of each target's source; T rows.
            targets: T target phrases.
            product_dtype: the type that matrix products are computed in.
            drop: leaves units out of embeddings.

        Returns:
            h'_t (nodes × H), e(y_{t-1}) (nodes × E, zeros for the first word), O_c c + b_O (nodes × 2M).
        """
        e = drop(previous_embeddings(self.embedding, targets))  # nodes × E
        h = self._states(terms, e, targets, product_dtype)
        if not self._steps_first:
            h = torch.cat([terms.h_0, h])
        return h, e, terms.O_cc.index_select(0, targets.rows())

    def gates(self, terms: Terms, targets: Batch) -> tuple[Tensor, Tensor]:
        """z'_t and r'_t of every step, packed; steps × H each.

        There is a step for each of ``targets.packed()``; where `first_step` is "initial-state", none for first words.
        """
        dtype = self.b.dtype
        operands = self._operands(terms, previous_embeddings(self.embedding, targets), targets, dtype)
        return self._recurrence(dtype).gates(*operands)

    def _states(self, terms: Terms, e: Tensor, targets: Batch, product_dtype: torch.dtype) -> Tensor:
        return self._recurrence(product_dtype).states(*self._operands(terms, e, targets, product_dtype))

    @property
    def _steps_first(self) -> bool:
        return self.config.first_step == "zero-embedding"

    def _recurrence(self, product_dtype: torch.dtype) -> Recurrence:
        reset_after = self.config.decoder_reset == "after"
        return Recurrence(self.U_z, self.U_r, self.U, reset_after, product_dtype, self.kernel)

    def _operands(
        self, terms: Terms, e: Tensor, targets: Batch, product_dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, Tensor, list[int]]:
        """What the words, what c and what h'_0 add; see `Recurrence.states`."""
        skipped = 0 if self._steps_first else 1
        no_b = torch.zeros_like(self.b)
        stepped = e[targets.active[0] * skipped :]
        We = times(stepped, torch.cat([self.W_z, self.W_r, self.W]), product_dtype, self.kernel)
        return (
            We + torch.cat([no_b, no_b, self.b]),
            torch.cat([terms.gates, terms.Cc], 1),
            terms.h_0,
            targets.active[skipped:],
        )

    def read_out(self, h: Tensor, e: Tensor, O_cc: Tensor, product_dtype: torch.dtype, drop: Drop = keep) -> Tensor:
        """G_r s_t: what each node predicts, before the words; nodes × R."""
        how = product_dtype, self.kernel
        s = times(h, self.O_h, *how) + times(e, self.O_y, *how) + O_cc  # s'_t; nodes × 2M
        s = torch.maximum(*s.view(len(s), -1, 2).unbind(2))  # s_t; nodes × M
        return times(drop(s), self.G_r, *how)


# -- scoring and search: the same equations over tries of phrases

# Each distinct source prefix is stepped once and each source's terms in c are computed once. Products that share an
# operand are one product; products may be bfloat16, states, gates and normalisation are float32.


class EncDecPrefixes(NamedTuple):
    """Beginnings of target phrases, with what the decoder needs to predict the word after each; a row each."""

    sources: Tensor  # row of each one's source among the terms
    eh: Tensor  # e(y_{t-1}), zeros before the first word, beside h'_t, in the type of products; E + H
    h: Tensor  # h'_t; H


class EncDecStepper(NetworkStepper[Terms, EncDecPrefixes]):
    """The RNN Encoder-Decoder, stepped over packed rows."""

    _model: EncDec

    def _prepare(self) -> None:
        encoder, decoder = self._model.encoder, self._model.decoder
        self._x_e, self._x_W, self._x_U = map(self._weight, (encoder.embedding, encoder.W, encoder.U))
        self._x_gates = self._weight(_beside([encoder.W_z, encoder.U_z], [encoder.W_r, encoder.U_r]))
        self._x_gates_b = torch.cat([encoder.b_z, encoder.b_r])
        self._x_candidate = torch.cat([self._x_W, self._x_U], 1)
        # maxout takes the larger of the units (0, 1), (2, 3), …: with the even ones first, of two halves
        units = torch.arange(len(decoder.b_O), device=self.device).view(-1, 2).T.flatten()
        self._terms_W = self._weight(torch.cat([decoder.V, decoder.C_z, decoder.C_r, decoder.C, decoder.O_c[units]]))
        no_b = torch.zeros_like(decoder.b)
        self._terms_b = torch.cat([decoder.b_V, decoder.b_z, decoder.b_r, no_b, decoder.b_O[units]])
        self._y_e, self._W, self._U = map(self._weight, (decoder.embedding, decoder.W, decoder.U))
        self._y_gates = self._weight(_beside([decoder.W_z, decoder.U_z], [decoder.W_r, decoder.U_r]))
        self._O = self._weight(_beside([decoder.O_y, decoder.O_h])[units])
        self._make_output(decoder.G_l, decoder.b_G)

    def encode(self, ids: Ids, lengths: Lengths) -> tuple[Terms, npt.NDArray[np.int64]]:
        """See `Stepper`; each distinct prefix of the sources is stepped once."""
        sources = build_trie(ids, lengths)
        return self.encode_trie(sources), sources.leaf_of

    def summaries(self, ids: Ids, lengths: Lengths) -> Tensor:
        """c of each source; sources × H."""
        sources = build_trie(ids, lengths)
        return self._summaries(sources)[sources.leaf_of]

    @torch.inference_mode()
    def encode_trie(self, sources: Trie) -> Terms:
        """The terms of every distinct source, in the order of the trie's leaves."""
        H = self._model.config.hidden_size
        Wc = self._times(self._summaries(sources), self._terms_W) + self._terms_b
        h_0, gates, Cc, O_cc = torch.split(Wc, [H, 2 * H, H, Wc.shape[1] - 4 * H], 1)
        return Terms(h_0.tanh(), gates.contiguous(), Cc.contiguous(), O_cc.contiguous())

    @torch.inference_mode()
    def _summaries(self, sources: Trie) -> Tensor:
        """c of every distinct source, likewise."""
        h = torch.zeros(sources.roots, self._model.config.hidden_size, dtype=self._dtype, device=self.device)
        last: list[Tensor] = []
        for words, parents, alive, leaves in copy_levels(sources.levels, self.device):
            h = self._encoder_step(words, h, parents)
            last.append(h.index_select(0, leaves))
            h = h.index_select(0, alive)
        return self._model.encoder.summary(torch.cat(last), self._product_dtype)

    def _encoder_step(self, words: Tensor, states: Tensor, above: Tensor) -> Tensor:
        """One step of the encoder for each node, from its word and the row of the state above it."""
        eh, h = self._gathered(self._x_e, words, states, above)
        e = eh[:, : -h.shape[1]]
        z, r = self._times(eh, self._x_gates).add_(self._x_gates_b).sigmoid_().chunk(2, 1)
        if self._model.encoder.resets_after:
            h_tilde = self._times(h, self._x_U).mul_(r).add_(self._times(e, self._x_W))
        else:
            h_tilde = self._times(torch.cat([e, (r * h).to(e.dtype)], 1), self._x_candidate)
        return torch.lerp(h_tilde.add_(self._model.encoder.b).tanh_(), h, z)

    def _gathered(self, embeddings: Tensor, words: Tensor, states: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """[e h] of each node, e of its word and h the state above it, in the type of products; and h."""
        h = states.index_select(0, rows)
        return torch.cat([embeddings.index_select(0, words), h.to(embeddings.dtype)], 1), h

    @torch.inference_mode()
    def start(self, terms: Terms) -> EncDecPrefixes:
        """The empty prefix of each source: y_1 is predicted from h'_0, or after a step with e(y_0) = 0."""
        sources = torch.arange(len(terms.h_0), device=self.device)
        e = torch.zeros(len(sources), self._model.config.embedding_size, dtype=self._product_dtype, device=self.device)
        eh = torch.cat([e, terms.h_0.to(self._product_dtype)], 1)
        if self._model.config.first_step == "zero-embedding":
            return EncDecPrefixes(sources, *self._decoder_step(eh, terms.h_0, sources, terms))
        return EncDecPrefixes(sources, eh, terms.h_0)

    @torch.inference_mode()
    def step(self, terms: Terms, prefixes: EncDecPrefixes, rows: Tensor, words: Tensor) -> EncDecPrefixes:
        """Chosen rows of the prefixes, each with one word more; `rows` and `words` are as many."""
        sources = prefixes.sources[rows]
        eh, h = self._gathered(self._y_e, words, prefixes.h, rows)
        return EncDecPrefixes(sources, *self._decoder_step(eh, h, sources, terms))

    def _decoder_step(self, eh: Tensor, h: Tensor, sources: Tensor, terms: Terms) -> tuple[Tensor, Tensor]:
        """One step of the decoder for each node: [e h] with the next h, and that h.

        Args:
            eh: e of the node's word beside h, in the type of products.
            h: the state above it.
            sources: the node's row of `terms`.
            terms: of the sources.
        """
        z, r = self._times(eh, self._y_gates).add_(terms.gates.index_select(0, sources)).sigmoid_().chunk(2, 1)
        e, Cc = eh[:, : -h.shape[1]], terms.Cc.index_select(0, sources)
        if self._model.config.decoder_reset == "after":
            h_tilde = self._times(eh[:, e.shape[1] :], self._U).add_(Cc).mul_(r)
        else:
            h_tilde = self._times(r * h, self._U).add_(Cc)
        state = torch.lerp(h_tilde.add_(linear(e, self._W)).add_(self._model.decoder.b).tanh_(), h, z)
        return torch.cat([e, state.to(e.dtype)], 1), state

    def _read_out(self, terms: Terms, prefixes: EncDecPrefixes) -> Tensor:
        """G_r s_t of each prefix; prefixes × R."""
        s = self._times(prefixes.eh, self._O).add_(terms.O_cc.index_select(0, prefixes.sources))  # s'_t
        return linear(torch.maximum(*s.chunk(2, 1)), self._model.decoder.G_r)


def _beside(*rows: list[Tensor]) -> Tensor:
    """Matrices beside each other, and such rows of matrices above each other."""
    return torch.cat([torch.cat(row, 1) for row in rows])


# -- scoring by the native core: whole chunks of pairs in one call, without the interpreter's lock

# The same equations and the same sharing, in one thread: several threads score several chunks.

CELL = ("embedding", "W", "W_z", "W_r", "U", "U_z", "U_r", "b", "b_z", "b_r")
READ_OUT = ("V", "b_V", "C", "C_z", "C_r", "O_h", "O_c", "O_y", "b_O", "G_r", "G_l", "b_G")


class NativeEncDec:
    """A network with its weights packed for products.

    Args:
        model: the trained network.
        core: the library.
        precision: of products, one that the core `multiplies` in; states, gates and sums are float32.

    Raises:
        MemoryError: there is no room for it.
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
        self._weights = _weights(model)  # the library reads embeddings and G_l where they are
        pointers = (ctypes.c_void_p * len(self._weights))(
            *(w.data_ptr() if w is not None else None for w in self._weights)
        )
        new = self._functions.moses_rnn_network_new
        new.restype = ctypes.c_void_p
        self._network = new(
            (ctypes.c_int64 * len(sizes))(*sizes), pointers, core.instructions, PRECISIONS.index(precision)
        )
        if not self._network:
            raise MemoryError("cannot allocate memory for the network's packed weights")

    def __del__(self) -> None:
        if getattr(self, "_network", None):
            self._functions.moses_rnn_network_free(ctypes.c_void_p(self._network))

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> npt.NDArray[np.float64]:
        """See `PairNetwork`.

        Raises:
            ValueError: there are not as many targets as sources, or ids that the network does not know.
            MemoryError: there is no room for the states of so many.
        """
        count = len(sources[1])
        if len(targets[1]) != count:
            raise ValueError(f"expected as many targets as sources, found {len(targets[1]):,} and {count:,}")
        arrays = [
            array for side, most in zip((sources, targets), self._words, strict=True) for array in _checked(*side, most)
        ]
        log_probs = np.empty(count)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        failed = self._functions.moses_rnn_network_score(
            ctypes.c_void_p(self._network),
            *pointers,
            ctypes.c_int64(count),
            log_probs.ctypes.data_as(ctypes.c_void_p),
        )
        if failed:
            raise MemoryError(f"cannot allocate memory for the states of {count:,} phrase pairs")
        return log_probs


def _weights(model: EncDec) -> Sequence[Tensor | None]:
    """All matrices in the order of native/network.h; contiguous float32 on the CPU, those that there are not None."""
    encoder, decoder = model.encoder, model.decoder
    tensors = [getattr(encoder, name) for name in CELL]
    tensors += (encoder.V, encoder.b_V) if encoder.has_summary else (None, None)
    tensors += [getattr(decoder, name) for name in (*CELL, *READ_OUT)]
    return [None if tensor is None else tensor.detach().to("cpu", torch.float32).contiguous() for tensor in tensors]


def _checked(ids: Ids, lengths: Lengths, most: int) -> IdPhrases:
    """Ids and lengths as the library reads them without looking."""
    ids, lengths = (np.ascontiguousarray(array, np.int64) for array in (ids, lengths))
    if lengths.sum() != len(ids) or lengths.min(initial=0) < 0:
        raise ValueError(f"expected lengths that come to {len(ids):,} words, found {lengths.sum():,}")
    if len(ids) and not 0 <= ids.min() <= ids.max() < most:
        raise ValueError(f"expected ids from 0 to {most - 1:,}, found {ids.min():,} to {ids.max():,}")
    return ids, lengths


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
