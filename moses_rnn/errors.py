"""The one family of exceptions. Layers raise them; the command line alone prints them and exits with their code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

SHOWN_BYTES = 200


class MosesRnnError(Exception):
    """A failure of this package that a user can understand: I/O, device, or one of the kinds below."""

    exit_code = 1
    hint = ""  # what else the user should know, when a layer above has something to add


class InputError(MosesRnnError):
    """An input file, a model or a combination of them was rejected."""

    exit_code = 3


class FormatError(InputError):
    """A place in a file is not as its format wants it: ``name:line: expected …, found …``."""

    def __init__(self, name: str, line: int | None, expected: str, found: str, advice: str = "") -> None:
        place = name if line is None else f"{name}:{line}"
        super().__init__(f"{place}: expected {expected}, found {found}" + (f"\n  {advice}" if advice else ""))
        self.name = name
        self.line = line


class CheckpointError(InputError):
    """A model folder is incomplete, damaged, or not of this format."""


class MisfitError(InputError):
    """A model and a table do not fit each other; the user may insist."""


class OutputError(MosesRnnError):
    """An output cannot be written where it was asked for."""


class Stopped(MosesRnnError):
    """Work was interrupted on request and can be resumed."""

    exit_code = 75


@contextlib.contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Name the file when writing it fails: the system's own error does not, if the file is open already."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def shown_value(value: object) -> str:
    """Any value as it appears in a message: as Python writes it, at most 200 characters of it."""
    text = repr(value)
    return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]} … ({len(text)} characters)"


def printable(value: object) -> str:
    """A value of somebody else's file as text without anything that commands a terminal, at most 80 characters."""
    text = str(value)[:80]
    return text if text.isprintable() else repr(text)


def shown(data: bytes) -> str:
    """Bytes as they appear in a message: escaped, quoted, at most 200 bytes of them."""
    text = repr(data[:SHOWN_BYTES].rstrip(b"\n"))[1:]
    return text if len(data) <= SHOWN_BYTES else text + f" … ({len(data)} bytes)"
