"""What the commands of moses-rnn-nbest read and write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.files.outputs import Output
    from moses_rnn.formats.nbest import NBestLine


def output_to(path: str, force: bool, inputs: tuple[str, ...]) -> Output:
    """Where the result goes; refused before any work is done if it cannot."""
    from moses_rnn.files.outputs import OutputFile, StandardOutput

    return StandardOutput() if path == "-" else OutputFile(path, force=force, inputs=inputs)


def parsed_list(nbest: str) -> tuple[str, Iterator[NBestLine]]:
    """The list's name and lines."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.nbest import parse_nbest

    name = existing_input(nbest)
    return name, parse_nbest(read_lines(name), name)


def text_of(path: str) -> list[bytes]:
    """The lines of a text."""
    from moses_rnn.files.streams import existing_input, read_lines

    return [line.rstrip(b"\r\n") for line in read_lines(existing_input(path))]


def content_of(path: str) -> bytes:
    """A file's bytes.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
