"""Files that commands read whole, and where their results go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from moses_rnn.cli.command import say
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.files.outputs import OutputFile, StandardOutput


def output_to(path: str, force: bool, inputs: tuple[str, ...]) -> OutputFile | StandardOutput:
    """Where the result goes; refused before any work is done if it cannot."""
    from moses_rnn.files.outputs import OutputFile, StandardOutput

    return StandardOutput() if path == "-" else OutputFile(path, force=force, inputs=inputs)


def inputs_of(*paths: str | None) -> tuple[str, ...]:
    """The files that are read, of those that were named: no output may be one of them.

    Raises:
        InputError: one does not exist.
    """
    from moses_rnn.files.streams import existing_input

    return tuple(existing_input(path) for path in paths if path is not None)


def check_inputs(*paths: str | Path | None) -> None:
    """Find what will be read, before the seconds that torch takes: files, given as str, and model folders, as Path.

    A file that is plain text, whatever its name says, is warned of. Processes that train together look later: together,
    so that one of them speaks for all.

    Raises:
        InputError: one does not exist.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        return
    from moses_rnn.files.streams import check_folder, is_misnamed

    for file in inputs_of(*(path for path in paths if not isinstance(path, Path))):
        if is_misnamed(file):
            say(f"warning: {file}: is plain text, but Moses expects compressed text under this name")
    for folder in paths:
        if isinstance(folder, Path):
            check_folder(folder)


def text_of(path: str) -> list[bytes]:
    """The lines of a text."""
    from moses_rnn.files.streams import existing_input, read_lines

    return [line.rstrip(b"\r\n") for line in read_lines(existing_input(path))]


def parallel_texts(first: str, second: str) -> tuple[list[bytes], list[bytes]]:
    """The lines of two texts.

    Raises:
        InputError: there are more of one than of the other.
    """
    from moses_rnn.files.streams import existing_input

    lines = text_of(first), text_of(second)
    expected, found = map(len, lines)
    if found != expected:
        raise InputError(
            f"{existing_input(second)}: expected as many lines as {existing_input(first)} has, {expected:,}, "
            f"found {found:,}"
        )
    return lines
