"""Shortlists: the words a network knows, each with an id; every other word is ``<unk>``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import CheckpointError
from moses_rnn.table.phrases import is_utf8
from moses_rnn.table.table_blocks import Ints, PhraseIds, Phrases

Ids = npt.NDArray[np.integer[Any]]  # word ids of a phrase, of concatenated phrases, or of n-grams
Phrase = Sequence[int]  # ids of a few words, without an end symbol
Reader = Callable[[Phrases], tuple[Ints, Ints]]  # gives the ids of many phrases, concatenated, and each one's length

UNKNOWN_ID = 0
END_ID = 1
UNKNOWN = b"<unk>"
END = b"</s>"
PARTS = re.compile(rb"[\x00-\x20\x7f]|\|\|\|")  # separates words, fields or lines; U+00A0 and the like do not


class Vocabulary:
    """Words by id: 0 is ``<unk>``, 1 is ``</s>``, then the shortlist by frequency.

    Words are bytes, as in the table. A word of the text spelt ``</s>`` is unknown, never the end of a phrase. A
    CheckpointError gives line numbers but quotes no lines: the file may be anything.
    """

    unit = "word"  # that has an id

    def __init__(self, words: Sequence[bytes]) -> None:
        self.words = list(words)
        if self.words[:2] != [UNKNOWN, END]:
            raise CheckpointError("expected a vocabulary to begin with <unk> and </s>, found other lines")
        self.id_of: dict[bytes, int] = {}  # without </s>; missing words are unknown
        for i, word in enumerate(self.words):
            if not is_word(word):
                raise CheckpointError(
                    f"expected a word on line {i + 1} of a vocabulary, found something else",
                    advice="A word is UTF-8 without blanks, control characters and |||.",
                )
            if self.id_of.setdefault(word, i) != i:
                again = f"line {i + 1} to repeat line {self.id_of[word] + 1}"
                raise CheckpointError(f"expected each word of a vocabulary once, found {again}")
        del self.id_of[END]

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: bytes) -> bool:
        return word in self.id_of

    def ids(self, words: Iterable[bytes]) -> list[int]:
        """Return the ids of words, without an end symbol."""
        get = self.id_of.get
        return [get(word, UNKNOWN_ID) for word in words]

    def reader(self) -> Reader:
        """Return a function that reads many phrases at once."""
        return PhraseIds(self.id_of)

    def spell(self, ids: Phrase) -> list[bytes]:
        """Return the words that ids stand for."""
        return [self.words[i] for i in ids]

    def firsts(self, ids: Phrase) -> list[int]:
        """Return the position of each word's first id."""
        return list(range(len(ids)))

    def to_bytes(self) -> bytes:
        """Format the vocabulary as a file: one word per line, ids from 0 in line order."""
        return b"".join(word + b"\n" for word in self.words)

    @classmethod
    def from_bytes(cls, data: bytes) -> Vocabulary:
        """Parse the output of `to_bytes`."""
        return cls(data.removesuffix(b"\n").split(b"\n"))

    def sha256(self) -> str:
        """Return the hash of the vocabulary file."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def shortlist(counts: Mapping[bytes, int], size: int, min_count: int = 1, tokens: Sequence[bytes] = ()) -> Vocabulary:
    """Return the `size` most frequent words; ties are broken by byte order.

    Skip invalid words (see `is_word`), spellings of special words, and words seen fewer than `min_count` times. The
    `tokens`, which stand for other words, come first, whatever their counts.
    """
    special = {UNKNOWN, END, *tokens}
    eligible = [word for word in counts if word not in special and counts[word] >= min_count and is_word(word)]
    by_frequency = sorted(eligible, key=lambda word: (-counts[word], word))
    return Vocabulary([UNKNOWN, END, *tokens, *by_frequency[:size]])


def is_word(word: bytes) -> bool:
    """Whether a network may write a word: UTF-8 that Moses's tables and lists read as one word."""
    return bool(word) and is_utf8(word) and not PARTS.search(word)


def coverage(counts: Mapping[bytes, int], vocabulary: Vocabulary) -> float:
    """Return the share of counted running words in the vocabulary, 0 to 1."""
    total = sum(counts.values())
    return sum(n for word, n in counts.items() if word in vocabulary and word != UNKNOWN) / total if total else 1.0
