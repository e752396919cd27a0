"""What the subcommands of moses-rnn analyse share."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from moses_rnn.analysis.extras import check_library
from moses_rnn.analysis.grids import LAYOUTS, PICTURES
from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.options import Option

if TYPE_CHECKING:
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.files.streams import Advanced
    from moses_rnn.models.model import Model

ColumnOption = Annotated[
    int | None,
    Option("Position of the RNN's score, from 0; -1 is the last [default: from the signature beside the table]"),
]
Layout = Annotated[str, Option("", "--format", choices=tuple(LAYOUTS))]

SORTED = "The table must be in the order of LC_ALL=C sort, as train-model.perl leaves it."


def kind_of(output: str, kinds: tuple[str, ...], otherwise: str) -> str:
    """Return the kind of file that an output's suffix asks for; raise an error if it cannot be made.

    `otherwise` says what can be written without matplotlib.
    """
    kind = suffix_of(output)
    if kind not in kinds:
        endings = " or ".join(f".{one}" for one in kinds)
        raise click.BadParameter(f"{output!r} does not end in {endings}.", param_hint="--output")
    if kind in PICTURES:
        check_library("matplotlib", "drawing", otherwise)
    return kind


def optional_output(output: str | None, *inputs: str, force: bool) -> AbstractContextManager[OutputFile | None]:
    """Open an output, if one is asked for."""
    from moses_rnn.files.outputs import OutputFile

    return OutputFile(output, force=force, inputs=inputs) if output else nullcontext()


def suffix_of(output: str) -> str:
    """Return a name's suffix, without its dot and in small letters."""
    return Path(output).suffix.removeprefix(".").lower()


def named_files(paths: tuple[str, ...]) -> dict[str, str]:
    """Return files or folders by their names in a table, or by their paths if two names are equal."""
    names = [Path(path).name or path for path in paths]
    named = dict(zip(names if len(set(names)) == len(names) else paths, paths, strict=True))
    if len(named) != len(paths):
        raise InputError(f"expected each name once, found {', '.join(sorted(paths))}")
    return named


def progress(unit: str = "lines") -> AbstractContextManager[Advanced]:
    """Show progress, but only on a terminal."""
    from moses_rnn.cli.progress import progress

    return progress(unit, quiet=not sys.stderr.isatty())


def open_phrase_network(folder: Path, *, of_any_cell: bool = False) -> Model:
    """Open a model whose gates and summaries, or gradients, are known; reject others."""
    from moses_rnn.models.open import open_model
    from moses_rnn.networks.cells import CellEncDec
    from moses_rnn.networks.encdec import EncDec

    model = open_model(folder)
    if not isinstance(model.network, EncDec) or (isinstance(model.network, CellEncDec) and not of_any_cell):
        expected = "an RNN Encoder-Decoder" + ("" if of_any_cell else " with the paper's gated units")
        raise CheckpointError(f"{folder}: expected {expected}, found: {model.network_title}")
    model.check_order()
    return model
