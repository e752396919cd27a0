"""What can be chosen about the network that learns from a phrase table, beside the cell of an RNN Encoder-Decoder.

Nothing here needs torch: the command line shows the choices in its --help.
"""

from __future__ import annotations

import itertools
from typing import Any

from moses_rnn.training.cells import check_cell
from moses_rnn.training.config import PRESETS, PhraseModelRequest, UnfitOption, refuse_foreign

ENCDEC, CSTM, RANKER = ARCHITECTURES = "encdec", "cstm", "ranker"
SIZES: dict[str, dict[str, int]] = {
    CSTM: {"slots": 7, "embedding_size": 128, "first_size": 512, "second_size": 256},
    RANKER: {"slots": 7, "embedding_size": 64, "hidden_size": 256},
}
INITIAL_RANGES = {RANKER: 0.1}  # in place of a preset's: from the paper's ±0.01 some did not begin to learn
CORRUPT = "last", "any"  # which word of a target a ranker sees replaced
GATED = "summary", "first_step", "decoder_reset", "encoder_reset", "leaky_share", "forget_bias"
DEFAULTS = {"variant": "paper", "cell": "gru"}
OPTIONS = {  # that not all of them have
    ENCDEC: {*GATED, "variant", "cell", "hidden_size", "maxout_size", "output_rank", "sampled_words"},
    CSTM: {"slots", "first_size", "second_size", "sampled_words"},
    RANKER: {"slots", "hidden_size", "corrupt"},
}


def check_network(request: PhraseModelRequest) -> None:
    """Refuse what would do nothing.

    Raises:
        UnfitOption: a size or switch is given that the network does not have, or that says nothing.
    """
    given = request.given(*itertools.chain(*OPTIONS.values()))
    foreign = [name for name, value in given.items() if DEFAULTS.get(name) != value]
    refuse_foreign(foreign, OPTIONS[request.architecture], f"--architecture {request.architecture}")
    request.learning(PRESETS[request.preset_name].training)
    check_cell(request)
    _check_embeddings(request)
    slots = _slots(request)
    if slots and request.max_length > slots:
        raise UnfitOption("max_length", f"expected at most the {slots} slots, found {request.max_length}")


def _check_embeddings(request: PhraseModelRequest) -> None:
    given = request.given("source_embeddings", "target_embeddings")
    written = "source_embeddings" if request.inverse else "target_embeddings"
    if request.architecture == CSTM and written in given:
        raise UnfitOption(written, "--architecture cstm has no embeddings of what it writes")
    if request.freeze_embeddings and not given:
        raise UnfitOption("freeze_embeddings", "is for --source-embeddings and --target-embeddings")
    if request.freeze_embeddings and request.weight_decay:
        raise UnfitOption("freeze_embeddings", "expected no weight_decay, which would change them")


def slotted_network(request: PhraseModelRequest) -> dict[str, Any]:
    """Sizes and switches of a network with slots, as its config has them."""
    sizes = SIZES[request.architecture]
    switches = {"corrupt": request.corrupt or CORRUPT[0]} if request.architecture == RANKER else {}
    return {**sizes, **request.given(*sizes), **switches}


def longest(request: PhraseModelRequest) -> int:
    """Words of a side of what is learned, longer pairs are left out; 0: no limit."""
    return request.max_length or _slots(request)


def _slots(request: PhraseModelRequest) -> int:
    """Of the network; 0: it has none."""
    return 0 if request.architecture == ENCDEC else request.slots or SIZES[request.architecture]["slots"]
