"""Initialise embeddings from a file in word2vec's text format, and freeze them if asked to.

A line has a word and its numbers, separated by blanks. Mikolov's word2vec (2013) writes ``rows width`` in the first
line; others, such as GloVe, leave that line out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from moses_rnn.errors import FormatError, number_of, shown
from moses_rnn.files.streams import read_blocks, read_lines
from moses_rnn.networks.network import Network
from moses_rnn.networks.vocabulary import END_ID, Vocabulary
from moses_rnn.table.phrase_table import FLOAT32_LIMIT
from moses_rnn.table.phrases import words

Vector = list[float]
MOST_DIGITS = 19  # of the number of rows


def read_embeddings(
    lines: Iterable[bytes], name: str, width: int, wanted: Collection[bytes]
) -> Iterator[tuple[bytes, Vector]]:
    """Yield the rows of wanted words, in the file's order; check and skip the others."""
    promised: int | None = None
    before: set[bytes] = set()
    for number, line in enumerate(lines, 1):
        fields = words(line.rstrip(b"\r\n"))
        if number == 1 and (promised := _rows_promised(fields, width, name)) is not None:
            continue
        word, row = _row(fields, name, number, width)
        if word in before:
            raise FormatError(name, number, "each word once", f"{shown(word)} again")
        before.add(word)
        if word in wanted:
            yield word, row
    if promised is None and not before:
        raise FormatError(name, None, f"rows of a word and {number_of(width, 'number')}", "0")
    if promised not in (None, len(before)):
        raise FormatError(name, None, f"{number_of(promised, 'row')}, as its first line says", f"{len(before):,}")


def _rows_promised(fields: Sequence[bytes], width: int, name: str) -> int | None:
    """Return the number of rows in the first line, or None if it is a row, such as a numeric word and its number."""
    if len(fields) != 2 or not all(field.isdigit() and len(field) < MOST_DIGITS for field in fields):
        return None
    rows, given = map(int, fields)
    if given == width:
        return rows
    if width == 1:
        return None
    advice = f"--embedding-size {given} makes a network for them." if given else ""
    raise FormatError(
        name, 1, f"{number_of(width, 'number')} for each word, the network's embedding size", f"{given}", advice
    )


def _row(fields: Sequence[bytes], name: str, number: int, width: int) -> tuple[bytes, Vector]:
    if not fields:
        raise FormatError(name, number, f"a word and {number_of(width, 'number')}", "an empty line")
    word, numbers = fields[0], fields[1:]
    if len(numbers) != width:
        expected = f"a word and {number_of(width, 'number')}, the network's embedding size"
        raise FormatError(name, number, expected, f"{len(numbers)} after {shown(word)}")
    row = [_number(text) for text in numbers]
    if None in row:
        wrong = shown(numbers[row.index(None)])
        raise FormatError(name, number, "finite numbers in the range of float32", f"{wrong} for {shown(word)}")
    return word, [value for value in row if value is not None]


def _number(text: bytes) -> float | None:
    """Parse a number; return None if it is not finite in float32."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if -FLOAT32_LIMIT < value < FLOAT32_LIMIT and b"_" not in text else None


def embedding_lines(names: Sequence[bytes], rows: Iterable[Iterable[float]], width: int) -> Iterator[bytes]:
    """Yield the lines of a file; the first has the counts of words and numbers. Nine digits preserve float32."""
    yield b"%d %d\n" % (len(names), width)
    for word, row in zip(names, rows, strict=True):
        yield b"%b %b\n" % (word, b" ".join(b"%.9g" % value for value in row))


# --- in a training ----------------------------------------------------------------------------------------------------


def begin_as(path: str, model: Network, side: str, vocabulary: Vocabulary, *, frozen: bool = False) -> str:
    """Set a side's embeddings, except ``<unk>`` and ``</s>``, to a file's rows; return a line for a log."""
    embedding = model.embeddings[side]
    rows = _take(embedding, vocabulary, path)
    if frozen:
        embedding.register_hook(lambda gradient: gradient.index_fill(0, rows, 0.0))  # type: ignore[no-untyped-call]
    every = len(vocabulary) - END_ID - 1
    kept = ", frozen" if frozen else ""
    return (
        f"{side} embeddings: {len(rows):,} of {number_of(every, 'word')} from {path}{kept}; "
        f"{every - len(rows):,} random"
    )


@torch.no_grad()
def _take(embedding: Tensor, vocabulary: Vocabulary, path: str) -> Tensor:
    """Copy a file's rows for words in the shortlist; return the words' ids."""
    ids = {word: i for i, word in enumerate(vocabulary.words) if i > END_ID}
    taken = []
    for word, row in read_embeddings(read_lines(path), path, embedding.shape[1], ids.keys()):
        embedding[ids[word]] = torch.tensor(row, dtype=embedding.dtype)
        taken.append(ids[word])
    return torch.tensor(taken, dtype=torch.int64, device=embedding.device)


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file's contents."""
    digest = hashlib.sha256()
    for block in read_blocks(path):
        digest.update(block)
    return digest.hexdigest()
