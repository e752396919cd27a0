"""What Python code gives, checked: an error names the argument, what is expected and what was found."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from moses_rnn.errors import ArgumentError, ArgumentTypeError, shown_value

Text = str | bytes  # str counts as UTF-8; surrogates stand for bytes that are none
Pair = tuple[Text, Text] | tuple[Text, Text, Text]  # source, target, and where a model needs them word alignments
PathLike = str | os.PathLike[str]

PAIRS = "pairs of a source and a target"
PAIR = "a pair (source, target), or (source, target, alignment)"
IN_A_LIST = "A single one goes into a list: [{}]."


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


def kind_of(value: object) -> str:
    """A value with its type, for messages."""
    return f"{type(value).__name__} {shown_value(value)}" if value is not None else "None"


def check_whole(argument: str, value: object, least: int = 1, most: float = math.inf) -> int:
    """A whole number from `least` to `most`.

    Raises:
        ArgumentTypeError: it is no whole number.
        ArgumentError: it is too small or too large.
    """
    expected = f"a whole number from {least} {'on' if most == math.inf else f'to {most}'}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(argument, expected, kind_of(value))
    if not least <= value <= most:
        raise ArgumentError(argument, expected, shown_value(value))
    return value


def check_positive(argument: str, value: object) -> float:
    """A finite number above 0.

    Raises:
        ArgumentTypeError: it is no number.
        ArgumentError: it is another one.
    """
    expected = "a number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentTypeError(argument, expected, kind_of(value))
    if not (value > 0 and math.isfinite(value)):
        raise ArgumentError(argument, expected, str(value))
    return float(value)


def check_choice(argument: str, value: object, choices: Sequence[str]) -> str:
    """One of some names.

    Raises:
        ArgumentTypeError: it is no text.
        ArgumentError: it is another one.
    """
    expected = f"one of {', '.join(choices)}"
    if not isinstance(value, str):
        raise ArgumentTypeError(argument, expected, kind_of(value))
    if value not in choices:
        raise ArgumentError(argument, expected, shown_value(value))
    return value


def check_path(argument: str, value: object) -> Path:
    """A path.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise ArgumentTypeError(argument, "a path, as str or os.PathLike", kind_of(value))
    return Path(value)


def texts_of(argument: str, values: object) -> Iterator[bytes]:
    """Any number of phrases or sentences, as bytes.

    Raises:
        ArgumentTypeError: they are not to be iterated over, or are a single text; or, when its turn comes, one is
            neither str nor bytes.
        ArgumentError: one has a line end, or characters that UTF-8 has not.
    """
    if isinstance(values, str | bytes):
        advice = IN_A_LIST.format(shown_value(values))
        raise ArgumentTypeError(argument, "an iterable of texts", f"a single {kind_of(values)}", advice)
    return (_bytes_of(value, argument, i) for i, value in enumerate(_iterable(argument, values, "of texts")))


def pairs_of(sources: object, targets: object = None) -> Iterator[BytesPair]:
    """Pairs as bytes, from pairs alone or from as many sources as targets.

    Raises:
        ArgumentTypeError: as `texts_of`; a pair is something else.
        ArgumentError: as `texts_of`; a pair has not two parts, or three; there are more sources than targets, or fewer.
    """
    if targets is not None:
        return _zipped(texts_of("sources", sources), texts_of("targets", targets))
    if isinstance(sources, str | bytes | Mapping):
        advice = "A single pair goes into a list: [(source, target)]."
        raise ArgumentTypeError("pairs", f"an iterable of {PAIRS}", kind_of(sources), advice)
    return (_pair_of(i, pair) for i, pair in enumerate(_iterable("pairs", sources, f"of {PAIRS}")))


def _iterable(argument: str, values: object, of_what: str) -> Iterable[object]:
    if not isinstance(values, Iterable):
        raise ArgumentTypeError(argument, f"an iterable {of_what}", kind_of(values))
    return values


def _zipped(sources: Iterator[bytes], targets: Iterator[bytes]) -> Iterator[BytesPair]:
    """Both sides, which end together."""
    count = 0
    for source in sources:
        target = next(targets, None)
        if target is None:
            raise ArgumentError("targets", "as many as there are sources", f"{count:,}, and more sources")
        yield BytesPair(count, source, target)
        count += 1
    if next(targets, None) is not None:
        raise ArgumentError("targets", f"as many as there are sources, {count:,}", "more")


def _pair_of(number: int, pair: object) -> BytesPair:
    parts = pair if type(pair) is tuple else _parts_of(number, pair)
    if len(parts) not in (2, 3):
        raise ArgumentError(f"pairs[{number}]", PAIR, f"{len(parts)} parts: {shown_value(pair)}")
    return BytesPair(number, *[_bytes_of(part, "pairs", number, i) for i, part in enumerate(parts)])


def _parts_of(number: int, pair: object) -> tuple[object, ...]:
    """Of a pair that is no tuple."""
    is_text = isinstance(pair, str | bytes | Mapping | Set)
    if is_text or not (hasattr(pair, "__len__") and isinstance(pair, Iterable)):
        advice = "Two lists are scored by score(sources, targets)." if isinstance(pair, str | bytes) else ""
        raise ArgumentTypeError(f"pairs[{number}]", PAIR, kind_of(pair), advice)
    return tuple(pair)


def _bytes_of(text: object, argument: str, *places: int) -> bytes:
    """Text as bytes; the argument's name is put together for an error alone, since there are many texts."""
    if isinstance(text, str):
        try:
            data = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            found = f"{shown_value(text)}: {error.reason}"
            raise ArgumentError(_place(argument, places), "text that UTF-8 can hold", found) from error
    elif isinstance(text, bytes):
        data = text
    else:
        raise ArgumentTypeError(_place(argument, places), "str or bytes", kind_of(text))
    if b"\n" in data:
        raise ArgumentError(_place(argument, places), "a text without line ends", shown_value(text))
    return data


def _place(argument: str, places: Iterable[int]) -> str:
    return argument + "".join(f"[{place}]" for place in places)


def as_str(data: bytes) -> str:
    """Text as it is given back: what is not UTF-8 stands as surrogates, which this package takes back."""
    return data.decode("utf-8", "surrogateescape")
