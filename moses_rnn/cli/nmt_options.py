"""Options that the commands of moses-rnn nmt share, and what they say of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec

import click

from moses_rnn.cli.command import choose_device, print_err, threads_option

if TYPE_CHECKING:
    from moses_rnn.networks.hardware import Compute
    from moses_rnn.scorers.ensembles import Writer

P = ParamSpec("P")


def text_options(command: Callable[P, None]) -> Callable[P, None]:
    """The options of every command that computes with a network and writes a text."""
    for option in (
        click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr"),
        click.option("--force", is_flag=True, help="Replace existing outputs"),
        threads_option,
        click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …"),
        click.option("-o", "--output", default="-", show_default=True, help="Compressed if its suffix says so"),
    ):
        command = option(command)
    return command


def choose_compute(device: str, threads: int | None) -> Compute:
    """Where to compute."""
    import torch

    from moses_rnn.networks.hardware import Compute

    if threads:
        torch.set_num_threads(threads)
    return Compute(choose_device(device))


def warn_of_unit(model: Writer) -> None:
    """Say which networks learned from phrases, if any did."""
    from moses_rnn.score.checks import unit_warnings

    for member in model.models:
        for text in unit_warnings(member, on_sentences=True):
            print_err(f"warning: {text}")
