"""A pair explained by a loaded network: log p word by word, and what a table has beside it."""

from __future__ import annotations

import os
from dataclasses import replace

from moses_rnn.analysis.explain import Explainer, Explanation, Lookup, explain_in_table, name_words
from moses_rnn.analysis.grids import readable
from moses_rnn.api.pairs import BytesPair, PairReading, PathLike
from moses_rnn.errors import CheckpointError
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.networks.hardware import HERE
from moses_rnn.networks.inspection import stepped_log_probs
from moses_rnn.scorers.base import Scorer
from moses_rnn.scorers.ensembles import Writer
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.table_blocks import Pairs


def explain_pair(
    writer: Writer, scorer: Scorer, reading: PairReading, pair: BytesPair, table: PathLike | None
) -> Explanation:
    """Explain a pair as a table has it, compared with what a table has if there is one.

    Raises:
        CheckpointError: its rare words are annotated; or it is no RNN Encoder-Decoder, and there is a table.
        InputError: the network cannot read the pair; or the table cannot be read, has other phrases, or is not the one
            that its signature is of.
    """
    model, *others = writer.models
    if writer.rare:
        raise CheckpointError(
            f"{model.folder}: expected a model without annotated words to explain, found one with {writer.rare.kind}"
        )
    read = reading.check(pair)
    lookup = Lookup(pair.source, pair.target, (read.source, read.target))
    if others or model.architecture is not ENCDEC:
        if table is not None:
            title = writer.title
            raise CheckpointError(f"table: expected an RNN Encoder-Decoder to compare with a table, found {title}")
        return _explain_words(writer, scorer, lookup)
    if table is not None:
        return explain_in_table(model, scorer, lookup, os.fspath(table))
    return replace(Explainer(model, scorer)(lookup), targets=None, ranks=[])


def _explain_words(writer: Writer, scorer: Scorer, pair: Lookup) -> Explanation:
    """What any network says of a pair."""
    read, written = map(words, pair.read[::-1] if writer.inverse else pair.read)
    source, target = writer.source_vocabulary, writer.target_vocabulary
    log_probs = stepped_log_probs(writer.make_stepper(HERE), source.ids(read), target.ids(written))
    known = source.id_of()
    return Explanation(
        source=readable(pair.source),
        target=readable(pair.target),
        scorer=scorer.name,
        log_prob=float(scorer.log_probs(Pairs.of([pair.read]))[0, 0]),
        words=name_words(target, written, log_probs),
        unknown=[readable(word) for word in read if word not in known],
    )
