"""Phrase pairs as scorers take them, and phrases by their places in a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Phrases = Sequence[bytes]


class TextPhrases(Phrases):
    """A sequence of phrases of a text. There is no Python object for a phrase before somebody asks for it.

    A slice of it is another one, of the same text.

    Args:
        text: all of it.
        begins: of the phrases, as bytes from the text's beginning; phrases.
        ends: the same.
    """

    def __init__(self, text: bytes, begins: Ints, ends: Ints) -> None:
        self.text = text
        self.begins = begins
        self.ends = ends

    @classmethod
    def of(cls, phrases: Phrases) -> TextPhrases:
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


@dataclass(frozen=True)
class Pairs:
    """Phrase pairs: as many targets as sources, and the word alignment of each pair where it is known.

    Raises:
        ValueError: the numbers of sources, targets or alignments differ.
    """

    sources: Phrases
    targets: Phrases
    alignments: Phrases | None = None

    def __post_init__(self) -> None:
        for name, phrases in (("targets", self.targets), ("alignments", self.alignments)):
            if phrases is not None and len(phrases) != len(self.sources):
                raise ValueError(f"expected as many {name} as sources, found {len(phrases):,} and {len(self):,}")

    @classmethod
    def of(cls, pairs: Iterable[tuple[bytes, bytes]]) -> Pairs:
        """Pairs of which each is a source and a target."""
        pairs = list(pairs)
        return cls([source for source, _ in pairs], [target for _, target in pairs])

    def __len__(self) -> int:
        return len(self.sources)

    def sides(self, *, inverse: bool) -> tuple[Phrases, Phrases]:
        """What a network reads and what it predicts: sources and targets, or the other way round."""
        return (self.targets, self.sources) if inverse else (self.sources, self.targets)
