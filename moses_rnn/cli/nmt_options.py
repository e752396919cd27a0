"""Options that the commands of moses-rnn-nmt share, and what they say of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import click

from moses_rnn.cli.command import choose_device, say, threads_option

if TYPE_CHECKING:
    from moses_rnn.formats.lexicon import Lexicon
    from moses_rnn.producers.base import Compute
    from moses_rnn.producers.ensembles import Writer

P = ParamSpec("P")
NEED_LEXICON = "dictionary", "lowercase"  # rules of --unknown that say nothing without


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """What ``compute_options`` ask for."""

    combine: str | None  # None: of several models the geometric mean
    output: str
    device: str
    precision: str
    threads: int | None
    force: bool
    quiet: bool


def compute_options(command: Callable[P, None]) -> Callable[P, None]:
    """The options of every command that computes with a network and writes a text."""
    for option in (
        click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr"),
        click.option("--force", is_flag=True, help="Replace existing outputs"),
        threads_option,
        click.option("--precision", type=click.Choice(["fp32", "bf16", "fp64"]), default="fp32", show_default=True),
        click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …"),
        click.option(
            "--combine",
            type=click.Choice(["geometric", "mean-log", "arithmetic"]),
            help="How several models are one: the normalised mean of log p, that mean itself, log of the mean of p "
            "[default: geometric]",
        ),
        click.option("-o", "--output", default="-", show_default=True, help="Compressed if its suffix says so"),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, kw_only=True)
class LexiconOptions:
    """What ``lexicon_options`` name."""

    lexicon: str | None
    dictionary: str | None


def lexicon_options(command: Callable[P, None]) -> Callable[P, None]:
    """The options of every command that needs translations of words."""
    for option in (
        click.option("--dictionary", metavar="FILE", help="The same in the order source target p(target | source)"),
        click.option(
            "--lexicon", metavar="FILE", help="Translations of words, lines of target source p, as Moses's lex.f2e"
        ),
    ):
        command = option(command)
    return command


def open_lexicon(given: LexiconOptions, *, needed_by: str = "") -> Lexicon | None:
    """The lexicon that was named, if any.

    Args:
        given: at most one file.
        needed_by: an option that is of no use without.

    Raises:
        click.UsageError: there are two, or none is there although it is needed.
        InputError: it cannot be read.
    """
    if given.lexicon and given.dictionary:
        raise click.UsageError("--lexicon and --dictionary are two forms of one thing: give one of them")
    path = given.lexicon or given.dictionary
    if path is None:
        if needed_by:
            raise click.UsageError(f"{needed_by} needs --lexicon or --dictionary")
        return None
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.lexicon import read_lexicon

    name = existing_input(path)
    return read_lexicon(read_lines(name), name, target_first=given.lexicon is not None)


def warn_of_columns(given: LexiconOptions, lexicon: Lexicon | None, source_words: Collection[bytes]) -> None:
    """Say if the columns of the lexicon seem to be in the other order."""
    if lexicon is None:
        return
    translated, written = lexicon.coverage(source_words)
    if translated < written:
        option, other = ("--lexicon", "--dictionary") if given.lexicon else ("--dictionary", "--lexicon")
        say(
            f"warning: {given.lexicon or given.dictionary}: of {len(source_words):,} source words {translated:,} have "
            f"translations in it, {written:,} are translations themselves: give it as {other}, not {option}?"
        )


def make_compute(given: ComputeOptions) -> Compute:
    """Where and how to compute."""
    import torch

    from moses_rnn.producers.base import Compute

    if given.threads:
        torch.set_num_threads(given.threads)
    return Compute(choose_device(given.device), given.precision)


def open_models(folders: Sequence[Path], combine: str | None) -> Writer:
    """The model of a folder, or several as one.

    Raises:
        click.UsageError: there is nothing to combine.
        CheckpointError: see `open_ensemble`.
    """
    if combine is not None and len(folders) == 1:
        raise click.UsageError(f"--combine needs several models, found {folders[0]} alone")
    from moses_rnn.producers.ensembles import GEOMETRIC, open_writer

    return open_writer(folders, combine or GEOMETRIC)


def warn_of_unit(model: Writer) -> None:
    """Say which networks learned from phrases, if any did."""
    from moses_rnn.scoring.fit import unit_warnings

    for member in model.models:
        for text in unit_warnings(member, on_sentences=True):
            say(f"warning: {text}")
