"""An RNN Encoder-Decoder with other cells in place of its gated step.

    tanh           h_t = tanh(W e + U h_{t-1} + b)             h'_t = tanh(W' e + U' h'_{t-1} + C c + b')
    relu           the same with max(0, ·); U and U' are initially the identity (Le et al. 2015, arXiv 1504.00941)
    leaky          h_t = α ⊙ h_{t-1} + (1 - α) ⊙ tanh(…); α is not learned (Bengio et al. 2013, arXiv 1212.0901)
    lstm           as `Lstm`, with C_i c, C_f c, C_m c and C_o c inside the decoder's four brackets; m_0 = m'_0 = 0
    lstm-peephole  the same with peepholes
    gru            as `Encoder` and `Decoder`, where the encoder's reset gate may act after the product:
                   h~_t = tanh(W e + r_t ⊙ (U h_{t-1}) + b)

H hidden units, E embedding dimensions, S sums inside a step: one, or the four of an LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from moses_rnn.networks.config import FIRST_NETWORK, Architecture, Rare, SettingError, Unit
from moses_rnn.networks.encdec import (
    Decoder,
    EncDec,
    EncDecConfig,
    EncDecPrefixes,
    EncDecStepper,
    EncodedPhrases,
    Encoder,
    Reset,
)
from moses_rnn.networks.layers import LSTM, LSTM_PEEPHOLE, Cell, Layer, State, SteppedLayer
from moses_rnn.options import Option

LEAST_ALPHA, MOST_ALPHA = 0.02, 0.2  # of units that leak
GATED = {"cell": "gru", "encoder_reset": "before"}  # the network of format 1, whose config does not say so
CELLS: dict[str, dict[str, Any]] = {  # usual values of the switches that a cell has
    "gru": {"encoder_reset": "before"},
    "tanh": {},
    "relu": {},
    "leaky": {"leaky_share": 0.25},
    "lstm": {"forget_bias": 1.0},
    "lstm-peephole": {"forget_bias": 1.0},
}


@dataclass(frozen=True)
class CellConfig(EncDecConfig):
    """Sizes and switches; a switch that does not apply to the cell is None."""

    cell: Literal["gru", "tanh", "relu", "leaky", "lstm", "lstm-peephole"] = "gru"
    encoder_reset: Reset | None = None  # gru: before or after the product
    leaky_share: Annotated[float, Option(min=0, max=1)] | None = None  # leaky: share of units that leak
    forget_bias: Annotated[float, Option(min=-1000, max=1000)] | None = None  # LSTMs: initial b_f
    unit: Unit = "phrases"  # of its training data
    rare: Rare | None = None  # None: <unk>

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_own("leaky_share", self.cell == "leaky")
        self._check_own("forget_bias", self.cell in {"lstm", "lstm-peephole"})

    def _check_resets(self) -> None:
        for key in ("decoder_reset", "encoder_reset"):
            self._check_own(key, self.cell == "gru")

    @classmethod
    def complete(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the usual switches of the cell; return only those of format 1 if it can hold them."""
        cell = given.get("cell", "gru")
        if cell not in [*CELLS]:
            raise SettingError("cell", f"one of {', '.join(CELLS)}", cell)
        of_cell = {"cell": cell, **CELLS[cell], **{key: given[key] for key in CELL_SWITCHES if key in given}}
        others = {key: value for key, value in given.items() if key not in CELL_SWITCHES}
        if cell != "gru":
            others = {"decoder_reset": None, **others}
        return {**super().complete(others), **({} if of_cell == GATED else of_cell)}

    def _check_own(self, key: str, has: bool) -> None:
        """Raise ValueError if a switch is given that the cell lacks, or is missing though the cell has it."""
        if (getattr(self, key) is not None) != has:
            self.refuse(
                key, f"given for {self.cell} cells" if has else f"null, because {self.cell} cells do not have it"
            )

    @property
    def description(self) -> str:
        """Description for logs."""
        return f"{self.cell} cells, {super().description}"


CELL_SWITCHES = [key for key in CellConfig.settings() if key not in EncDecConfig.settings()]


def leaky_step(x: Tensor, Uh: Tensor, alpha: Tensor | None, state: State) -> State:
    """Take one step of units that keep a share α of their state; α = 0 equals tanh bit for bit."""
    assert alpha is not None
    return (torch.lerp(torch.tanh(x + Uh), state[0], alpha),)


PLAIN = {  # cells that use autograd, not the written-out gradient of gated steps
    "tanh": Cell(lambda x, Uh, _, __: (torch.tanh(x + Uh),)),
    "relu": Cell(lambda x, Uh, _, __: (torch.relu(x + Uh),)),
    "leaky": Cell(leaky_step, fixed=("alpha",)),
    "lstm": LSTM,
    "lstm-peephole": LSTM_PEEPHOLE,
}


class PlainCell(Layer):
    """An encoder or decoder with a cell of `PLAIN`, and the weights of its step except those of c."""

    config: EncDecConfig

    @property
    def cell(self) -> Cell:  # type: ignore[override]
        """The config's cell."""
        assert isinstance(self.config, CellConfig)
        return PLAIN[self.config.cell]

    def states(self, x: Tensor, c: Tensor | None, h_0: Tensor | None, active: Sequence[int]) -> Tensor:
        """Return all states h_t, packed; see `Recurrence.states`."""
        h_0 = x.new_zeros(active[0], self.config.hidden_size) if h_0 is None else h_0
        return self.run(x, c, self.cell.begin(h_0), active)[0]


class CellEncoder(PlainCell, Encoder):
    """Reads source words into the summary c, from h_N as in `Encoder`."""


class CellDecoder(PlainCell, Decoder):
    """Predicts target words from c as `Decoder` does; c enters all sums of a step, and the read-out."""

    def _add_context(self, H: int) -> None:
        self._add_sums("C", H, H)

    def source_parts(self, c: Tensor) -> EncodedPhrases:
        """Return what depends only on the source; `Cc` is the part of c and b in the sums (SH), `gates` is empty."""
        matmul = self.kernel.matmul
        return EncodedPhrases(
            h_0=torch.tanh(matmul(c, self.V) + self.b_V),
            gates=c.new_empty(len(c), 0),
            Cc=matmul(c, self.stacked("C")) + self.stacked("b"),
            O_cc=matmul(c, self.O_c) + self.b_O,
        )

    def inputs(self, a: Tensor) -> Tensor:
        """Return a word's part of the sums, without the biases, which are in `Cc`; nodes × SH."""
        return self.kernel.matmul(a, self.stacked("W"))


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
        """Draw weights as `EncDec` does, but U of relu is the identity, b_f the config's, and some α are U(0.02, 0.2).

        With equal seeds, cells with the same tensor names get equal weights.
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
    """Return the stepper for a network's cell."""
    return (CellStepper if model.config.cell in PLAIN else EncDecStepper)(model, device, dtype)


class CellStepper(EncDecStepper):
    """Steps an RNN Encoder-Decoder with another cell over packed rows."""

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

    def _source_parts(self, c: Tensor) -> EncodedPhrases:
        return self._model.decoder.source_parts(c)

    def _encoder_step(self, words: Tensor, states: Tensor, above: Tensor) -> Tensor:
        return self._step(self._reading, self._x_e.index_select(0, words), states.index_select(0, above), self._x_b)

    def _decoder_step(self, e: Tensor, h: Tensor, sources: Tensor, encoded: EncodedPhrases) -> Tensor:
        return self._step(self._writing, e, h, encoded.Cc.index_select(0, sources))

    def _step(self, layer: SteppedLayer, e: Tensor, state: Tensor, more: Tensor) -> Tensor:
        return torch.cat(layer.step(e, state.chunk(self._cell.carried, 1), more), 1)

    def _read_out(self, encoded: EncodedPhrases, prefixes: EncDecPrefixes) -> Tensor:
        """Return G_r s_t of each prefix; prefixes × R."""
        O_cc = encoded.O_cc.index_select(0, prefixes.sources)
        e = prefixes.e.to(self._dtype)
        return self._model.decoder.read_out(self._shown(prefixes.state), e, O_cc)


ENCDEC_OF_CELLS = Architecture(
    FIRST_NETWORK, "RNN Encoder-Decoder", "RNN", CellConfig, CellEncDec, stepper=cell_stepper, format=2
)
