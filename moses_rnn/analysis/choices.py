"""The choices of the analysis commands, without loading libraries, so that --help can show them."""

from __future__ import annotations

from typing import Annotated

from moses_rnn.options import Option

SEED = 1  # of all random samples
CRITERIA = ("rnn", "direct", "both")  # for pruning
METHODS = ("tsne", "pca")  # for the layout of maps
Column = Annotated[
    int | None,
    Option("Position of the RNN's score, from 0; -1 is the last [default: from the signature beside the table]"),
]
