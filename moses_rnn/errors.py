"""The package's exceptions. All layers raise them; only the command line prints them and exits with their code."""

from __future__ import annotations

import contextlib
import copyreg
from collections.abc import Callable, Iterator

SHOWN_BYTES = 200
OUT_OF_MEMORY = ("allocate memory", "out of memory", "ALLOC_FAILED", "std::bad_alloc", "failed to map segment")


class MosesRnnError(Exception):
    """A failure of this package that a user can understand: I/O, device, or one of the kinds below.

    As text it is the message, then each line of the advice on a line of its own.

    Args:
        message: cause, place, expectation and finding.
        advice: what the user can do about it; lines parted by ``\n``.
    """

    exit_code = 1
    mendable = True  # whether a run can continue after it: its input is not wrong as a whole

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def add_advice(self, advice: str) -> None:
        """Append advice from a layer above."""
        self.advice = "\n".join(filter(None, (self.advice, advice)))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle an error with all its attributes, without calling its class again."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return "\n  ".join([self.message, *(line.strip() for line in self.advice.split("\n") if line)])


class InputError(MosesRnnError):
    """An input file, a model, a combination of them or a variable of the environment was rejected."""

    exit_code = 3
    mendable = False


class FormatError(InputError):
    """A place in a file does not follow its format: ``name:line: expected …, found …``."""

    def __init__(self, name: str, line: int | None, expected: str, found: str, advice: str = "") -> None:
        place = name if line is None else f"{name}:{line}"
        super().__init__(f"{place}: expected {expected}, found {found}", advice=advice)
        self.name = name
        self.line = line
        self.mendable = line is not None
        self.expected = expected
        self.finding = found


class PairError(InputError):
    """A pair of phrases cannot be scored; a layer above knows its position."""


class ScoreError(MosesRnnError):
    """A model gives a pair or sentence no usable score; `row` is its position among the model's inputs."""

    def __init__(
        self, message: str, row: int = 0, advice: str = "The model is damaged or its training diverged."
    ) -> None:
        super().__init__(message, advice=advice)
        self.row = row


class CheckpointError(InputError):
    """A model folder is incomplete, damaged, or not of this format."""


class MisfitError(InputError):
    """A model and a table do not fit each other; the user may insist."""

    mendable = True


class OutputError(MosesRnnError):
    """An output cannot be written where it is wanted."""


class ArgumentError(MosesRnnError, ValueError):
    """An argument from Python code is invalid: ``argument: expected …, found …``."""

    def __init__(self, argument: str, expected: str, found: str, advice: str = "") -> None:
        super().__init__(f"{argument}: expected {expected}, found {found}", advice=advice)


class Stopped(MosesRnnError):
    """Work was interrupted on request and can be resumed."""

    exit_code = 75


class AlreadyComplete(MosesRnnError):
    """There is nothing to resume: the output is complete. `result` is what the run that made it returned, if known."""

    exit_code = 0
    result: object = None


@contextlib.contextmanager
def placing(place: Callable[[int], str]) -> Iterator[None]:
    """Add the position of a pair or sentence without a score to its ScoreError, given its row."""
    try:
        yield
    except ScoreError as error:
        error.message = f"{place(error.row)}: {error.message}"
        raise


def says_out_of_memory(error: Exception) -> bool:
    """Whether torch, CUDA's libraries, the C++ library or the dynamic loader says that memory ran out."""
    return any(words in str(error) for words in OUT_OF_MEMORY)


def number_of(number: float, one: str, many: str = "") -> str:
    """Format a number of things for a message: 1 line, 2,000 lines; `many` is by default `one` with an s."""
    text = f"{int(number):,}" if number == int(number) else f"{number:g}"
    return f"{text} {one if number == 1 else many or f'{one}s'}"


def shown_value(value: object) -> str:
    """Format any value for a message: its repr, at most 200 characters."""
    text = repr(value)
    return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]} … ({len(text)} characters)"


def printable(value: object, most: int = 80) -> str:
    """Format an untrusted value without terminal control characters, at most `most` characters."""
    text = str(value)
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return text if text.isprintable() else repr(text)


def shown(data: bytes) -> str:
    """Format bytes for a message: quoted, escaped if not text, at most 200 bytes."""
    head = data[:SHOWN_BYTES].rstrip(b"\n")
    try:
        data.decode("utf-8")
        text = repr(head.decode("utf-8", "ignore"))  # of a last character that was cut nothing is left
    except UnicodeDecodeError:
        text = repr(head)[1:]
    return text if len(data) <= SHOWN_BYTES else text + f" … ({len(data)} bytes)"
