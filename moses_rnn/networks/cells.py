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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from moses_rnn.networks.config import FIRST_NETWORK, Architecture, Limits, Rare, Unit
from moses_rnn.networks.encdec import (
    Decoder,
    EncDec,
    EncDecConfig,
    EncDecPrefixes,
    EncDecStepper,
    Encoder,
    Reset,
    Terms,
)
from moses_rnn.networks.layers import LSTM, LSTM_PEEPHOLE, Cell, Layer, State, SteppedLayer

LEAST_ALPHA, MOST_ALPHA = 0.02, 0.2  # of units that leak


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


def leaky_step(x: Tensor, Uh: Tensor, alpha: Tensor | None, state: State) -> State:
    """Units that keep a share α of their state; α = 0 is tanh to the bit."""
    assert alpha is not None
    return (torch.lerp(torch.tanh(x + Uh), state[0], alpha),)


PLAIN = {  # cells without gates that have their gradient written out
    "tanh": Cell(lambda x, Uh, _, __: (torch.tanh(x + Uh),)),
    "relu": Cell(lambda x, Uh, _, __: (torch.relu(x + Uh),)),
    "leaky": Cell(leaky_step, fixed=("alpha",)),
    "lstm": LSTM,
    "lstm-peephole": LSTM_PEEPHOLE,
}


class PlainCell(Layer):
    """An encoder or decoder with a cell of `PLAIN`, and the weights that its step has beside those of c."""

    config: EncDecConfig

    @property
    def cell(self) -> Cell:  # type: ignore[override]
        """The config's."""
        assert isinstance(self.config, CellConfig)
        return PLAIN[self.config.cell]

    def states(self, x: Tensor, c: Tensor | None, h_0: Tensor | None, active: Sequence[int]) -> Tensor:
        """All states h_t, packed; see `Recurrence.states`."""
        h_0 = x.new_zeros(active[0], self.config.hidden_size) if h_0 is None else h_0
        return self.run(x, c, self.cell.begin(h_0), active)[0]


class CellEncoder(PlainCell, Encoder):
    """Source words to the summary c, by h_N as of `Encoder`."""


class CellDecoder(PlainCell, Decoder):
    """Summary c and target words to log-probabilities as `Decoder`; c enters all sums of a step, and the read-out."""

    def _add_context(self, H: int) -> None:
        self._add_sums("C", H, H)

    def terms(self, c: Tensor) -> Terms:
        """What depends on the source alone; `Cc` is what c and b add inside the sums (SH), and `gates` is empty."""
        times = self.kernel.times
        return Terms(
            h_0=torch.tanh(times(c, self.V) + self.b_V),
            gates=c.new_empty(len(c), 0),
            Cc=times(c, self.stacked("C")) + self.stacked("b"),
            O_cc=times(c, self.O_c) + self.b_O,
        )

    def inputs(self, a: Tensor) -> Tensor:
        """What a word adds inside the sums, whose biases are in the terms; nodes × SH."""
        return self.kernel.times(a, self.stacked("W"))


class CellEncDec(EncDec):
    """An RNN Encoder-Decoder with another cell; `state_dict` has the tensor names of the checkpoint format."""

    config: CellConfig

    def _build(self, config: Any) -> None:
        if config.cell in PLAIN:
            self.encoder, self.decoder = CellEncoder(config), CellDecoder(config)
        else:
            super()._build(config)
            self.encoder.resets_after = config.encoder_reset == "after"

    @torch.no_grad()
    def initialise(self, seed: int, deviation: float | None = None) -> None:
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


def cell_stepper(model: CellEncDec, device: str, dtype: torch.dtype) -> EncDecStepper:
    """The stepper of a network by its cell."""
    return (CellStepper if model.config.cell in PLAIN else EncDecStepper)(model, device, dtype)


class CellStepper(EncDecStepper):
    """An RNN Encoder-Decoder of another cell, stepped over packed rows."""

    def _prepare(self) -> None:
        encoder, decoder = self._model.encoder, self._model.decoder
        assert isinstance(encoder, CellEncoder)
        assert isinstance(decoder, CellDecoder)
        self._x_e, self._y_e, self._x_b = encoder.embedding, decoder.embedding, encoder.stacked("b")
        self._cell = encoder.cell
        self._reading, self._writing = map(SteppedLayer, (encoder, decoder))

    def _begin(self, h_0: Tensor) -> Tensor:
        return torch.cat(self._cell.begin(h_0), 1)

    def _shown(self, state: Tensor) -> Tensor:
        return state.chunk(self._cell.carried, 1)[0]

    def _terms(self, c: Tensor) -> Terms:
        return self._model.decoder.terms(c)

    def _encoder_step(self, words: Tensor, states: Tensor, above: Tensor) -> Tensor:
        return self._step(self._reading, self._x_e.index_select(0, words), states.index_select(0, above), self._x_b)

    def _decoder_step(self, e: Tensor, h: Tensor, sources: Tensor, terms: Terms) -> Tensor:
        return self._step(self._writing, e, h, terms.Cc.index_select(0, sources))

    def _step(self, layer: SteppedLayer, e: Tensor, state: Tensor, more: Tensor) -> Tensor:
        return torch.cat(layer.step(e, state.chunk(self._cell.carried, 1), more), 1)

    def _read_out(self, terms: Terms, prefixes: EncDecPrefixes) -> Tensor:
        """G_r s_t of each prefix; prefixes × R."""
        O_cc = terms.O_cc.index_select(0, prefixes.sources)
        e = prefixes.e.to(self._dtype)
        return self._model.decoder.read_out(self._shown(prefixes.state), e, O_cc)


ENCDEC_OF_CELLS = Architecture(
    FIRST_NETWORK, "RNN Encoder-Decoder", "RNN", CellConfig, CellEncDec, stepper=cell_stepper, format=2
)
