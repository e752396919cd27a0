"""Pairs as plain lines of text, ``source TAB target``, for data that does not come from Moses.

Further columns may follow. Words are separated by blanks and tokenised like the network's corpus, and a line ends with
a line feed only. A side without words is an error, as is ``|||``, which separates fields in Moses's tables.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Annotated

from moses_rnn.errors import FormatError, shown
from moses_rnn.files.streams import BYTE_ORDER_MARK
from moses_rnn.options import Option
from moses_rnn.table.phrase_table import SEPARATOR
from moses_rnn.table.phrases import words

TAB = b"\t"
LAYOUTS = ("moses", "tsv")  # input formats of the commands
TableFormat = Annotated[
    str,
    Option(
        "Format of PHRASE_TABLE: Moses's, or tsv with one tab-separated source and target per line",
        "--format",
        choices=LAYOUTS,
    ),
]


def split_pair(line: bytes, name: str, number: int) -> tuple[bytes, bytes]:
    """Split a line, with or without line feed, into source and target; raise FormatError if no table can hold it.

    A byte order mark in the first line is left out.
    """
    if number == 1:
        line = line.removeprefix(BYTE_ORDER_MARK)
    columns = line.removesuffix(b"\n").split(TAB)
    if len(columns) < 2:
        raise FormatError(name, number, "source and target separated by a tab", shown(columns[0]))
    if columns[-1].endswith(b"\r"):
        raise FormatError(name, number, "a line that ends with LF", "one that ends with CR LF")
    for side, text in zip(("source", "target"), columns[:2], strict=True):
        if not words(text):
            raise FormatError(name, number, f"a {side} of words", "none")
        if SEPARATOR in text:
            raise FormatError(name, number, f"a {side} without |||", shown(text))
    return columns[0], columns[1]


def as_table_blocks(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Convert blocks of whole lines to phrase-table lines with the score 1; raises as `split_pair` does."""
    before = 0
    for block in blocks:
        lines = list(io.BytesIO(block))
        pairs = (split_pair(line, name, number) for number, line in enumerate(lines, start=before + 1))
        yield b"".join(b"%b ||| %b ||| 1\n" % pair for pair in pairs)
        before += len(lines)
