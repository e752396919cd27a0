"""Word alignments: ``source-target`` pairs of positions from 0, one line per sentence pair (Pharaoh's format).

Field 4 of phrase tables and the alignments in Moses's n-best lists have the same format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moses_rnn.errors import FormatError, shown
from moses_rnn.table.phrase_table import ALIGNMENT_POINT, words

Links = tuple[tuple[int, int], ...]  # (source, target) positions


def parse_links(text: bytes) -> Links:
    """Parse the links of a pair; raise ValueError "expected …, found …" without a position, see `broken`."""
    links = []
    for word in words(text):
        match = ALIGNMENT_POINT.fullmatch(word)
        if match is None:
            raise ValueError(f"expected links such as 0-0 2-1, found {shown(word)}")
        links.append((int(match[1]), int(match[2])))
    return tuple(links)


def check_links(links: Links, source_words: int, target_words: int) -> None:
    """Raise the same kind of ValueError for links to words that do not exist."""
    for source, target in links:
        if source >= source_words or target >= target_words:
            there = f"{source_words} source and {target_words} target words"
            raise ValueError(f"expected links between {there}, counted from 0, found {source}-{target}")


def read_links(lines: Iterable[bytes], name: str) -> Iterator[Links]:
    """Yield the links of each line of the file `name`; an empty line has none."""
    for number, line in enumerate(lines, 1):
        try:
            yield parse_links(line.rstrip(b"\r\n"))
        except ValueError as error:
            raise broken(name, number, error) from error


def broken(name: str, number: int | None, error: ValueError) -> FormatError:
    """Turn such a ValueError into a FormatError with a position: ``name:number: expected …, found …``."""
    expected, _, found = str(error).removeprefix("expected ").rpartition(", found ")
    return FormatError(name, number, expected, found)


def transposed(links: Links) -> Links:
    """Swap the sides of links."""
    return tuple((target, source) for source, target in links)


def nearest(links: Links, target_words: int) -> list[int | None]:
    """Return, for each target word, the linked source word nearest by position; ties go to the left one.

    Positions are from 0; None for a word without links.
    """
    chosen: list[int | None] = [None] * target_words
    for source, target in sorted(links):
        before = chosen[target]
        if before is None or abs(source - target) < abs(before - target):
            chosen[target] = source
    return chosen


def format_links(links: Links) -> bytes:
    """Format links as a line, without its line end."""
    return b" ".join(b"%d-%d" % link for link in links)
