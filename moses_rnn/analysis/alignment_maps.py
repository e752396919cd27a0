"""Where a network with attention looks while it translates (Bahdanau et al. 2015, section 5.2.1, Figure 3).

In shapes, N is the number of source words with the end symbol, T that of target words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moses_rnn.analysis import grids
from moses_rnn.errors import FormatError, InputError, number_of
from moses_rnn.models.annotated import source_reader
from moses_rnn.models.model import Model
from moses_rnn.networks.compute import HERE
from moses_rnn.networks.vocabulary import END
from moses_rnn.table.phrases import words
from moses_rnn.translation.requests import BEAM, WORDS_PER_SOURCE_WORD
from moses_rnn.translation.search import BeamConfig, BeamSearch, GeneratedTarget
from moses_rnn.translation.translate import (
    LONGEST_LINE,
    Alpha,
    align,
    check_plain,
    has_attention,
    no_attention,
    of_words,
    with_tokens,
)

MOST_CELLS = 120  # on each side of a picture


@dataclass(frozen=True)
class AlignmentMap:
    """The attention weights α of a sentence and its translation."""

    line: int  # in the text, from 1
    source: list[bytes]  # without the end symbol
    target: list[bytes]
    alpha: Alpha  # T × N, or (T + 1) × N if the translation ends with </s>
    unknown: frozenset[bytes] = frozenset()  # words outside the network's shortlists

    @property
    def columns(self) -> list[bytes]:
        """Source words, ``</s>`` last; N."""
        return [*self.source, END]

    @property
    def rows(self) -> list[bytes]:
        """Target words, one for each row of α."""
        return [*self.target, END][: len(self.alpha)]

    @property
    def text(self) -> str:
        """Both sentences as text."""
        return " → ".join(grids.unescaped(grids.readable(b" ".join(side))) for side in (self.source, self.target))


def map_alignments(
    model: Model, sources: Sequence[bytes], name: str, numbers: Iterable[int], targets: Sequence[bytes] | None = None
) -> list[AlignmentMap]:
    """Compute α for some lines of a text and their translations. Without `targets`, the network translates.

    `name` is the text's name in messages; `numbers` are the lines, from 1.

    Raises:
        InputError: a line is missing or has too many words. Or the model has no attention, did not learn from plain
            words, or writes tokens for rare words, which given translations lack.
    """
    check_plain(model)
    reads, writes, rare = model.source_vocabulary, model.target_vocabulary, model.rare
    if targets is not None and rare is not None and rare.needs_links:
        expected = "a model of plain words to align given translations"
        raise InputError(f"{model.folder}: expected {expected}, found one of annotated rare words ({rare.kind})")
    stepper = model.make_stepper(HERE)
    if not has_attention(stepper):
        raise no_attention(model, "moses-rnn nmt train --architecture rnnsearch makes one.")
    chosen = {}
    for number in sorted({*numbers}):
        if number > len(sources):
            raise InputError(f"{name}: expected at least {number_of(number, 'line')}, found {len(sources):,}")
        chosen[number] = words(sources[number - 1])
        if not 0 < len(chosen[number]) <= LONGEST_LINE:
            raise FormatError(name, number, f"1 to {LONGEST_LINE:,} words to align", f"{len(chosen[number]):,}")
    ids = list(map(source_reader(model), chosen.values()))
    if targets is None:
        config = BeamConfig(width=BEAM, words_per_source_word=WORDS_PER_SOURCE_WORD)
        search = BeamSearch(stepper, with_tokens(config, rare))
        hypotheses = [found[0] for found in search(ids)]
        written = [writes.spell(hypothesis.words) for hypothesis in hypotheses]
    else:
        written = [words(targets[number - 1]) for number in chosen]
        hypotheses = [GeneratedTarget(tuple(writes.ids(line)), 0.0, ended=True) for line in written]
    maps = []
    alphas = zip(align(stepper, ids, hypotheses), ids, hypotheses, strict=True)
    for (number, source), target, (alpha, read, h) in zip(chosen.items(), written, alphas, strict=True):
        alpha_of_words = of_words(alpha, reads, read, writes, h.words)
        unknown = [word for word in source if word not in reads] + [word for word in target if word not in writes]
        maps.append(AlignmentMap(number, source, target, alpha_of_words, frozenset(unknown)))
    return maps


def as_grid(alignment: AlignmentMap) -> grids.Grid:
    """Return α in per cent: a row for each target word, a column for each source word."""
    header = [f"line {alignment.line}", *(grids.readable(word) for word in alignment.columns)]
    rows = [
        [word, *(round(100 * share) for share in shares)]
        for word, shares in zip(alignment.rows, alignment.alpha.tolist(), strict=True)
    ]
    return grids.Grid("", header, rows)


def as_text(alignment: AlignmentMap) -> str:
    """Format α in per cent, and list the unknown words."""
    text = grids.as_text(as_grid(alignment))
    unknown = ", ".join(sorted(map(grids.readable, alignment.unknown)))
    return f"{text}\n  <unk> to the network: {unknown}" if unknown else text
