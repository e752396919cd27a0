"""The one family of exceptions. Layers raise them; the command line alone prints them and exits with their code."""

from __future__ import annotations

import contextlib
import copyreg
from collections.abc import Callable, Iterator

SHOWN_BYTES = 200


class MosesRnnError(Exception):
    """A failure of this package that a user can understand: I/O, device, or one of the kinds below.

    As text it is the message, then each line of the advice on a line of its own.

    Args:
        message: cause, place, expectation and finding.
        advice: what the user can do about it; lines parted by ``\n``.
    """

    exit_code = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def add_advice(self, advice: str) -> None:
        """Add what a layer above knows, behind the advice that is there."""
        self.advice = "\n".join(filter(None, (self.advice, advice)))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors go from one process to another with all that they hold, without another call of their class."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return "\n  ".join([self.message, *(line.strip() for line in self.advice.split("\n") if line)])


class InputError(MosesRnnError):
    """An input file, a model or a combination of them was rejected."""

    exit_code = 3


class FormatError(InputError):
    """A place in a file does not follow its format: ``name:line: expected …, found …``."""

    def __init__(self, name: str, line: int | None, expected: str, found: str, advice: str = "") -> None:
        place = name if line is None else f"{name}:{line}"
        super().__init__(f"{place}: expected {expected}, found {found}", advice=advice)
        self.name = name
        self.line = line
        self.expected = expected
        self.finding = found


class PairError(InputError):
    """A pair of phrases cannot be scored; where it stands, a layer above knows."""


class ScoreError(MosesRnnError):
    """A model gives a pair or sentence no number that can be used; `row` is its place among those that it was given."""

    def __init__(
        self, message: str, row: int = 0, advice: str = "The model is damaged or its training diverged."
    ) -> None:
        super().__init__(message, advice=advice)
        self.row = row


class CheckpointError(InputError):
    """A model folder is incomplete, damaged, or not of this format."""


class MisfitError(InputError):
    """A model and a table do not fit each other; the user may insist."""


class OutputError(MosesRnnError):
    """An output cannot be written where it is wanted."""


class ArgumentError(MosesRnnError, ValueError):
    """What Python code gives is not a value of those that are possible: ``argument: expected …, found …``."""

    def __init__(self, argument: str, expected: str, found: str, advice: str = "") -> None:
        super().__init__(f"{argument}: expected {expected}, found {found}", advice=advice)


class Stopped(MosesRnnError):
    """Work was interrupted on request and can be resumed."""

    exit_code = 75


class AlreadyComplete(MosesRnnError):
    """What an interrupted run is supposed to have left unfinished is finished."""

    exit_code = 0


@contextlib.contextmanager
def placing(place: Callable[[int], str]) -> Iterator[None]:
    """Say where the pair or sentence stands that has no score, by its row."""
    try:
        yield
    except ScoreError as error:
        error.message = f"{place(error.row)}: {error.message}"
        raise


def shown_value(value: object) -> str:
    """Any value as it appears in a message: as Python writes it, at most 200 characters of it."""
    text = repr(value)
    return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]} … ({len(text)} characters)"


def printable(value: object, most: int = 80) -> str:
    """A value from a file that may hold anything, without what commands a terminal; at most so many characters."""
    text = str(value)
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return text if text.isprintable() else repr(text)


def shown(data: bytes) -> str:
    """Bytes as they appear in a message: quoted, escaped where they are no text, at most 200 bytes of them."""
    head = data[:SHOWN_BYTES].rstrip(b"\n")
    try:
        data.decode("utf-8")
        text = repr(head.decode("utf-8", "ignore"))  # of a last character that was cut nothing is left
    except UnicodeDecodeError:
        text = repr(head)[1:]
    return text if len(data) <= SHOWN_BYTES else text + f" … ({len(data)} bytes)"
