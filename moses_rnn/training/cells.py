"""What can be chosen about the cell of a phrase model, as its config.json has it.

Nothing here needs torch: the command line shows the choices in its --help.
"""

from __future__ import annotations

from typing import Any

from moses_rnn.training.config import PhraseModelRequest, refuse_foreign

CELLS = "gru", "tanh", "relu", "leaky", "lstm", "lstm-peephole"
LEAKY_SHARE = 0.25  # of the units
FORGET_BIAS = 1.0
SWITCHES = {
    "gru": ("encoder_reset", "decoder_reset"),
    "leaky": ("leaky_share",),
    "lstm": ("forget_bias",),
    "lstm-peephole": ("forget_bias",),
}


def check_cell(request: PhraseModelRequest) -> None:
    """Refuse what would do nothing.

    Raises:
        UnfitOption: a switch is given that the cell does not have.
    """
    given = request.given("encoder_reset", "decoder_reset", "leaky_share", "forget_bias")
    refuse_foreign(given, SWITCHES.get(request.cell, ()), f"cell {request.cell}")


def cell_switches(request: PhraseModelRequest) -> dict[str, Any]:
    """The switches of config.json that a network of format 1 does not have; none of them where it is one.

    A switch that means nothing for the cell is None, `decoder_reset` among them.
    """
    if request.cell == "gru":
        after = request.encoder_reset == "after"
        gated = {"cell": "gru", "encoder_reset": "after", "leaky_share": None, "forget_bias": None}
        return gated if after else {}
    leaky = LEAKY_SHARE if request.leaky_share is None else request.leaky_share
    bias = FORGET_BIAS if request.forget_bias is None else request.forget_bias
    return {
        "cell": request.cell,
        "encoder_reset": None,
        "decoder_reset": None,
        "leaky_share": leaky if request.cell == "leaky" else None,
        "forget_bias": bias if request.cell.startswith("lstm") else None,
    }
