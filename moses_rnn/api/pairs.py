"""Convert texts and pairs from Python to bytes for a network, or raise errors that name the argument."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import NamedTuple, TypeVar

from moses_rnn.errors import ArgumentError, FormatError, number_of, shown_value
from moses_rnn.options import MOST_WHOLE
from moses_rnn.table.phrases import PhraseForm, has_gaps

Item = TypeVar("Item")
Text = str | bytes  # str counts as UTF-8; surrogates stand for bytes that are none
PathLike = str | os.PathLike[str]

PAIR = "a pair (source, target), or (source, target, alignment)"


class Row(NamedTuple):
    """A line of a table; `counts` are how often target, source and pair were extracted, 0 where it does not say."""

    source: str
    target: str
    scores: tuple[float, ...]  # as the table has them
    alignment: str
    counts: tuple[float, float, float]


Pair = tuple[Text, Text] | tuple[Text, Text, Text] | Row  # source, target, and where a model needs them word alignments


class BytesPair(NamedTuple):
    """A pair as a table has it, called by its place in messages; `alignment` is None where none was given."""

    name: str
    source: bytes
    target: bytes
    alignment: bytes | None = None


def check_range(argument: str, value: int, least: int = 1, most: float = MOST_WHOLE) -> int:
    """Raise ArgumentError unless a value is a whole number from `least` to `most`."""
    with suppress(TypeError):
        number = operator.index(value)
        if least <= number <= most and not isinstance(value, bool):
            return number
    expected = f"a whole number {f'of at least {least}' if most == math.inf else f'from {least} to {most}'}"
    raise ArgumentError(argument, expected, shown_value(value))


def check_choice(argument: str, value: str, choices: Sequence[str]) -> str:
    """Raise ArgumentError unless a name is one of `choices`."""
    if value not in choices:
        raise ArgumentError(argument, f"one of {', '.join(choices)}", shown_value(value))
    return value


def items_of(argument: str, values: Iterable[Item], expected: str) -> Iterator[Item]:
    """Iterate over an argument; raise ArgumentError if it is no iterable."""
    try:
        return iter(values)
    except TypeError:
        raise ArgumentError(argument, f"an iterable of {expected}", shown_value(values)) from None


def texts_of(argument: str, values: Iterable[Text]) -> Iterator[bytes]:
    """Yield phrases or sentences as bytes; refuse a single text, values that are no text, and line ends."""
    if isinstance(values, str | bytes):  # would be split into texts of one letter
        advice = f"Put a single one into a list: [{shown_value(values)}]."
        raise ArgumentError(argument, "an iterable of texts", f"a single one: {shown_value(values)}", advice)
    texts = items_of(argument, values, "texts")
    return (_bytes_of(value, f"{argument}[{i}]") for i, value in enumerate(texts))


def pairs_of(sources: Iterable[Pair | Text], targets: Iterable[Text] | None = None) -> Iterator[BytesPair]:
    """Yield pairs as bytes, from pairs or rows alone or from as many sources as targets; raises as `Model.score`."""
    if targets is None:
        return (_pair_of(i, pair) for i, pair in enumerate(items_of("pairs", sources, "pairs")))
    both = zip(texts_of("sources", sources), texts_of("targets", targets), strict=True)  # type: ignore[arg-type]
    return (BytesPair(f"pairs[{i}]", *pair) for i, pair in enumerate(both))


def _pair_of(number: int, pair: Pair | Text) -> BytesPair:
    name = f"pairs[{number}]"
    if isinstance(pair, str | bytes | Mapping | Set):  # of two letters, or in no order
        raise ArgumentError(name, PAIR, shown_value(pair), "Two lists are scored by score(sources, targets).")
    try:
        parts = (pair.source, pair.target, pair.alignment) if isinstance(pair, Row) else tuple(pair)
    except TypeError:
        raise ArgumentError(name, PAIR, shown_value(pair)) from None
    if len(parts) not in {2, 3}:
        raise ArgumentError(name, PAIR, f"{number_of(len(parts), 'part')}: {shown_value(pair)}")
    return BytesPair(name, *[_bytes_of(part, name) for part in parts])


def _bytes_of(text: Text, name: str) -> bytes:
    try:
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise ArgumentError(name, "text that UTF-8 can hold", shown_value(text)) from None
    if not isinstance(data, bytes) or b"\n" in data:
        raise ArgumentError(name, "str or bytes without line ends", shown_value(text))
    return data


def as_str(data: bytes) -> str:
    """Return text as str; bytes that are not UTF-8 become surrogates, which this package accepts."""
    return data.decode("utf-8", "surrogateescape")


def read_pair(pair: BytesPair, form: PhraseForm, *, needs_links: bool = False) -> BytesPair:
    """Return the pair in the network's words; refuse one without the alignment that gaps or rare words need."""
    given = pair.alignment
    if needs_links and given is None:
        expected = "(source, target, alignment), as this model needs alignments to annotate rare words"
        raise FormatError(pair.name, None, expected, "no alignment", "Written as Moses does: 0-0 1-2 …")
    if form.is_plain:
        return pair
    if given is None and form.hierarchical and (has_gaps(pair.source) or has_gaps(pair.target)):
        expected = "(source, target, alignment) with the alignment of the rule's non-terminals"
        raise FormatError(pair.name, None, expected, "no alignment")
    form.check(pair.source, pair.target, given or b"", pair.name, None)
    source, target = form.read(pair.source, pair.target, given or b"")
    return pair._replace(source=source, target=target)
