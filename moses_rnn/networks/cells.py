"""Other cells in the place of an RNN Encoder-Decoder's gated step; all else is that network's.

    tanh           h_t = tanh(W e + U h_{t-1} + b)             h'_t = tanh(W' e + U' h'_{t-1} + C c + b')
    relu           the same with max(0, ·), where U and U' are the identity at first (Le et al. 2015, arXiv 1504.00941)
    leaky          h_t = α ⊙ h_{t-1} + (1 - α) ⊙ tanh(…), where α is never learned (Bengio et al. 2013, arXiv 1212.0901)
    lstm           as `Lstm`, with C_i c, C_f c, C_m c and C_o c inside the decoder's four brackets; m_0 = m'_0 = 0
    lstm-peephole  the same with peepholes
    gru            as `Encoder` and `Decoder`, where the encoder's reset gate may act after the product:
                   h~_t = tanh(W e + r_t ⊙ (U h_{t-1}) + b)

H hidden units, E embedding dimensions, S sums inside a step: one, or the four of an LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from moses_rnn.networks.batches import Batch, Lengths
from moses_rnn.networks.config import FIRST_NETWORK, Architecture, Limits, Rare, Unit
from moses_rnn.networks.encdec import (
    INITIAL_DEVIATION,
    Decoder,
    EncDec,
    EncDecConfig,
    EncDecStepper,
    Encoder,
    Reset,
    Terms,
)
from moses_rnn.networks.hardware import Kernel
from moses_rnn.networks.lstm import PEEPHOLES, SUMS, lstm_step
from moses_rnn.networks.native_learning import NativeKernel, times
from moses_rnn.networks.network import Drop, NetworkStepper
from moses_rnn.networks.steps import Stepper
from moses_rnn.networks.tries import Trie, build_trie, copy_levels
from moses_rnn.networks.vocabulary import Ids

LEAST_ALPHA, MOST_ALPHA = 0.02, 0.2  # of units that leak
Carried = tuple[Tensor, ...]  # h_t, and m_t of an LSTM: rows × H each


@dataclass(frozen=True)
class CellConfig(EncDecConfig):
    """Sizes and switches; a switch that means nothing for the cell is None."""

    cell: Literal["gru", "tanh", "relu", "leaky", "lstm", "lstm-peephole"] = "gru"
    encoder_reset: Reset | None = None  # gru: before or after the product
    leaky_share: Annotated[float, Limits(0, 1)] | None = None  # leaky: of the units, those that leak
    forget_bias: Annotated[float, Limits(-1000, 1000)] | None = None  # LSTMs: b_f at first
    unit: Unit = "phrases"  # that it learned from
    rare: Rare | None = None  # None: <unk>

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_own("leaky_share", self.cell == "leaky")
        self._check_own("forget_bias", self.cell in {"lstm", "lstm-peephole"})

    def _check_resets(self) -> None:
        for key in ("decoder_reset", "encoder_reset"):
            self._check_own(key, self.cell == "gru")

    def _check_own(self, key: str, has: bool) -> None:
        """Refuse a switch that the cell does not have, or the lack of one that it has."""
        if (getattr(self, key) is not None) != has:
            self.refuse(key, f"given for {self.cell} cells" if has else f"null, which {self.cell} cells do not have")

    @property
    def description(self) -> str:
        """For a log."""
        return f"{self.cell} cells, {super().description}"


class Cell(NamedTuple):
    """A cell without gates that have their gradient written out.

    `step` gives the new state from what words, c and b add inside its sums (rows × SH), from what h_{t-1} adds there
    (likewise), from further weights of the cell, and from the state before.
    """

    step: Callable[[Tensor, Tensor, Tensor | None, Carried], Carried]
    sums: tuple[str, ...] = ("",)  # endings of the tensors' names, for each sum inside
    carried: int = 1  # tensors of a state
    fixed: tuple[str, ...] = ()  # further tensors of H numbers that are stored, but never learned
    learned: tuple[str, ...] = ()  # and that are learned

    def begin(self, h_0: Tensor) -> Carried:
        """What is carried into the first step: h_0, and an empty memory."""
        return (h_0, *(torch.zeros_like(h_0) for _ in range(self.carried - 1)))


def leaky_step(x: Tensor, Uh: Tensor, alpha: Tensor | None, state: Carried) -> Carried:
    """Units that keep a share α of their state; α = 0 is tanh to the bit."""
    assert alpha is not None
    return (torch.lerp(torch.tanh(x + Uh), state[0], alpha),)


def memory_step(x: Tensor, Uh: Tensor, peepholes: Tensor | None, state: Carried) -> Carried:
    """An LSTM, with sums in the order of `SUMS`; m_t is carried too."""
    return lstm_step(x, Uh, peepholes, state[1])


_LSTM = tuple(f"_{gate}" for gate in SUMS)
PLAIN = {
    "tanh": Cell(lambda x, Uh, _, __: (torch.tanh(x + Uh),)),
    "relu": Cell(lambda x, Uh, _, __: (torch.relu(x + Uh),)),
    "leaky": Cell(leaky_step, fixed=("alpha",)),
    "lstm": Cell(memory_step, _LSTM, carried=2),
    "lstm-peephole": Cell(memory_step, _LSTM, carried=2, learned=tuple(f"p_{gate}" for gate in PEEPHOLES)),
}


class PlainCell(nn.Module):
    """An encoder or decoder with a cell of `PLAIN`, and the weights that its step has beside those of c."""

    config: EncDecConfig
    kernel: Kernel

    @property
    def cell(self) -> Cell:
        """The config's."""
        assert isinstance(self.config, CellConfig)
        return PLAIN[self.config.cell]

    def stacked(self, name: str) -> Tensor:
        """The weights of all sums, W say, above each other."""
        return torch.cat([self.get_parameter(name + ending) for ending in self.cell.sums])

    def own(self) -> Tensor | None:
        """What a step has beside sums: α (H), or peepholes (3 × H)."""
        if self.cell.fixed:
            return self.get_buffer(*self.cell.fixed)
        return torch.stack([self.get_parameter(name) for name in self.cell.learned]) if self.cell.learned else None

    def states(
        self, x: Tensor, c: Tensor | None, h_0: Tensor, active: Sequence[int], product_dtype: torch.dtype
    ) -> Tensor:
        """All h_t, packed (nodes × H), with autograd's gradient.

        Args:
            x: what is added inside the sums; nodes × SH.
            c: what is added at every step of a phrase, if anything; phrases × SH.
            h_0: phrases × H.
            active: how many phrases have a step; descending.
            product_dtype: the type that matrix products are computed in.
        """
        U, own = self.stacked("U"), self.own()
        U = U if isinstance(self.kernel, NativeKernel) else U.to(product_dtype)
        state, outputs = self.cell.begin(h_0), [x.new_empty(0, h_0.shape[1])]
        for x_t, rows in zip(torch.split(x, list(active)), active, strict=True):
            state = tuple(tensor[:rows] for tensor in state)
            Uh = times(state[0], U, product_dtype, self.kernel)
            state = self.cell.step(x_t if c is None else x_t + c[:rows], Uh, own, state)
            outputs.append(state[0])
        return torch.cat(outputs)

    def _add_cell(self, H: int, E: int) -> None:
        for name, shape in (("W", (H, E)), ("U", (H, H)), ("b", (H,))):
            self._add_sums(name, *shape)
        for name in self.cell.learned:
            self.register_parameter(name, nn.Parameter(torch.empty(H)))
        for name in self.cell.fixed:
            self.register_buffer(name, torch.empty(H))

    def _add_sums(self, name: str, *shape: int) -> None:
        for ending in self.cell.sums:
            self.register_parameter(name + ending, nn.Parameter(torch.empty(*shape)))


class CellEncoder(PlainCell, Encoder):
    """Source words to the summary c, by h_N as of `Encoder`."""

    def _states(self, sources: Batch, product_dtype: torch.dtype, drop: Drop) -> Tensor:
        e = drop(embedding(sources.packed(), self.embedding))  # nodes × E
        x = times(e, self.stacked("W"), product_dtype, self.kernel) + self.stacked("b")  # nodes × SH
        h_0 = x.new_zeros(sources.active[0], self.config.hidden_size)
        return self.states(x, None, h_0, sources.active, product_dtype)


class CellDecoder(PlainCell, Decoder):
    """Summary c and target words to log-probabilities as `Decoder`; c enters all sums of a step, and the read-out."""

    def _add_context(self, H: int) -> None:
        self._add_sums("C", H, H)

    def terms(self, c: Tensor, product_dtype: torch.dtype) -> Terms:
        """What depends on the source alone; `Cc` is what c and b add inside the sums (SH), and `gates` is empty."""
        how = product_dtype, self.kernel
        return Terms(
            h_0=torch.tanh(times(c, self.V, *how) + self.b_V),
            gates=c.new_empty(len(c), 0),
            Cc=times(c, self.stacked("C"), *how) + self.stacked("b"),
            O_cc=times(c, self.O_c, *how) + self.b_O,
        )

    def _states(self, terms: Terms, e: Tensor, targets: Batch, product_dtype: torch.dtype) -> Tensor:
        skipped = 0 if self._steps_first else 1
        x = times(e[targets.active[0] * skipped :], self.stacked("W"), product_dtype, self.kernel)
        return self.states(x, terms.Cc, terms.h_0, targets.active[skipped:], product_dtype)


class CellEncDec(EncDec):
    """An RNN Encoder-Decoder with another cell; `state_dict` has the tensor names of the checkpoint format."""

    config: CellConfig

    def _parts(self) -> tuple[Encoder, Decoder]:
        if self.config.cell in PLAIN:
            return CellEncoder(self.config), CellDecoder(self.config)
        encoder, decoder = super()._parts()
        encoder.resets_after = self.config.encoder_reset == "after"
        return encoder, decoder

    @torch.no_grad()
    def initialise(self, seed: int, deviation: float = INITIAL_DEVIATION) -> None:
        """Draw the weights as `EncDec` does; U of relu is the identity, b_f the config's, α of some units U(0.02, 0.2).

        Equal seeds give the cells whose tensors have equal names equal weights.
        """
        super().initialise(seed, deviation)
        random = torch.Generator().manual_seed(seed)
        for part in (self.encoder, self.decoder):
            if self.config.cell == "relu":
                part.U.copy_(torch.eye(len(part.U)))
            if self.config.forget_bias is not None:
                part.get_parameter("b_f").fill_(self.config.forget_bias)
            if self.config.leaky_share is not None:
                alpha = part.get_buffer("alpha").zero_()
                leaking = int(self.config.leaky_share * len(alpha) + 0.5)
                alpha[:leaking].copy_(torch.empty(leaking).uniform_(LEAST_ALPHA, MOST_ALPHA, generator=random))


# -- scoring and search


def cell_stepper(model: CellEncDec, device: str, dtype: torch.dtype) -> Stepper[Any, Any]:
    """The stepper of a network by its cell; arguments as of `EncDecStepper`."""
    if model.config.cell in PLAIN:
        return CellStepper(model, device, dtype)
    return EncDecStepper(model, device, dtype)


class CellPrefixes(NamedTuple):
    """Beginnings of target phrases, with what the decoder needs to predict the word after each; a row each."""

    sources: Tensor  # row of each one's source among the terms
    e: Tensor  # e(y_{t-1}), zeros before the first word; E
    state: Tensor  # h'_t, with m'_t beside it in an LSTM; H or 2H


class SteppedCell:
    """A side's steps, word by word.

    Args:
        part: encoder or decoder, in the type of states.
        product_dtype: of matrix products.
    """

    def __init__(self, part: CellEncoder | CellDecoder, product_dtype: torch.dtype) -> None:
        self.embedding = part.embedding
        self.cell, self._own = part.cell, part.own()
        self._WU = torch.cat([part.stacked("W"), part.stacked("U")], 1).to(product_dtype)  # SH × (E + H)

    def begin(self, h_0: Tensor) -> Tensor:
        """h_0, and an empty memory beside it."""
        return torch.cat(self.cell.begin(h_0), 1)

    def step(self, e: Tensor, state: Tensor, more: Tensor) -> Tensor:
        """The next state of each row; `more` is what c and b add inside the sums (rows × SH, or SH)."""
        parts: Carried = state.chunk(self.cell.carried, 1)
        sums = linear(torch.cat([e, parts[0]], 1).to(self._WU.dtype), self._WU).to(state.dtype)
        return torch.cat(self.cell.step(more, sums, self._own, parts), 1)

    def shown(self, state: Tensor) -> Tensor:
        """h of each state; rows × H."""
        return state.chunk(self.cell.carried, 1)[0]


class CellStepper(NetworkStepper[Terms, CellPrefixes]):
    """An RNN Encoder-Decoder of another cell, stepped over packed rows."""

    _model: CellEncDec

    def _prepare(self) -> None:
        encoder, decoder = self._model.encoder, self._model.decoder
        assert isinstance(encoder, CellEncoder)
        assert isinstance(decoder, CellDecoder)
        self._decoder = decoder
        self._read, self._written = (SteppedCell(part, self._product_dtype) for part in (encoder, decoder))
        self._b = encoder.stacked("b")
        self._make_output(decoder.G_l, decoder.b_G)

    @torch.inference_mode()
    def encode(self, ids: Ids, lengths: Lengths) -> tuple[Terms, npt.NDArray[np.int64]]:
        """See `Stepper`; each distinct prefix of the sources is stepped once."""
        sources = build_trie(ids, lengths)
        return self._decoder.terms(self._summaries(sources), self._product_dtype), sources.leaf_of

    def summaries(self, ids: Ids, lengths: Lengths) -> Tensor:
        """c of each source; sources × H."""
        sources = build_trie(ids, lengths)
        return self._summaries(sources)[sources.leaf_of]

    @torch.inference_mode()
    def _summaries(self, sources: Trie) -> Tensor:
        """c of every distinct source, in the order of the trie's leaves."""
        side = self._read
        state = side.begin(self._b.new_zeros(sources.roots, self._model.config.hidden_size))
        last: list[Tensor] = []
        for words, parents, alive, leaves in copy_levels(sources.levels, self.device):
            e = side.embedding.index_select(0, words)
            state = side.step(e, state.index_select(0, parents), self._b)
            last.append(side.shown(state).index_select(0, leaves))
            state = state.index_select(0, alive)
        return self._model.encoder.summary(torch.cat(last), self._product_dtype)

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
