"""Word lexicons, likeliest translations first: read from files, or counted from word links.

A dictionary file has lines ``source target p(target | source)``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from moses_rnn.errors import FormatError, shown
from moses_rnn.moses.alignments import Links
from moses_rnn.table.phrase_table import NUMBER
from moses_rnn.table.phrases import words

NULL = b"NULL"  # what GIZA++ and Moses write for no word
LinkCounts = defaultdict[bytes, Counter[bytes]]  # links of a source word to each target word


@dataclass(frozen=True)
class Lexicon:
    """Translations of each source word with p(target | source) above 0, likeliest first; ties in byte order.

    Words without translations are missing.
    """

    entries: Mapping[bytes, Sequence[tuple[bytes, float]]]
    left_out: int = 0  # lines of the file with NULL

    def likeliest(self, source: bytes, most: int) -> list[bytes]:
        """Return at most `most` translations of a word."""
        return [target for target, _ in self.entries.get(source, ())[:most]]

    def best(self, source: bytes) -> bytes | None:
        """Return the likeliest translation of a word; None if it is not in the lexicon."""
        return next(iter(self.likeliest(source, 1)), None)

    def coverage(self, words: Collection[bytes]) -> tuple[int, int]:
        """Return how many of the words it translates, and how many it has as translations."""
        targets = {target for translations in self.entries.values() for target, _ in translations}
        return sum(word in self.entries for word in words), sum(word in targets for word in words)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of a dictionary file, in byte order."""
        for source in sorted(self.entries):
            for target, p in self.entries[source]:
                yield b"%s %s %.9g\n" % (source, target, p)


def read_lexicon(lines: Iterable[bytes], name: str) -> Lexicon:
    """Read a dictionary from the lines of the file `name`; raise FormatError for a repeated pair of words.

    Lines with NULL on either side are left out.
    """
    entries: dict[bytes, dict[bytes, float]] = defaultdict(dict)
    left_out = 0
    for number, line in enumerate(lines, 1):
        source, target, p = _columns(line, name, number)
        if NULL in (source, target):
            left_out += 1
            continue
        if target in entries[source]:
            raise FormatError(name, number, "each pair of words once", f"{shown(source)} with {shown(target)} again")
        entries[source][target] = p
    ordered = {source: _ordered(targets) for source, targets in entries.items()}
    return Lexicon({source: targets for source, targets in ordered.items() if targets}, left_out)


def _columns(line: bytes, name: str, number: int) -> tuple[bytes, bytes, float]:
    columns = words(line.rstrip(b"\r\n"))
    if len(columns) != 3 or not NUMBER.fullmatch(columns[2]) or not 0 <= float(columns[2]) <= 1:
        raise FormatError(name, number, "source target p, with p from 0 to 1", shown(line))
    return columns[0], columns[1], float(columns[2])


def _ordered(targets: Mapping[bytes, float]) -> list[tuple[bytes, float]]:
    return sorted(((target, p) for target, p in targets.items() if p > 0), key=lambda entry: (-entry[1], entry[0]))


def count_links(pairs: Iterable[tuple[Sequence[bytes], Sequence[bytes], Links]]) -> LinkCounts:
    """Count the links between words in sentence pairs, given their words and checked links."""
    counts: LinkCounts = defaultdict(Counter)
    for source, target, links in pairs:
        for j, i in set(links):
            counts[source[j]][target[i]] += 1
    return counts


def lexicon_of(counts: LinkCounts, least: int = 1) -> Lexicon:
    """Make a lexicon of counted links: p(target | source) is a link's share of the source word's links.

    Pairs with fewer than `least` links are left out.
    """
    entries = {}
    for source, targets in counts.items():
        total = targets.total()
        often = {target: count / total for target, count in targets.items() if count >= least}
        if often:
            entries[source] = _ordered(often)
    return Lexicon(entries)
