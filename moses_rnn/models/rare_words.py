"""Rare words by annotation (Luong, Sutskever, Le, Vinyals and Zaremba 2015; arXiv 1410.8206, section 3).

Tokens replace words outside a shortlist. They say where in the source each word comes from, so that it can be restored
after translation:

| kind | what is read | what is written |
|---|---|---|
| noalign | <unk> | <unk>; the k-th one is restored from the k-th unknown word that was read |
| copyable | <unk1> … <unk9> by first appearance, <unk0> from the tenth on | the number of the linked word, or <unk0> |
| posall | <unk> | <unk>, and behind every word <p:d>, or <p:n> |
| posunk | <unk> | <unk:d>, or <unk:n> |

d = j - i, where the i-th word written is linked to the j-th word read: to the nearest one, and of two equally near, to
the left one. It is n if there is no link or |d| is larger than the window.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

from moses_rnn.moses.alignments import Links, nearest

NOALIGN, COPYABLE, POSALL, POSUNK = KINDS = "noalign", "copyable", "posall", "posunk"
WINDOW = 7  # as in the paper
NUMBERED = 9  # unknown words of a source with their own numbers
UNKNOWN = b"<unk>"
NOWHERE = -1
RESERVED = re.compile(rb"<unk>|<unk[0-9]>|<(?:unk|p):(?:-?[0-9]{1,9}|n)>")
POINTER = re.compile(rb"<(?:unk|p):(-?[0-9]{1,9})>")
PLACE = re.compile(rb"<p:(?:-?[0-9]{1,9}|n)>")
UNKNOWN_POINTER = re.compile(rb"<unk:(?:-?[0-9]{1,9}|n)>")

Words = Sequence[bytes]
WordFor = Callable[[bytes], bytes]  # returns the translation of a source word


class Shortlists(NamedTuple):
    """The words that are not rare, without the tokens."""

    read: frozenset[bytes]
    written: frozenset[bytes]


class Written(NamedTuple):
    """A word of the output, and the place of the source word that it stands for."""

    word: bytes
    place: int | None = None  # from 0; NOWHERE: its token names none; None: it has no token
    at: int = 0  # its position among the output's tokens


class Restored(NamedTuple):
    """The output, with words in place of tokens."""

    words: list[bytes]
    kept: list[int]  # the position of each among the output's tokens
    places: list[int | None]  # of each; see `Written`
    replaced: int  # number of unknown words that were restored


@dataclass(frozen=True)
class RareWords:
    """How rare words are annotated; see the module's docstring.

    `kind` is one of KINDS; |d| is at most `window`.
    """

    kind: str
    window: int = WINDOW

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"expected a kind of {', '.join(KINDS)}, found {self.kind!r}")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RareWords:
        """Read kind and window from a model's config; raise ValueError for an unknown kind."""
        return cls(str(record["kind"]), int(record["window"]))

    @property
    def needs_links(self) -> bool:
        """Whether annotation needs the pairs' word alignments."""
        return self.kind != NOALIGN

    @property
    def doubles(self) -> bool:
        """Whether a token follows every written word."""
        return self.kind == POSALL

    @property
    def read_tokens(self) -> list[bytes]:
        """Tokens for words that are read, except <unk>."""
        return [b"<unk%d>" % number for number in (*range(1, NUMBERED + 1), 0)] if self.kind == COPYABLE else []

    @property
    def written_tokens(self) -> list[bytes]:
        """Tokens for or after words that are written, except <unk>."""
        letters = {POSALL: b"p", POSUNK: b"unk"}.get(self.kind)
        if letters is None:
            return self.read_tokens
        distances = range(-self.window, self.window + 1)
        return [*(b"<%s:%d>" % (letters, d) for d in distances), b"<%s:n>" % letters]

    @property
    def unknown_tokens(self) -> list[bytes]:
        """Tokens that replace written words, <unk> first."""
        return [UNKNOWN, *([] if self.doubles else self.written_tokens)]

    # --- annotating ---------------------------------------------------------------------------------------------------

    def annotate_source(self, source: Words, shortlist: frozenset[bytes]) -> list[bytes]:
        """Return the tokens that a network reads for a source; `shortlist` has its read words."""
        if self.kind != COPYABLE:
            return [word if word in shortlist else UNKNOWN for word in source]
        numbers = self._numbers(source, shortlist)
        return [word if word in shortlist else numbers[word] for word in source]

    def _numbers(self, source: Words, shortlist: frozenset[bytes]) -> dict[bytes, bytes]:
        """Return the numbered token of each unknown word."""
        unknown = dict.fromkeys(word for word in source if word not in shortlist)
        return {word: b"<unk%d>" % (k if k <= NUMBERED else 0) for k, word in enumerate(unknown, 1)}

    def annotate(self, source: Words, target: Words, links: Links, shortlists: Shortlists) -> tuple[Words, Words]:
        """Return the tokens read and written for a pair; its links (source, target) must be checked."""
        linked = nearest(links, len(target))
        read = self.annotate_source(source, shortlists.read)
        if self.kind == POSALL:
            known = [word if word in shortlists.written else UNKNOWN for word in target]
            pointed = [(word, self._pointer(b"p", i, linked[i])) for i, word in enumerate(known)]
            return read, [token for both in pointed for token in both]
        tokens = [
            word if word in shortlists.written else self._unknown(i, linked[i], read) for i, word in enumerate(target)
        ]
        return read, tokens

    def _unknown(self, i: int, j: int | None, read: Words) -> bytes:
        """Return the token for the unknown i-th target word, linked to the j-th source word."""
        if self.kind == POSUNK:
            return self._pointer(b"unk", i, j)
        if self.kind == COPYABLE:
            return read[j] if j is not None and RESERVED.fullmatch(read[j]) else b"<unk0>"
        return UNKNOWN

    def _pointer(self, letters: bytes, i: int, j: int | None) -> bytes:
        if j is None or abs(j - i) > self.window:
            return b"<%s:n>" % letters
        return b"<%s:%d>" % (letters, j - i)

    # --- restoring ----------------------------------------------------------------------------------------------------

    def restore(self, target: Words, source: Words, shortlist: frozenset[bytes], word_for: WordFor) -> Restored:
        """Restore the output's words: translate the source words that its tokens stand for.

        `source` is not annotated; `shortlist` has the network's read words.
        """
        return restore_words(self._written(target, source, shortlist), source, word_for)

    def _written(self, target: Words, source: Words, shortlist: frozenset[bytes]) -> Iterator[Written]:
        if self.kind == POSALL:
            yield from _all_pointed(target)
        elif self.kind == POSUNK:
            for i, word in enumerate(target):
                pointed = UNKNOWN_POINTER.fullmatch(word) is not None
                yield Written(UNKNOWN if pointed else word, _pointed_to(word, i) if pointed else None, i)
        else:
            places, tokens = self._places(source, shortlist), {UNKNOWN, *self.written_tokens}
            for i, word in enumerate(target):
                is_token = word in tokens
                place = next(places.get(word, iter(())), NOWHERE) if is_token else None
                yield Written(UNKNOWN if is_token else word, place, i)

    def _places(self, source: Words, shortlist: frozenset[bytes]) -> dict[bytes, Iterator[int]]:
        """Return, for each token, the positions of the unknown source words that it stands for, in order."""
        unknown = [j for j, word in enumerate(source) if word not in shortlist]
        if self.kind == NOALIGN:
            return {UNKNOWN: iter(unknown)}
        numbers = self._numbers(source, shortlist)
        return {token: repeat(source.index(word)) for word, token in numbers.items() if token != b"<unk0>"}


def _pointed_to(token: bytes, i: int) -> int:
    """Return the source position that the token for or after the i-th word points to; NOWHERE for <unk:n>, <p:n>."""
    match = POINTER.fullmatch(token)
    return i + int(match[1]) if match else NOWHERE


def _all_pointed(target: Words) -> Iterator[Written]:
    """Yield the words with the positions that the tokens after them point to; drop these tokens."""
    i = 0
    for at, word in enumerate(target):
        if PLACE.fullmatch(word):
            continue
        behind = target[at + 1] if at + 1 < len(target) else b""
        yield Written(word, _pointed_to(behind, i) if PLACE.fullmatch(behind) else None, at)
        i += 1


def restore_words(written: Iterable[Written], source: Words, word_for: WordFor) -> Restored:
    """Replace each ``<unk>`` that has a place in the source by the word for that place."""
    tokens = list(written)
    places = [NOWHERE if one.place is not None and not 0 <= one.place < len(source) else one.place for one in tokens]
    words = [
        word_for(source[place]) if one.word == UNKNOWN and place is not None and place != NOWHERE else one.word
        for one, place in zip(tokens, places, strict=True)
    ]
    replaced = sum(word != one.word for one, word in zip(tokens, words, strict=True))
    return Restored(words, [one.at for one in tokens], places, replaced)


def reserved_word(text: Words) -> bytes | None:
    """Return the first word spelt like a token of any kind; Moses's escaped text has none."""
    return next((word for word in text if b"<" in word and RESERVED.fullmatch(word)), None)
