"""Pairs as plain lines of text, ``source TAB target``: for data that never met Moses.

Further columns may follow. Words stand with blanks between, tokenised as the network's corpus is, and a line ends with
a line feed alone. A side without words is an error, as is ``|||`` as a word, which parts the fields of Moses's tables.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Annotated

from moses_rnn.errors import FormatError, shown
from moses_rnn.options import Option
from moses_rnn.table.phrase_table import words

TAB = b"\t"
BAR = b"|||"
LAYOUTS = ("moses", "tsv")  # of what commands read: a phrase table, or such lines
TableFormat = Annotated[
    str,
    Option(
        "Format of PHRASE_TABLE: Moses's, or tsv with one tab-separated source and target per line",
        "--format",
        choices=LAYOUTS,
    ),
]


def split_pair(line: bytes, name: str, number: int) -> tuple[bytes, bytes]:
    """Source and target of a line, with or without its line feed; a FormatError says why no table could hold them."""
    columns = line.removesuffix(b"\n").split(TAB)
    if len(columns) < 2:
        raise FormatError(name, number, "source and target separated by a tab", shown(columns[0]))
    if columns[-1].endswith(b"\r"):
        raise FormatError(name, number, "a line that ends with LF", "one that ends with CR LF")
    for side, text in zip(("source", "target"), columns[:2], strict=True):
        if not (of_side := words(text)):
            raise FormatError(name, number, f"a {side} of words", "none")
        if BAR in of_side:
            raise FormatError(name, number, f"a {side} without the word |||", shown(text))
    return columns[0], columns[1]


def as_table_blocks(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Blocks of whole lines as those of a phrase table with the score 1, line for line; raises as `split_pair`."""
    before = 0
    for block in blocks:
        lines = list(io.BytesIO(block))
        pairs = (split_pair(line, name, number) for number, line in enumerate(lines, start=before + 1))
        yield b"".join(b"%b ||| %b ||| 1\n" % pair for pair in pairs)
        before += len(lines)
