"""What there is to choose from in an analysis; no library is loaded here, so that --help can show it."""

from __future__ import annotations

from typing import Annotated

from moses_rnn.options import Option

SEED = 1  # of all that is drawn
CRITERIA = ("rnn", "direct", "both")  # by which pairs are pruned
METHODS = ("tsne", "pca")  # by which maps are laid out
Column = Annotated[
    int | None,
    Option("Position of the RNN's score, from 0; -1 is the last [default: from the signature beside the table]"),
]
