"""Shortlists: the words a network knows, each with an id; every other word is ``<unk>``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import CheckpointError

Ids = npt.NDArray[np.integer[Any]]  # of words: of a phrase, of phrases end to end, of n-grams
Phrase = Sequence[int]  # ids of a few words, without an end symbol

UNKNOWN_ID = 0
END_ID = 1
UNKNOWN = b"<unk>"
END = b"</s>"
PARTS = re.compile(rb"[\x00-\x20\x7f]|\|\|\|")  # words, fields or lines of a table or list; U+00A0 and the like do not


class Vocabulary:
    """Words by id: 0 is ``<unk>``, 1 is ``</s>``, then the shortlist by frequency.

    Words are bytes, as in the table. A word of the text that is spelled ``</s>`` is unknown, never the end of a phrase.
    CheckpointError names lines and repeats none: the file may be anything.
    """

    def __init__(self, words: Sequence[bytes]) -> None:
        self.words = list(words)
        if self.words[:2] != [UNKNOWN, END]:
            raise CheckpointError("expected a vocabulary to begin with <unk> and </s>, found other lines")
        self._ids: dict[bytes, int] = {}
        for i, word in enumerate(self.words):
            if not is_word(word):
                raise CheckpointError(
                    f"expected a word on line {i + 1} of a vocabulary, found something else",
                    advice="A word is UTF-8 without blanks, control characters and |||.",
                )
            if self._ids.setdefault(word, i) != i:
                again = f"line {i + 1} to repeat line {self._ids[word] + 1}"
                raise CheckpointError(f"expected each word of a vocabulary once, found {again}")
        del self._ids[END]

    def __len__(self) -> int:
        return len(self.words)

    def id_of(self) -> Mapping[bytes, int]:
        """Ids by word; what is not in it is unknown."""
        return self._ids

    def ids(self, words: Iterable[bytes]) -> list[int]:
        """Ids of words, without an end symbol."""
        get = self._ids.get
        return [get(word, UNKNOWN_ID) for word in words]

    def to_bytes(self) -> bytes:
        """The vocabulary as a file: one word a line, line number = id."""
        return b"".join(word + b"\n" for word in self.words)

    @classmethod
    def from_bytes(cls, data: bytes) -> Vocabulary:
        """Read what `to_bytes` wrote."""
        return cls(data.removesuffix(b"\n").split(b"\n"))

    def sha256(self) -> str:
        """Hash of the vocabulary file."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def shortlist(counts: Mapping[bytes, int], size: int, min_count: int = 1, tokens: Sequence[bytes] = ()) -> Vocabulary:
    """The `size` most frequent words; of equally frequent ones the first in byte order.

    What is no word of a vocabulary stays out, see `is_word`, and so do the special words' spellings and words seen less
    than `min_count` times. Before them come tokens that stand for other words, whatever their counts.
    """
    special = {UNKNOWN, END, *tokens}
    eligible = [word for word in counts if word not in special and counts[word] >= min_count and is_word(word)]
    by_frequency = sorted(eligible, key=lambda word: (-counts[word], word))
    return Vocabulary([UNKNOWN, END, *tokens, *by_frequency[:size]])


def is_word(word: bytes) -> bool:
    """Whether a network may write it: UTF-8 that a table or list of Moses takes for one word."""
    try:
        word.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return bool(word) and not PARTS.search(word)


def coverage(counts: Mapping[bytes, int], vocabulary: Vocabulary) -> float:
    """Share of the counted running words that the vocabulary knows, 0 to 1."""
    known = set(vocabulary.words[2:])
    total = sum(counts.values())
    return sum(n for word, n in counts.items() if word in known) / total if total else 1.0
