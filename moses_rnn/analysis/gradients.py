"""How far back gradients reach: the norm of a loss's gradient with respect to earlier states of the decoder.

Gradients vanish if each step shrinks them (Hochreiter 1991; Bengio et al. 1994). Gates and memory cells keep them
larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moses_rnn.analysis.grids import Cell, Grid
from moses_rnn.analysis.inspection import state_gradients
from moses_rnn.analysis.scored_table import Floats, Ints
from moses_rnn.errors import InputError
from moses_rnn.files.streams import Advanced, show_nothing
from moses_rnn.models.model import Model
from moses_rnn.networks.batches import row_slices
from moses_rnn.table.phrases import words

AT_ONCE = 64  # pairs in a batch
FEWEST = 30  # words in a mean
COLUMNS = "k", "words"


@dataclass(frozen=True)
class GradientNorms:
    """Mean norms of ∂L(t)/∂h'(t-k), for k from 0: L(t) is the loss of word t, h'(t) the state that predicts it."""

    words: Ints  # how many words have a state k steps before their own
    norms: dict[str, Floats]  # by model


def measure_gradients(
    models: Mapping[str, Model], sources: Sequence[bytes], targets: Sequence[bytes], advanced: Advanced = show_nothing
) -> GradientNorms:
    """Measure the gradients of RNN Encoder-Decoders over pairs of sentences. Inverse models read the targets.

    Raises InputError if models differ in direction or in what they write (words, or the same subwords), or if one is
    named like another column of the grid.
    """
    if len({model.inverse for model in models.values()}) > 1:
        raise InputError(
            "expected models of one direction, found some of p(target | source) and some of p(source | target)"
        )
    if reserved := {*COLUMNS} & models.keys():
        raise InputError(f"expected a model folder with another name, found {min(reserved)}, a column's name")
    norms: dict[str, Floats] = {}
    written_by: dict[str, list[int]] = {}
    for name, model in models.items():
        pairs = [
            (model.source_vocabulary.ids(words(read)), model.target_vocabulary.ids(words(written)))
            for read, written in zip(*((targets, sources) if model.inverse else (sources, targets)), strict=True)
        ]
        written_by[name] = [len(written) for _, written in pairs]
        if differing := [other for other, lengths in written_by.items() if lengths != written_by[name]]:
            raise InputError(f"expected models that cut the text alike, found {differing[0]} and {name}")
        pairs.sort(key=lambda pair: len(pair[1]))
        found = []
        for some in row_slices(len(pairs), AT_ONCE):
            found.append(state_gradients(model.network, *map(list, zip(*pairs[some], strict=True))))
            done = len(norms) * len(pairs) + some.stop
            advanced(done, done / (len(models) * len(pairs)))
        every, distances = (np.concatenate(parts) for parts in zip(*found, strict=True))
        counts = np.bincount(distances)
        counts = counts[: np.count_nonzero(counts >= min(FEWEST, counts[0]))]  # in descending order
        norms[name] = np.bincount(distances, every)[: len(counts)] / counts
    return GradientNorms(counts, norms)


def as_grid(gradients: GradientNorms) -> Grid:
    """Return a row for each distance."""
    columns = zip(gradients.words, *gradients.norms.values(), strict=True)
    rows: list[list[Cell]] = [[k, int(count), *map(float, norms)] for k, (count, *norms) in enumerate(columns)]
    title = "Mean norm of the gradient of a word's loss with respect to the state k steps before"
    return Grid(title, [*COLUMNS, *gradients.norms], rows)
