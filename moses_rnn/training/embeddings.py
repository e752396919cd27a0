"""Initialise embeddings from a file in word2vec's text format, and freeze them if asked to.

A line has a word and its numbers, separated by blanks. Mikolov's word2vec (2013) writes ``rows width`` in the first
line; others, such as GloVe, leave that line out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from moses_rnn.errors import FormatError, number_of, shown
from moses_rnn.files.streams import read_blocks, read_text
from moses_rnn.networks.network import Network
from moses_rnn.networks.vocabulary import END_ID, Vocabulary
from moses_rnn.table.phrase_table import FLOAT32_LIMIT
from moses_rnn.table.phrases import words

Vector = list[float]
MOST_DIGITS = 19  # of the number of rows


@dataclass
class RowsLeftOut:
    """How many rows of a file count for nothing."""

    blank: int = 0  # of words that have blanks, or are one, which no shortlist has
    repeated: int = 0  # of words of the shortlist that had a row before

    def __str__(self) -> str:
        counts = (self.blank, "of words with blanks"), (self.repeated, "of words that have a row before")
        texts = [f"{number_of(count, 'row')} {what}" for count, what in counts if count]
        return f"; left out: {', '.join(texts)}" if texts else ""


def read_embeddings(
    lines: Iterable[bytes], name: str, width: int, wanted: Collection[bytes], left_out: RowsLeftOut
) -> Iterator[tuple[bytes, Vector]]:
    """Yield the rows of wanted words, in the file's order; check and skip the others, and count those left out."""
    promised: int | None = None
    rows, before = 0, set[bytes]()
    for number, line in enumerate(lines, 1):
        text = line.rstrip(b"\r\n")
        if number == 1 and (promised := _rows_promised(words(text), width, name)) is not None:
            continue
        word, row = _row(text, name, number, width)
        rows += 1
        if not word or b" " in word:
            left_out.blank += 1
        elif word in before:
            left_out.repeated += 1
        elif word in wanted:
            before.add(word)
            yield word, row
    if promised is None and not rows:
        raise FormatError(name, None, f"rows of a word and {number_of(width, 'number')}", "0")
    if promised not in (None, rows):
        raise FormatError(name, None, f"{number_of(promised, 'row')}, as its first line says", f"{rows:,}")


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


def _row(text: bytes, name: str, number: int, width: int) -> tuple[bytes, Vector]:
    """Return a row's word and its last `width` fields; published files have words with blanks, and the word " "."""
    fields = words(text)
    if not fields:
        raise FormatError(name, number, f"a word and {number_of(width, 'number')}", "an empty line")
    end = len(fields) - width
    further = [_number(field) for field in fields[1:end]]
    is_word = end > 0 or (end == 0 and not text.startswith(fields[0]))
    if not is_word or (further and None not in further):
        expected = f"a word and {number_of(width, 'number')}, the network's embedding size"
        raise FormatError(name, number, expected, f"{len(fields) - 1} after {shown(fields[0])}")
    word, row = b" ".join(fields[:end]), [_number(field) for field in fields[end:]]
    if None in row:
        wrong = shown(fields[end + row.index(None)])
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
    left_out = RowsLeftOut()
    rows = _take(embedding, vocabulary, path, left_out)
    if frozen:
        embedding.register_hook(lambda gradient: gradient.index_fill(0, rows, 0.0))  # type: ignore[no-untyped-call]
    every = len(vocabulary) - END_ID - 1
    kept = ", frozen" if frozen else ""
    return (
        f"{side} embeddings: {len(rows):,} of {number_of(every, 'word')} from {path}{kept}; "
        f"{every - len(rows):,} random{left_out}"
    )


@torch.no_grad()
def _take(embedding: Tensor, vocabulary: Vocabulary, path: str, left_out: RowsLeftOut) -> Tensor:
    """Copy a file's rows for words in the shortlist; return the words' ids."""
    ids = {word: i for i, word in enumerate(vocabulary.words) if i > END_ID}
    taken = []
    for word, row in read_embeddings(read_text(path), path, embedding.shape[1], ids.keys(), left_out):
        embedding[ids[word]] = torch.tensor(row, dtype=embedding.dtype)
        taken.append(ids[word])
    return torch.tensor(taken, dtype=torch.int64, device=embedding.device)


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file's contents."""
    digest = hashlib.sha256()
    for block in read_blocks(path):
        digest.update(block)
    return digest.hexdigest()
