"""Word alignments: ``source-target`` pairs of positions from 0, a line for each pair of sentences (Pharaoh's format).

A phrase table's field 4, and the alignment that Moses prints into n-best lists, are written alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moses_rnn.errors import FormatError, shown
from moses_rnn.table.phrase_table import ALIGNMENT_POINT, words

Links = tuple[tuple[int, int], ...]  # source and target position of each


def parse_links(text: bytes) -> Links:
    """The links of a pair; a ValueError says "expected …, found …" without its place, see `broken`."""
    links = []
    for word in words(text):
        match = ALIGNMENT_POINT.fullmatch(word)
        if match is None:
            raise ValueError(f"expected links such as 0-0 2-1, found {shown(word)}")
        links.append((int(match[1]), int(match[2])))
    return tuple(links)


def check_links(links: Links, source_words: int, target_words: int) -> None:
    """Refuse links to words that are not there, by such a ValueError too."""
    for source, target in links:
        if source >= source_words or target >= target_words:
            there = f"{source_words} source and {target_words} target words"
            raise ValueError(f"expected links between {there}, counted from 0, found {source}-{target}")


def read_links(lines: Iterable[bytes], name: str) -> Iterator[Links]:
    """The links of each line of the file `name`; an empty line has none."""
    for number, line in enumerate(lines, 1):
        try:
            yield parse_links(line.rstrip(b"\r\n"))
        except ValueError as error:
            raise broken(name, number, error) from error


def broken(name: str, number: int | None, error: ValueError) -> FormatError:
    """The same with its place: ``name:number: expected …, found …``."""
    expected, _, found = str(error).removeprefix("expected ").rpartition(", found ")
    return FormatError(name, number, expected, found)


def transposed(links: Links) -> Links:
    """The links as they are from the other side."""
    return tuple((target, source) for source, target in links)


def nearest(links: Links, target_words: int) -> list[int | None]:
    """For each target word the linked source word that is nearest by position, of two equally near ones the left.

    Positions from 0; None of a word without links.
    """
    chosen: list[int | None] = [None] * target_words
    for source, target in sorted(links):
        before = chosen[target]
        if before is None or abs(source - target) < abs(before - target):
            chosen[target] = source
    return chosen


def format_links(links: Links) -> bytes:
    """A line's worth of links, without its end."""
    return b" ".join(b"%d-%d" % link for link in links)
