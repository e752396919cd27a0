"""Where a network with attention looked while it wrote (Bahdanau et al. 2015, section 5.2.1, Figure 3), for some lines.

N source words with the end symbol, T target words. A map is of a given translation, or of the network's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from moses_rnn.errors import CheckpointError, FormatError, InputError
from moses_rnn.files.streams import read_lines
from moses_rnn.formats import grids
from moses_rnn.formats.phrase_forms import words
from moses_rnn.inference.steps import Stepper
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.vocabulary import END, Vocabulary
from moses_rnn.producers.base import HERE, Compute
from moses_rnn.producers.open import OpenModel
from moses_rnn.translation.alignments import Alpha, align, format_alignment, has_attention
from moses_rnn.translation.beam_search import BeamConfig
from moses_rnn.translation.hypotheses import Hypothesis
from moses_rnn.translation.translate import MOST_WORDS, Translator

BEAM = 12  # the paper's
WORDS_PER_SOURCE_WORD = 3  # as moses-rnn nmt translate has it

Lines = Mapping[int, bytes]  # chosen ones by their numbers, from 1


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


def read_chosen(source: str, target: str | None, numbers: Collection[int]) -> tuple[Lines, Lines]:
    """The chosen lines of a text and, if there is one, of its translation.

    Args:
        source: a file.
        target: a file of as many lines, or None.
        numbers: from 1.

    Raises:
        InputError: there is no such line; or the texts differ in length.
        FormatError: a chosen line of the source has no words, or more than `MOST_WORDS`.
    """
    chosen: tuple[dict[int, bytes], dict[int, bytes]] = {}, {}
    counts = [0, 0]
    for number, pair in enumerate(_together(source, target), start=1):
        for side, line in enumerate(pair):
            if line is not None:
                counts[side] = number
                if number in numbers:
                    chosen[side][number] = line.rstrip(b"\r\n")
    if target is not None and counts[0] != counts[1]:
        raise InputError(f"{target}: expected as many lines as {source} has, {counts[0]:,}, found {counts[1]:,}")
    for number in sorted(numbers):
        _check_line(source, number, chosen[0].get(number), counts[0])
    return chosen


def read_first(name: str, count: int, most_words: int) -> Lines:
    """The first lines of a text that have words, and not too many of them.

    Args:
        name: of a file.
        count: how many.
        most_words: of each.
    """
    lines = enumerate((line.rstrip(b"\r\n") for line in read_lines(name)), start=1)
    return dict(islice(((number, line) for number, line in lines if 0 < len(words(line)) <= most_words), count))


def _together(source: str, target: str | None) -> Iterator[tuple[bytes | None, bytes | None]]:
    return zip_longest(read_lines(source), [] if target is None else read_lines(target))


def _check_line(name: str, number: int, line: bytes | None, lines: int) -> None:
    if line is None:
        raise InputError(f"{name}: expected a line {number:,}, found {lines:,} lines")
    count = len(words(line))
    if not 0 < count <= MOST_WORDS:
        raise FormatError(name, number, f"1 to {MOST_WORDS:,} words to align", f"{count:,}")


def attentive_stepper(model: OpenModel, compute: Compute = HERE) -> Stepper[Any, Any]:
    """The network, arranged for search.

    Raises:
        CheckpointError: it has no attention.
        InputError: it learned from other phrases than plain words.
    """
    if not model.form.is_plain:
        raise InputError(f"{model.folder}: expected a model of plain words, found one of phrases ({model.form})")
    stepper = model.make_stepper(compute)
    if not has_attention(stepper):
        raise CheckpointError(
            f"{model.folder}: expected a network with attention, found {model.network_title}",
            advice="moses-rnn nmt train --architecture rnnsearch makes one.",
        )
    return stepper


def given_maps(
    checkpoint: Checkpoint, stepper: Stepper[Any, Any], sources: Lines, targets: Lines
) -> list[AlignmentMap]:
    """α of given translations, by a forced pass over them; in the order of their lines.

    Args:
        checkpoint: the network.
        stepper: the same; `attentive_stepper`.
        sources: what it reads.
        targets: the same lines of what it writes.
    """
    numbers = sorted(sources)
    read, written = ([words(side[number]) for number in numbers] for side in (sources, targets))
    hypotheses = [Hypothesis(tuple(checkpoint.target_vocabulary.ids(line)), 0.0, ended=True) for line in written]
    alphas = align(stepper, [checkpoint.source_vocabulary.ids(line) for line in read], hypotheses)
    return [
        _map(checkpoint, number, sides, alpha)
        for number, *sides, alpha in zip(numbers, read, written, alphas, strict=True)
    ]


def own_maps(
    checkpoint: Checkpoint, stepper: Stepper[Any, Any], sources: Lines, beam: int = BEAM
) -> list[AlignmentMap]:
    """α of the network's own translations, the best by beam search; in the order of their lines.

    Args:
        checkpoint: the network.
        stepper: the same; `attentive_stepper`.
        sources: what it reads.
        beam: width of the search.
    """
    config = BeamConfig(width=beam, words_per_source_word=WORDS_PER_SOURCE_WORD)
    translator = Translator(checkpoint.source_vocabulary, checkpoint.target_vocabulary, stepper, config, aligned=1)
    numbers = sorted(sources)
    translations = translator.translate([words(sources[number]) for number in numbers])
    maps = []
    for number, translation in zip(numbers, translations, strict=True):
        assert translation.alpha is not None
        sides = translation.source, words(translation.best.words)
        maps.append(_map(checkpoint, number, sides, translation.alpha))
    return maps


def _map(checkpoint: Checkpoint, number: int, sides: Sequence[list[bytes]], alpha: Alpha) -> AlignmentMap:
    source, target = sides
    unknown = _unknown(checkpoint.source_vocabulary, source) | _unknown(checkpoint.target_vocabulary, target)
    return AlignmentMap(number, source, target, alpha, unknown)


def _unknown(vocabulary: Vocabulary, line: Iterable[bytes]) -> frozenset[bytes]:
    known = vocabulary.id_of()
    return frozenset(word for word in line if word not in known)


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


def as_json(alignment: AlignmentMap) -> str:
    """A record on one line, as moses-rnn nmt translate --alignments writes it."""
    record = format_alignment(alignment.line, alignment.source, alignment.target, alignment.alpha)
    return record.decode().removesuffix("\n")
