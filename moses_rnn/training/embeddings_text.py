"""Word embeddings as word2vec's text: a word and its numbers a line, blanks between; first perhaps how many of each.

After Mikolov's word2vec (2013), which writes ``rows width`` first; others, such as GloVe, leave that line out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from moses_rnn.errors import FormatError, shown
from moses_rnn.table.phrase_table import FLOAT32_LIMIT, words

Vector = list[float]
MOST_DIGITS = 19  # of a number of rows


class Header(NamedTuple):
    """What the first line may say."""

    rows: int
    width: int


def read_embeddings(
    lines: Iterable[bytes], name: str, width: int, wanted: Collection[bytes]
) -> Iterator[tuple[bytes, Vector]]:
    """The rows of some words, in the file's order; the others are checked and passed by.

    One row is in memory at a time, and the words so far.

    Args:
        lines: with or without their ends.
        name: of the file, for messages.
        width: how many numbers each word is to have.
        wanted: words.

    Raises:
        FormatError: a line is not a word and as many finite numbers, a word comes twice, or there are not as many rows
            as the first line says.
    """
    header: Header | None = None
    before: set[bytes] = set()
    for number, line in enumerate(lines, 1):
        fields = words(line.rstrip(b"\r\n"))
        if number == 1 and (header := _header(fields, width)):
            _check_width(header.width, width, name)
            continue
        word, row = _row(fields, name, number, width)
        if word in before:
            raise FormatError(name, number, "each word once", f"{shown(word)} again")
        before.add(word)
        if word in wanted:
            yield word, row
    expected = header.rows if header else max(len(before), 1)
    if len(before) != expected:
        what = f"{expected:,} rows, as its first line says" if header else f"rows of a word and {width} numbers"
        raise FormatError(name, None, what, f"{len(before):,}")


def _header(fields: Sequence[bytes], width: int) -> Header | None:
    """The first line, if it is one; of two whole numbers that may be a word and its number, too."""
    if len(fields) != 2 or not all(field.isdigit() and len(field) < MOST_DIGITS for field in fields):
        return None
    header = Header(*map(int, fields))
    return None if width == 1 != header.width else header


def _check_width(given: int, width: int, name: str) -> None:
    if given != width:
        advice = f"--embedding-size {given} makes a network for them." if given else ""
        raise FormatError(name, 1, f"{width} numbers for each word, the network's embedding size", f"{given}", advice)


def _row(fields: Sequence[bytes], name: str, number: int, width: int) -> tuple[bytes, Vector]:
    if not fields:
        raise FormatError(name, number, f"a word and {width} numbers", "an empty line")
    word, numbers = fields[0], fields[1:]
    if len(numbers) != width:
        expected = f"a word and {width} numbers, the network's embedding size"
        raise FormatError(name, number, expected, f"{len(numbers)} behind {shown(word)}")
    row = [_number(text) for text in numbers]
    if None in row:
        wrong = shown(numbers[row.index(None)])
        raise FormatError(name, number, "finite numbers as float32 holds them", f"{wrong} for {shown(word)}")
    return word, [value for value in row if value is not None]


def _number(text: bytes) -> float | None:
    """None of what is no finite number, to float32 at least."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if -FLOAT32_LIMIT < value < FLOAT32_LIMIT and b"_" not in text else None


def embedding_lines(names: Sequence[bytes], rows: Iterable[Iterable[float]], width: int) -> Iterator[bytes]:
    """The file's lines, of which the first says how many there are; nine digits give float32 back.

    Args:
        names: words.
        rows: the numbers of each.
        width: how many these are.
    """
    yield b"%d %d\n" % (len(names), width)
    for word, row in zip(names, rows, strict=True):
        yield b"%b %b\n" % (word, b" ".join(b"%.9g" % value for value in row))
