"""What options of several commands mean: the model beside a table, files to read and to write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moses_rnn.cli.command import warn
from moses_rnn.errors import InputError
from moses_rnn.files.streams import STANDARD_STREAM, find_input, without_compression_suffix
from moses_rnn.score.scoring_options import training_command

if TYPE_CHECKING:
    from moses_rnn.files.outputs import OutputFile, StandardOutput
    from moses_rnn.models.ensembles import AnyModel
    from moses_rnn.table.signatures import Signature


def default_model(table: str, *, inverse: bool = False) -> Path:
    """Return where moses-rnn-train writes a table's model and moses-rnn-score looks for it: beside the table."""
    stem = without_compression_suffix(table)
    return stem.with_name(stem.name + (".rnn-inverse-model" if inverse else ".rnn-model"))


def model_beside(table: str) -> Path:
    """Return the model beside a table; raise InputError with advice if there is none."""
    from moses_rnn.table.signatures import signature_of

    if table == "-":
        raise InputError("standard input has no model beside it; name a model with --model")
    if not (folder := default_model(table)).is_dir():
        if names := signature_of(table).names.values():
            raise InputError(
                f"{table}: has {' and '.join(names)} already, according to the signature beside it",
                advice=(
                    "Score the original table; to add another such column, name its model with --model and give "
                    "--again."
                ),
            )
        raise InputError(
            f"{folder}: expected a model beside the table, found none",
            advice=f"Make one with: {training_command(table)}\nor name one with --model.",
        )
    return folder


def choose_model(named: Path | None, table: str) -> Path:
    """Return the named model, or the one beside a table or beside the table that it was scored from."""
    if named is not None:
        return named
    path = find_input(table)
    stem = without_compression_suffix(path)
    folder = default_model(str(stem.with_suffix("")) if stem.suffix == ".rnn" else path)
    if path == STANDARD_STREAM or not folder.is_dir():
        place = "standard input" if path == STANDARD_STREAM else str(folder)
        raise InputError(
            f"{place}: expected a model beside the table, found none", advice="Name the table's model with --model."
        )
    return folder


def sound_signature(table: str) -> Signature:
    """Return a table's signature; warn of a file of that name that is none; raise as `signature_of` does."""
    from moses_rnn.table.signatures import signature_of

    signature = signature_of(table)
    if not signature and Path(f"{table}.json").exists():
        warn(f"{table}.json: is not a signature of moses-rnn-score, and is not copied")
    return signature


def output_to(path: str, force: bool, inputs: tuple[str, ...]) -> OutputFile | StandardOutput:
    """Open the output; refuse it before any work if it cannot be written."""
    from moses_rnn.files.outputs import OutputFile, StandardOutput

    return StandardOutput() if path == "-" else OutputFile(path, force=force, inputs=inputs)


def text_of(path: str) -> list[bytes]:
    """Read the lines of a text."""
    from moses_rnn.files.streams import read_text

    return [line.rstrip(b"\r\n") for line in read_text(find_input(path))]


def parallel_texts(first: str, second: str) -> tuple[list[bytes], list[bytes]]:
    """Read two texts, which must have equally many lines."""
    lines = text_of(first), text_of(second)
    expected, found = map(len, lines)
    if found != expected:
        raise InputError(
            f"{find_input(second)}: expected as many lines as {find_input(first)} has, {expected:,}, found {found:,}"
        )
    return lines


def warn_of_unit(model: AnyModel) -> None:
    """Say which networks learned from phrases, if any did."""
    from moses_rnn.score.checks import unit_warnings

    warn(*unit_warnings(model.models, on_sentences=True))
