"""Options of commands that read tables, and the names that they give to what they write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

import click

from moses_rnn.cli.command import model_option
from moses_rnn.errors import InputError
from moses_rnn.files.streams import existing_input, without_compression_suffix
from moses_rnn.formats.tab_separated import LAYOUTS

P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True)
class FactorOptions:
    """What ``factor_options`` ask for."""

    source_factor: int | None
    target_factor: int | None


def factor_options(command: Callable[P, None]) -> Callable[P, None]:
    """The options that say how the words of a factored table are read."""
    for side in ("target", "source"):
        text = f"Factor of {side} words that counts, from 0, if the table is factored"
        command = click.option(f"--{side}-factor", type=click.IntRange(0), help=text)(command)
    return command


long_option = click.option(
    "--long",
    "long_phrases",
    type=click.Choice(["refuse", "floor"]),
    default="refuse",
    show_default=True,
    help="Of a CSTM or ranker: phrases of more words than it has slots end the run, or score -87, which is e^-87 in a "
    "table",
)


pairs_option = click.option(
    "--format",
    "layout",
    type=click.Choice(LAYOUTS),
    default=LAYOUTS[0],
    show_default=True,
    help="Form of PHRASE_TABLE: Moses's, or tsv, a line of source and target with a tab between",
)


model_beside_option = model_option(
    text="Model folder [default: the one beside PHRASE_TABLE, as moses-rnn-train puts it]"
)


def default_model(table: str, *, inverse: bool = False) -> Path:
    """Where moses-rnn-train puts a table's model and moses-rnn-score looks for it: beside the table."""
    stem = without_compression_suffix(table)
    return stem.with_name(stem.name + (".rnn-inverse-model" if inverse else ".rnn-model"))


def model_beside(table: str) -> Path:
    """The model that is where moses-rnn-train puts it; an InputError says what to do if there is none."""
    from moses_rnn.formats.signatures import added_names, fitting_signature

    if table == "-":
        raise InputError("standard input has no model beside it; name one with --model")
    if not (folder := default_model(table)).is_dir():
        if names := added_names(fitting_signature(table)):
            raise InputError(
                f"{table}: has {' and '.join(names)} already, by the signature beside it",
                advice=(
                    "Score the table that it was made from; to add another such column, name its model with --model "
                    "and give --again."
                ),
            )
        raise InputError(
            f"{folder}: expected a model beside the table, found none",
            advice=f"Make one with: moses-rnn-train {table}\nor name one with --model.",
        )
    return folder


def choose_model(named: Path | None, table: str) -> Path:
    """The model that is named, or the one beside a table or beside the table that it was scored from."""
    if named is not None:
        return named
    path = existing_input(table)
    stem = without_compression_suffix(path)
    return model_beside(str(stem.with_suffix("")) if stem.suffix == ".rnn" else path)
