"""Rare words by annotation (Luong, Sutskever, Le, Vinyals and Zaremba 2015; arXiv 1410.8206, section 3).

Words in, words out. In place of words outside a shortlist stand tokens that say where in the source each comes from, so
that it can be restored from there after translating:

| kind | what is read | what is written |
|---|---|---|
| noalign | <unk> | <unk>; the k-th one is restored from the k-th unknown word that was read |
| copyable | <unk1> … <unk9> by first appearance, <unk0> from the tenth on | the number of the linked word, or <unk0> |
| posall | <unk> | <unk>, and behind every word <p:d>, or <p:n> |
| posunk | <unk> | <unk:d>, or <unk:n> |

d = j - i, for the i-th word written and the j-th word read that it is linked to, the nearest one, of two equally near
ones the left; n where there is none, or |d| is above the window.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

from moses_rnn.moses.alignments import Links, nearest

NOALIGN, COPYABLE, POSALL, POSUNK = KINDS = "noalign", "copyable", "posall", "posunk"
WINDOW = 7  # of the paper
NUMBERED = 9  # unknown words of a source that have numbers of their own
UNKNOWN = b"<unk>"
RESERVED = re.compile(rb"<unk>|<unk[0-9]>|<(?:unk|p):(?:-?[0-9]{1,9}|n)>")
POINTER = re.compile(rb"<(?:unk|p):(-?[0-9]{1,9})>")
PLACE = re.compile(rb"<p:(?:-?[0-9]{1,9}|n)>")
UNKNOWN_POINTER = re.compile(rb"<unk:(?:-?[0-9]{1,9}|n)>")

Words = Sequence[bytes]
WordFor = Callable[[bytes], bytes]  # what is written for a source word


class Shortlists(NamedTuple):
    """The words that are not rare, without tokens."""

    read: frozenset[bytes]
    written: frozenset[bytes]


class Written(NamedTuple):
    """A word of what was written: as it stands, or where the source word is that belongs there."""

    word: bytes
    place: int | None = None  # of an unknown word, from 0; None: it does not say
    at: int = 0  # its place among the tokens that were written


class Restored(NamedTuple):
    """What was written, with words in place of tokens."""

    words: list[bytes]
    kept: list[int]  # the place of each among the tokens that were written
    replaced: int  # unknown words that were restored


@dataclass(frozen=True)
class RareWords:
    """How rare words are annotated; see above.

    `kind` is one of KINDS; |d| is at most `window`.
    """

    kind: str
    window: int = WINDOW

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"expected a kind of {', '.join(KINDS)}, found {self.kind!r}")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RareWords:
        """Kind and window, as a model's config has them; a ValueError if there is no such kind."""
        return cls(str(record["kind"]), int(record["window"]))

    @property
    def needs_links(self) -> bool:
        """Whether pairs are annotated by their word alignments."""
        return self.kind != NOALIGN

    @property
    def doubles(self) -> bool:
        """Whether a token follows every word that is written."""
        return self.kind == POSALL

    @property
    def read_tokens(self) -> list[bytes]:
        """What may stand for words that are read, <unk> apart."""
        return [b"<unk%d>" % number for number in (*range(1, NUMBERED + 1), 0)] if self.kind == COPYABLE else []

    @property
    def written_tokens(self) -> list[bytes]:
        """What may stand for or behind words that are written, <unk> apart."""
        letters = {POSALL: b"p", POSUNK: b"unk"}.get(self.kind)
        if letters is None:
            return self.read_tokens
        distances = range(-self.window, self.window + 1)
        return [*(b"<%s:%d>" % (letters, d) for d in distances), b"<%s:n>" % letters]

    @property
    def unknown_tokens(self) -> list[bytes]:
        """What may stand for words that are written, <unk> first."""
        return [UNKNOWN, *([] if self.doubles else self.written_tokens)]

    # --- annotating ---------------------------------------------------------------------------------------------------

    def annotate_source(self, source: Words, shortlist: frozenset[bytes]) -> list[bytes]:
        """What is read of a source; `shortlist` is of what is read."""
        if self.kind != COPYABLE:
            return [word if word in shortlist else UNKNOWN for word in source]
        numbers = self._numbers(source, shortlist)
        return [word if word in shortlist else numbers[word] for word in source]

    def _numbers(self, source: Words, shortlist: frozenset[bytes]) -> dict[bytes, bytes]:
        """The numbered token of each unknown word."""
        unknown = dict.fromkeys(word for word in source if word not in shortlist)
        return {word: b"<unk%d>" % (k if k <= NUMBERED else 0) for k, word in enumerate(unknown, 1)}

    def annotate(self, source: Words, target: Words, links: Links, shortlists: Shortlists) -> tuple[Words, Words]:
        """What is read and written of a pair, whose links were checked and are of the source's own order."""
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
        """What stands for the unknown i-th word, which is linked to the j-th one."""
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
        """Words for what was written: those of the source that tokens of the target stand for.

        `source` is as it was before it was annotated, `shortlist` of what is read.
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
                yield Written(UNKNOWN if word in tokens else word, next(places.get(word, iter(())), None), i)

    def _places(self, source: Words, shortlist: frozenset[bytes]) -> dict[bytes, Iterator[int]]:
        """Where the unknown words of a source are that each token stands for, one after the other."""
        unknown = [j for j, word in enumerate(source) if word not in shortlist]
        if self.kind == NOALIGN:
            return {UNKNOWN: iter(unknown)}
        numbers = self._numbers(source, shortlist)
        return {token: repeat(source.index(word)) for word, token in numbers.items() if token != b"<unk0>"}


def _pointed_to(token: bytes, i: int) -> int | None:
    """The place that a token behind or in place of the i-th word points to; None of <unk:n> and <p:n>."""
    match = POINTER.fullmatch(token)
    return i + int(match[1]) if match else None


def _all_pointed(target: Words) -> Iterator[Written]:
    """Words with the places that the tokens behind them point to; tokens themselves are dropped."""
    i = 0
    for at, word in enumerate(target):
        if PLACE.fullmatch(word):
            continue
        behind = target[at + 1] if at + 1 < len(target) else b""
        pointed = word == UNKNOWN and PLACE.fullmatch(behind)
        yield Written(word, _pointed_to(behind, i) if pointed else None, at)
        i += 1


def restore_words(written: Iterable[Written], source: Words, word_for: WordFor) -> Restored:
    """Replace each ``<unk>`` with a place in the source by the word that belongs there, if that is known."""
    words, kept, replaced = [], [], 0
    for token, place, at in written:
        points = token == UNKNOWN and place is not None and 0 <= place < len(source)
        word = word_for(source[place]) if points and place is not None else token
        replaced += word != token
        words.append(word)
        kept.append(at)
    return Restored(words, kept, replaced)


def reserved_word(text: Words) -> bytes | None:
    """The first word that is spelled as a token of whatever kind; Moses's escaped text has none."""
    return next((word for word in text if b"<" in word and RESERVED.fullmatch(word)), None)
