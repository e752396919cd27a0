"""Phrases of Moses tables: their words, factors and non-terminals, and how a network reads them.

A network reads words. In a factored table, it reads one factor of each side. In a hierarchical or syntactic table, it
reads non-terminals as words of their own: ``[X][X]`` becomes ``[X][X]1`` or ``[X][X]2``, numbered in source order, so
that a rule that swaps its gaps differs from a rule that does not; the left-hand side stays as the last word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from moses_rnn.errors import FormatError, shown

BLANKS = b" \t"
LEFT_HAND_SIDE = re.compile(rb"\[[^\[\] \t|]+\]")
NON_TERMINAL = re.compile(rb"\[[^\[\] \t|]+\]\[[^\[\] \t|]+\]")
ALIGNMENT_POINT = re.compile(rb"([0-9]{1,9})-([0-9]{1,9})")  # source-target, from 0
ESCAPED = "in a phrase-based table, write brackets as &#91; and &#93;."


def words(phrase: bytes) -> list[bytes]:
    """Split a phrase into words at spaces and tabs only, as Moses does (U+00A0 and the like stay inside words)."""
    if b"\t" in phrase:
        phrase = phrase.replace(b"\t", b" ")
    split = phrase.split(b" ")
    return [word for word in split if word] if b"" in split else split


def normalised(phrase: bytes) -> bytes:
    """Join the words of a phrase by single blanks."""
    return b" ".join(words(phrase))


@dataclass(frozen=True)
class PhraseForm:
    """How a network reads the phrases of a table.

    `source_factor` and `target_factor` are the factors used as words, from 0; None: words have no factors.
    `hierarchical`: phrases have non-terminals such as ``[X][X]``, and end with a left-hand side such as ``[X]``.
    """

    source_factor: int | None = None
    target_factor: int | None = None
    hierarchical: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether phrases are read unchanged."""
        return self == PLAIN

    @property
    def is_factored(self) -> bool:
        """Whether words of either side have factors."""
        return self.source_factor is not None or self.target_factor is not None

    @classmethod
    def from_record(cls, record: object) -> PhraseForm:
        """Make a form of its fields, as a model records them; anything else gives the plain form."""
        if not isinstance(record, Mapping):
            return PLAIN
        source, target = (record.get(key) for key in ("source_factor", "target_factor"))
        return cls(
            source if isinstance(source, int) and source >= 0 else None,
            target if isinstance(target, int) and target >= 0 else None,
            record.get("hierarchical") is True,
        )

    def __str__(self) -> str:
        sides = (("source", self.source_factor), ("target", self.target_factor))
        factors = " and ".join(f"{side} factor {factor}" for side, factor in sides if factor is not None)
        if not factors:
            return "hierarchical rules" if self.hierarchical else "plain words"
        return f"{'hierarchical rules' if self.hierarchical else 'words'} with {factors}"

    def read(self, source: bytes, target: bytes, alignment: bytes) -> tuple[bytes, bytes]:
        """Return both phrases, which must have passed `check`, as a network reads them."""
        if self.hierarchical:
            source, target = _numbered(words(source), words(target), alignment)
        return _factor(source, self.source_factor), _factor(target, self.target_factor)

    def _terminals(self, phrase: bytes) -> list[bytes]:
        """Return the words of a phrase without non-terminals and left-hand side, which have no factors."""
        terminals = words(phrase)
        if self.hierarchical:
            terminals = [word for word in terminals[:-1] if not NON_TERMINAL.fullmatch(word)]
        return terminals

    def check(self, source: bytes, target: bytes, alignment: bytes, name: str, number: int | None) -> list[int | None]:
        """Raise FormatError for phrases of another form; return the factors per word of each side, if known."""
        counts: list[int | None] = [None, None]
        if self.is_factored:
            sides = (("source", source, self.source_factor), ("target", target, self.target_factor))
            counts = [
                None if factor is None else _count_factors(side, self._terminals(phrase), factor, name, number)
                for side, phrase, factor in sides
            ]
        if self.hierarchical:
            _check_rule(words(source), words(target), alignment, name, number)
        elif b"]" in source or b"]" in target:
            for phrase in (source, target):
                if any(len(word) > 1 and word[:1] == b"[" and word[-1:] == b"]" for word in words(phrase)):
                    advice = f"In a hierarchical table, both phrases end with a left-hand side such as [X]; {ESCAPED}"
                    raise FormatError(name, number, "words without brackets", shown(phrase), advice)
        return counts


PLAIN = PhraseForm()


def is_rule(source: bytes, target: bytes) -> bool:
    """Whether both phrases end with a left-hand side, as in a hierarchical table."""
    lasts = [phrase.replace(b"\t", b" ").rsplit(b" ", 1)[-1] for phrase in (source, target)]
    return all(LEFT_HAND_SIDE.fullmatch(last) for last in lasts)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def has_gaps(phrase: bytes) -> bool:
    """Whether a rule's phrase has non-terminals."""
    return bool(_gaps(words(phrase)))


def _factor(phrase: bytes, factor: int | None) -> bytes:
    if factor is None:
        return phrase
    return b" ".join([word.split(b"|")[factor] if b"|" in word else word for word in words(phrase)])


def _count_factors(side: str, terminals: list[bytes], factor: int, name: str, number: int | None) -> int | None:
    counts = {word.count(b"|") + 1 for word in terminals}
    if len(counts) > 1:
        raise FormatError(name, number, f"the same number of factors in every {side} word", shown(b" ".join(terminals)))
    if counts and factor >= min(counts):
        found = f"{min(counts)} in {shown(b' '.join(terminals))}"
        raise FormatError(name, number, f"{side} words with a factor {factor} (counted from 0)", found)
    return max(counts, default=None)


def _gaps(phrase: list[bytes]) -> list[int]:
    return [i for i, word in enumerate(phrase[:-1]) if NON_TERMINAL.fullmatch(word)]


def _links(source: list[bytes], target: list[bytes], alignment: bytes) -> Iterator[tuple[int, int]]:
    """Yield the alignment points between non-terminals as source and target positions."""
    gaps = frozenset(_gaps(source)), frozenset(_gaps(target))
    for point in ALIGNMENT_POINT.finditer(alignment):
        s, t = int(point[1]), int(point[2])
        if s in gaps[0] and t in gaps[1]:
            yield s, t


def _check_rule(source: list[bytes], target: list[bytes], alignment: bytes, name: str, number: int | None) -> None:
    for side, phrase in (("source", source), ("target", target)):
        if not phrase or not LEFT_HAND_SIDE.fullmatch(phrase[-1]):
            expected = f"a left-hand side such as [X] at the end of the {side}, as on the first line"
            raise FormatError(
                name, number, expected, shown(b" ".join(phrase)), f"If the table is not hierarchical: {ESCAPED}"
            )
    gaps = _gaps(source), _gaps(target)
    links = sorted(_links(source, target, alignment))
    if [s for s, _ in links] != gaps[0] or sorted(t for _, t in links) != gaps[1]:
        expected = f"an alignment that pairs the {len(gaps[0])} and {len(gaps[1])} non-terminals one to one"
        raise FormatError(name, number, expected, shown(alignment), "Moses also stops at such a line.")


def _numbered(source: list[bytes], target: list[bytes], alignment: bytes) -> tuple[bytes, bytes]:
    for i, (s, t) in enumerate(sorted(_links(source, target, alignment)), start=1):
        source[s] += b"%d" % i
        target[t] += b"%d" % i
    return b" ".join(source), b" ".join(target)
