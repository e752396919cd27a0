"""Phrases that lie within a text, by their places: no Python object for each before somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class TextPhrases(Sequence[bytes]):
    """A sequence of phrases; a slice of it is another one, of the same text.

    Args:
        text: all of it.
        begins: of the phrases, as bytes from the text's beginning; phrases.
        ends: the same.
    """

    __hash__ = None  # type: ignore[assignment]  # equal to lists, which have none

    def __init__(self, text: bytes, begins: Ints, ends: Ints) -> None:
        self.text = text
        self.begins = begins
        self.ends = ends

    @classmethod
    def of(cls, phrases: Sequence[bytes]) -> TextPhrases:
        """Any phrases, laid end to end."""
        if isinstance(phrases, TextPhrases):
            return phrases
        lengths = np.fromiter(map(len, phrases), np.int64, len(phrases))
        ends = np.cumsum(lengths)
        return cls(b"".join(phrases), ends - lengths, ends)

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> TextPhrases: ...

    def __getitem__(self, at: int | slice) -> bytes | TextPhrases:
        if isinstance(at, slice):
            return TextPhrases(self.text, self.begins[at], self.ends[at])
        return self.text[self.begins[at] : self.ends[at]]

    def __iter__(self) -> Iterator[bytes]:
        text = self.text
        return iter([text[begin:end] for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and list(self) == list(other)


class AlignedPhrases(TextPhrases):
    """Source phrases that know how they are aligned to the targets beside them; a slice of them does not.

    Args:
        phrases: the sources.
        alignments: gives the links of each pair, as text; asked when somebody needs them.
    """

    def __init__(self, phrases: Sequence[bytes], alignments: Callable[[], Sequence[bytes]]) -> None:
        of = TextPhrases.of(phrases)
        super().__init__(of.text, of.begins, of.ends)
        self.alignments = alignments
