"""A pair explained by a loaded network: log p word by word, and what a table has beside it."""

from __future__ import annotations

import os

from moses_rnn.analysis.explain import Explanation, Lookup, explain_in_table, explain_words
from moses_rnn.api.pairs import BytesPair, PairReading, PathLike
from moses_rnn.errors import CheckpointError
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.scorers.base import Scorer
from moses_rnn.scorers.ensembles import Writer


def explain_pair(
    writer: Writer, scorer: Scorer, reading: PairReading, pair: BytesPair, table: PathLike | None
) -> Explanation:
    """Explain a pair as a table has it, compared with what a table has if there is one.

    A network whose rare words are annotated is refused, and beside a table any but an RNN Encoder-Decoder.
    """
    model, *others = writer.models
    if writer.rare:
        raise CheckpointError(
            f"{model.folder}: expected a model without annotated words to explain, found one with {writer.rare.kind}"
        )
    read = reading.check(pair)
    lookup = Lookup(pair.source, pair.target, (read.source, read.target))
    if table is None:
        return explain_words(writer, scorer, lookup)
    if others or model.architecture is not ENCDEC:
        raise CheckpointError(f"table: expected an RNN Encoder-Decoder to compare with a table, found {writer.title}")
    return explain_in_table(model, scorer, lookup, os.fspath(table))
