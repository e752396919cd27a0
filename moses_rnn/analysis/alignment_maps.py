"""Where a network with attention looked while it wrote (Bahdanau et al. 2015, section 5.2.1, Figure 3), for some lines.

N source words with the end symbol, T target words. A map is of a given translation, or of the network's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from moses_rnn.analysis import grids
from moses_rnn.errors import CheckpointError, FormatError, InputError
from moses_rnn.files.streams import read_lines
from moses_rnn.networks.hardware import HERE
from moses_rnn.networks.steps import Stepper
from moses_rnn.networks.vocabulary import END
from moses_rnn.scorers.open import Model
from moses_rnn.table.phrase_table import words
from moses_rnn.translation.search import BeamConfig, BeamSearch, Hypothesis
from moses_rnn.translation.translate import MOST_WORDS, Alpha, align, has_attention

BEAM = 12  # the paper's
WORDS_PER_SOURCE_WORD = 3  # as moses-rnn nmt translate has it

Lines = Mapping[int, bytes]  # chosen ones by their numbers, from 1, in order


@dataclass(frozen=True)
class AlignmentMap:
    """α of a sentence and a translation.

    Words that the network cannot tell from others, since they are outside its shortlists, are in `unknown`.
    """

    line: int  # of the text, from 1
    source: list[bytes]  # words without the end symbol
    target: list[bytes]
    alpha: Alpha  # T, and one more for the </s> of what has ended, × N
    unknown: frozenset[bytes] = frozenset()

    @property
    def columns(self) -> list[bytes]:
        """The words that were looked at, ``</s>`` last; N."""
        return [*self.source, END]

    @property
    def rows(self) -> list[bytes]:
        """The words that were written; as many as α has rows."""
        return [*self.target, END][: len(self.alpha)]

    @property
    def text(self) -> str:
        """Both sentences, to be read."""
        return " → ".join(grids.unescaped(grids.readable(b" ".join(side))) for side in (self.source, self.target))


def choose_lines(lines: Sequence[bytes], name: str, numbers: Iterable[int]) -> Lines:
    """Those lines of a source text that have these numbers; refused if there is none, or if it cannot be aligned."""
    chosen = {}
    for number in sorted({*numbers}):
        if number > len(lines):
            raise InputError(f"{name}: expected a line {number:,}, found {len(lines):,} lines")
        chosen[number] = lines[number - 1]
        count = len(words(chosen[number]))
        if not 0 < count <= MOST_WORDS:
            raise FormatError(name, number, f"1 to {MOST_WORDS:,} words to align", f"{count:,}")
    return chosen


def map_alignments(
    model: Model, sources: Sequence[bytes], name: str, numbers: Iterable[int], targets: Sequence[bytes] | None = None
) -> list[AlignmentMap]:
    """α of some lines of a source text of that name and of their translations: given ones, or the network's own."""
    stepper = _attentive_stepper(model)
    chosen = choose_lines(sources, name, numbers)
    return _own_maps(model, stepper, chosen) if targets is None else _given_maps(model, stepper, chosen, targets)


def map_first(model: Model, name: str, count: int, most_words: int) -> list[AlignmentMap]:
    """α of the network's own translations of the first lines that have words, and not more than `most_words`."""
    stepper = _attentive_stepper(model)
    lines = enumerate((line.rstrip(b"\r\n") for line in read_lines(name)), start=1)
    fitting = ((number, line) for number, line in lines if 0 < len(words(line)) <= most_words)
    return _own_maps(model, stepper, dict(islice(fitting, count)))


def _attentive_stepper(model: Model) -> Stepper[Any, Any]:
    """The network, arranged for search; refused if it has no attention, or learned from other phrases than words."""
    if not model.form.is_plain:
        raise InputError(f"{model.folder}: expected a model of plain words, found one of phrases ({model.form})")
    stepper = model.make_stepper(HERE)
    if not has_attention(stepper):
        raise CheckpointError(
            f"{model.folder}: expected a network with attention, found {model.network_title}",
            advice="moses-rnn nmt train --architecture rnnsearch makes one.",
        )
    return stepper


def _given_maps(
    model: Model, stepper: Stepper[Any, Any], sources: Lines, targets: Sequence[bytes]
) -> list[AlignmentMap]:
    """By a forced pass over the translations of the chosen sources, which are lines of a text."""
    read, written = [words(line) for line in sources.values()], [words(targets[number - 1]) for number in sources]
    hypotheses = [Hypothesis(tuple(model.target_vocabulary.ids(line)), 0.0, ended=True) for line in written]
    alphas = align(stepper, [model.source_vocabulary.ids(line) for line in read], hypotheses)
    return [_map(model, *one) for one in zip(sources, read, written, alphas, strict=True)]


def _own_maps(model: Model, stepper: Stepper[Any, Any], sources: Lines) -> list[AlignmentMap]:
    """By beam search."""
    config = BeamConfig(width=BEAM, words_per_source_word=WORDS_PER_SOURCE_WORD)
    read = [words(line) for line in sources.values()]
    ids = [model.source_vocabulary.ids(line) for line in read]
    best = [found[0] for found in BeamSearch(stepper, config)(ids)]
    written = [[model.target_vocabulary.words[word] for word in hypothesis.words] for hypothesis in best]
    return [_map(model, *one) for one in zip(sources, read, written, align(stepper, ids, best), strict=True)]


def _map(model: Model, number: int, source: list[bytes], target: list[bytes], alpha: Alpha) -> AlignmentMap:
    known = model.source_vocabulary.id_of(), model.target_vocabulary.id_of()
    unknown = (word for some, side in zip(known, (source, target), strict=True) for word in side if word not in some)
    return AlignmentMap(number, source, target, alpha, frozenset(unknown))


def as_grid(alignment: AlignmentMap) -> grids.Grid:
    """α in per cent: a row for each target word, a column for each source word."""
    header = [f"line {alignment.line}", *(grids.readable(word) for word in alignment.columns)]
    rows = [
        [word, *(round(100 * share) for share in shares)]
        for word, shares in zip(alignment.rows, alignment.alpha.tolist(), strict=True)
    ]
    return grids.Grid("", header, rows)


def as_text(alignment: AlignmentMap) -> str:
    """As `as_grid`, and which words are unknown."""
    text = grids.as_text(as_grid(alignment))
    unknown = ", ".join(sorted(map(grids.readable, alignment.unknown)))
    return f"{text}\n  <unk> to the network: {unknown}" if unknown else text
