"""Word alignments: ``source-target`` pairs of positions from 0, one line per sentence pair (Pharaoh's format).

Field 4 of phrase tables and the alignments in Moses's n-best lists have the same format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moses_rnn.errors import FormatError, shown
from moses_rnn.table.phrases import ALIGNMENT_POINT, words

Links = tuple[tuple[int, int], ...]  # (source, target) positions


def parse_links(text: bytes, name: str = "", number: int | None = None) -> Links:
    """Parse the links of a pair; a FormatError names the line `number` of the file `name`."""
    links = []
    for word in words(text):
        match = ALIGNMENT_POINT.fullmatch(word)
        if match is None:
            raise FormatError(name, number, "links such as 0-0 2-1", shown(word))
        links.append((int(match[1]), int(match[2])))
    return tuple(links)


def check_links(links: Links, source_words: int, target_words: int, name: str = "", number: int | None = None) -> None:
    """Refuse links to words that do not exist, as `parse_links` does."""
    for source, target in links:
        if source >= source_words or target >= target_words:
            expected = f"links between {source_words} source and {target_words} target words, counted from 0"
            raise FormatError(name, number, expected, f"{source}-{target}")


def read_links(lines: Iterable[bytes], name: str) -> Iterator[Links]:
    """Yield the links of each line of the file `name`; an empty line has none."""
    return (parse_links(line.rstrip(b"\r\n"), name, number) for number, line in enumerate(lines, 1))


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
