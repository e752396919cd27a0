"""A phrase pair and what a table has for it, found in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from moses_rnn.analysis.phrase_samples import PhraseSample
from moses_rnn.errors import FormatError, InputError, shown
from moses_rnn.formats.phrase_forms import PLAIN, PhraseForm, words
from moses_rnn.formats.phrase_table import SEPARATOR, TableLine, parse_line
from moses_rnn.formats.table_blocks import TableLines


class Option(NamedTuple):
    """A target of the source: as it stands in the table, its scores, and the pair in the network's words."""

    target: bytes
    scores: list[float]
    read: tuple[bytes, bytes]

    @classmethod
    def of(cls, line: TableLine, form: PhraseForm) -> Option:
        """What a line has."""
        read = form.read(line.source, line.target, line.alignment)
        return cls(b" ".join(words(line.target)), [float(score) for score in words(line.scores)], read)


@dataclass(frozen=True)
class Lookup:
    """A pair and what a table has for it.

    `read` is the pair in the network's words, source first; `options` are all targets of its source in the table's
    order, `chosen` is the pair's own place among them, or None; `others` is a sample of phrases that the network reads.
    """

    source: bytes
    target: bytes
    read: tuple[bytes, bytes]
    options: list[Option]
    chosen: int | None
    others: list[bytes]


def parse_pair(text: bytes, form: PhraseForm = PLAIN) -> Lookup:
    """A pair as somebody wrote it, or as a whole line of a table, still without a table.

    Raises:
        InputError: it is not a pair.
    """
    fields = [b" ".join(words(field)) for field in text.rstrip(b"\r\n").split(SEPARATOR)]
    if len(fields) < 2 or not fields[0] or not fields[1] or b"\n" in text.rstrip(b"\r\n"):
        raise InputError(f"expected a pair as 'source ||| target', found {shown(text)}")
    source, target = fields[:2]
    alignment = fields[3] if len(fields) > 3 else b""
    if alignment or not form.hierarchical:
        form.check(source, target, alignment, "the pair", 1)
    return Lookup(source, target, form.read(source, target, alignment), [], None, [])


def look_up(blocks: Iterable[TableLines], name: str, pair: Lookup, *, inverse: bool, others: int, seed: int) -> Lookup:
    """The pair with what the blocks of a table of that name have, and so many other phrases that a network reads.

    If a rule is in the table more than once, the first one counts. An inverse network reads target phrases.
    """
    sample = PhraseSample(others, seed)
    options: list[Option] = []
    for block in blocks:
        for phrase in dict.fromkeys(block.pairs().sides(inverse=inverse)[0]):
            sample.add(phrase)
        options += _options(block, name, pair.source)
    chosen = next((i for i, option in enumerate(options) if option.target == pair.target), None)
    read = pair.read if chosen is None else options[chosen].read
    return replace(pair, read=read, options=options, chosen=chosen, others=[phrase for (phrase,) in sample.items()])


def _options(block: TableLines, name: str, source: bytes) -> Iterator[Option]:
    if source not in block.text:
        return
    for i, of_line in enumerate(block.sources):
        if of_line == source:
            line = parse_line(block[i : i + 1].text, name, int(block.numbers[i]), block.form)
            option = Option.of(line, block.form)
            if min(option.scores) < 0:
                advice = "Moses cannot use a table of logarithms: score it again without --log."
                raise FormatError(name, line.number, "probabilities as scores", shown(line.scores), advice)
            yield option
