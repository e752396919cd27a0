"""What Python code gives, checked where a wrong number could come of it; the rest is left to Python."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from moses_rnn.errors import ArgumentError, shown_value

Text = str | bytes  # str counts as UTF-8; surrogates stand for bytes that are none
Pair = tuple[Text, Text] | tuple[Text, Text, Text]  # source, target, and where a model needs them word alignments
PathLike = str | os.PathLike[str]

PAIR = "a pair (source, target), or (source, target, alignment)"


class BytesPair(NamedTuple):
    """A pair as a table has it, and which one it is, from 0; `alignment` is None where none was given."""

    number: int
    source: bytes
    target: bytes
    alignment: bytes | None = None

    @property
    def name(self) -> str:
        """In messages."""
        return f"pairs[{self.number}]"


def check_range(argument: str, value: int, least: int = 1, most: float = math.inf) -> int:
    """Raise ArgumentError if a number is not one from `least` to `most`."""
    if not least <= value <= most:
        expected = f"a whole number from {least} {'on' if most == math.inf else f'to {most}'}"
        raise ArgumentError(argument, expected, shown_value(value))
    return value


def check_choice(argument: str, value: str, choices: Sequence[str]) -> str:
    """Raise ArgumentError if a name is not one of some."""
    if value not in choices:
        raise ArgumentError(argument, f"one of {', '.join(choices)}", shown_value(value))
    return value


def texts_of(argument: str, values: Iterable[Text]) -> Iterator[bytes]:
    """Any number of phrases or sentences, as bytes.

    Raises:
        ArgumentError: they are a single text; or, when its turn comes, one is no text, or has a line end.
    """
    if isinstance(values, str | bytes):  # which would be taken for texts of one letter
        advice = f"A single one goes into a list: [{shown_value(values)}]."
        raise ArgumentError(argument, "an iterable of texts", f"a single one: {shown_value(values)}", advice)
    return (_bytes_of(value, f"{argument}[{i}]") for i, value in enumerate(values))


def pairs_of(sources: Iterable[Pair] | Iterable[Text], targets: Iterable[Text] | None = None) -> Iterator[BytesPair]:
    """Pairs as bytes, from pairs alone or from as many sources as targets.

    Raises:
        ArgumentError: as `texts_of`; a pair is something else, or has not two parts, or three.
        ValueError: there are more sources than targets, or fewer.
    """
    if targets is None:
        return (_pair_of(i, pair) for i, pair in enumerate(sources))
    both = zip(texts_of("sources", sources), texts_of("targets", targets), strict=True)  # type: ignore[arg-type]
    return (BytesPair(i, *pair) for i, pair in enumerate(both))


def _pair_of(number: int, pair: Pair | Text) -> BytesPair:
    name = f"pairs[{number}]"
    if isinstance(pair, str | bytes | Mapping | Set):  # of two letters, or in no order
        raise ArgumentError(name, PAIR, shown_value(pair), "Two lists are scored by score(sources, targets).")
    parts = tuple(pair)
    if len(parts) not in {2, 3}:
        raise ArgumentError(name, PAIR, f"{len(parts)} parts: {shown_value(pair)}")
    return BytesPair(number, *[_bytes_of(part, name) for part in parts])


def _bytes_of(text: Text, name: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    if not isinstance(data, bytes) or b"\n" in data:
        raise ArgumentError(name, "str or bytes without line ends", shown_value(text))
    return data


def as_str(data: bytes) -> str:
    """Text as it is given back: what is not UTF-8 stands as surrogates, which this package takes back."""
    return data.decode("utf-8", "surrogateescape")
