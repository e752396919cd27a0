"""What can be chosen about the network that learns from a phrase table, beside the cell of an RNN Encoder-Decoder.

Nothing here needs torch: the command line shows the choices in its --help.
"""

from __future__ import annotations

from typing import Any

from moses_rnn.training.cells import check_cell
from moses_rnn.training.config import PhraseModelRequest

ARCHITECTURES = "encdec", "cstm"
CSTM_SIZES = {"slots": 7, "embedding_size": 128, "first_size": 512, "second_size": 256}
CSTM_RANGE = 0.01  # of its initial weights, as a CSLM's
SIZES_OF_ENCDEC = "hidden_size", "maxout_size", "output_rank"
OF_ENCDEC = "summary", "first_step", "decoder_reset", "encoder_reset", "leaky_share", "forget_bias", *SIZES_OF_ENCDEC
OF_CSTM = ("slots", "first_size", "second_size")


def check_network(request: PhraseModelRequest) -> None:
    """Refuse what would do nothing.

    Raises:
        ValueError: a size or switch is given that the network does not have.
    """
    foreign = [name for name in (OF_CSTM if request.architecture == "encdec" else OF_ENCDEC) if request.given(name)]
    if request.architecture != "encdec":
        foreign += ["variant"] * (request.variant != "paper") + ["cell"] * (request.cell != "gru")
    if foreign:
        raise ValueError(f"--{foreign[0].replace('_', '-')}: --architecture {request.architecture} has no such option")
    check_cell(request)
    slots = request.slots or CSTM_SIZES["slots"]
    if request.architecture == "cstm" and request.max_length > slots:
        raise ValueError(f"--max-length: expected at most the {slots} slots of the network, found {request.max_length}")


def cstm_network(request: PhraseModelRequest) -> dict[str, Any]:
    """The sizes of a CSTM, as its config has them."""
    return {**CSTM_SIZES, **request.given(*CSTM_SIZES)}


def longest(request: PhraseModelRequest) -> int:
    """Words of a side of what is learned, longer pairs are left out; 0: no limit."""
    if request.architecture == "cstm":
        slots: int = request.slots or CSTM_SIZES["slots"]
        return request.max_length or slots
    return request.max_length
