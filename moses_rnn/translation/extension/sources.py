"""Which source phrases are extended: those of a table that have few targets, and a text's that the table lacks."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from moses_rnn.formats.lexical_weights import counts_of
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import SEPARATOR, TableLine

PARTED = b" " + SEPARATOR + b" "


def normalised(phrase: bytes) -> bytes:
    """The words of a phrase between single blanks."""
    return b" ".join(words(phrase))


def is_regular(line: TableLine) -> bool:
    """Whether a line begins with its source between single blanks, so that all such lines of it stand together."""
    return normalised(line.source) == line.source and line.line.startswith(line.source + PARTED)


@dataclass(frozen=True)
class Wanted:
    """A source phrase to be extended: its words between single blanks, its targets likewise, and how often it occurs.

    `count` is the table's, as field 5 has it; 0 of one that the table lacks.
    """

    source: bytes
    targets: frozenset[bytes] = frozenset()
    count: bytes = b"0"

    @property
    def key(self) -> bytes:
        """With what its lines begin."""
        return self.source + PARTED


@dataclass
class FewTargets:
    """Chooses the sources of a table that have few targets.

    Args:
        fewer_than: targets.
        longest: most words of a source.
        apart: targets on lines that do not stand with the others of their source.
        known: words that the network reads; a source with others is not chosen, but counted as `unknown`.
    """

    fewer_than: int
    longest: int
    apart: Mapping[bytes, Collection[bytes]]
    known: Collection[bytes]
    unknown: int = 0

    def __call__(self, lines: Iterable[TableLine]) -> Iterator[Wanted]:
        """Those sources, of all lines of the table, in their order."""
        for source, of_source in itertools.groupby(filter(is_regular, lines), lambda line: line.source):
            first = next(of_source)
            targets = {normalised(first.target), *self.apart.get(source, ())}
            while len(targets) < self.fewer_than and (line := next(of_source, None)):
                targets.add(normalised(line.target))
            if source and len(targets) < self.fewer_than and self._is_readable(source):
                counts = counts_of(first)
                yield Wanted(source, frozenset(targets), counts[1] if counts else b"0")

    def _is_readable(self, source: bytes) -> bool:
        """Whether it is short, and of words that are known."""
        of_source = words(source)
        is_known = all(word in self.known for word in of_source)
        self.unknown += not is_known
        return is_known and len(of_source) <= self.longest


@dataclass
class TextPhrases:
    """The phrases of a text that a network can read.

    `phrases` are all of up to a number of words, each of which the network knows; `unknown` are the other words of the
    text, and `words` is how many different words it has.
    """

    phrases: set[bytes] = field(default_factory=set)
    unknown: set[bytes] = field(default_factory=set)
    words: int = 0


def phrases_of_text(lines: Iterable[bytes], longest: int, known: Collection[bytes]) -> TextPhrases:
    """All phrases of a text, up to `longest` words.

    Args:
        lines: of the text, with their ends.
        longest: most words of a phrase.
        known: the words that the network reads.
    """
    text, every = TextPhrases(), set[bytes]()
    for line in lines:
        sentence = words(line.rstrip(b"\r\n"))
        every.update(sentence)
        for is_known, run in itertools.groupby(sentence, lambda word: word in known):
            if is_known:
                text.phrases.update(_n_grams(list(run), longest))
    text.unknown = every.difference(known)
    text.words = len(every)
    return text


def _n_grams(sentence: list[bytes], longest: int) -> Iterator[bytes]:
    for first in range(len(sentence)):
        for last in range(first + 1, min(first + longest, len(sentence)) + 1):
            yield b" ".join(sentence[first:last])
