"""What can be chosen about the cell of a phrase model, as its config.json has it.

Nothing here needs torch: the command line shows the choices in its --help.
"""

from __future__ import annotations

from typing import Any

from moses_rnn.training.config import PhraseModelRequest

CELLS = "gru", "tanh", "relu", "leaky", "lstm", "lstm-peephole"
LEAKY_SHARE = 0.25  # of the units
FORGET_BIAS = 1.0


def check_cell(request: PhraseModelRequest) -> None:
    """Refuse what would do nothing.

    Raises:
        ValueError: a switch is given that the cell does not have.
    """
    has = {
        "encoder_reset": request.cell == "gru",
        "decoder_reset": request.cell == "gru",
        "leaky_share": request.cell == "leaky",
        "forget_bias": request.cell.startswith("lstm"),
    }
    for name, possible in has.items():
        if getattr(request, name) is not None and not possible:
            raise ValueError(f"--{name.replace('_', '-')}: --cell {request.cell} has no such switch")


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
