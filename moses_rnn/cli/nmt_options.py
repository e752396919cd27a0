"""Options that the commands of moses-rnn-nmt share, and what they say of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec

import click

from moses_rnn.cli.command import choose_device, say

if TYPE_CHECKING:
    from moses_rnn.producers.base import Compute
    from moses_rnn.producers.open import OpenModel

P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """What ``compute_options`` ask for."""

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
        click.option("--threads", type=click.IntRange(1), help="CPU threads [default: all cores]"),
        click.option("--precision", type=click.Choice(["fp32", "bf16", "fp64"]), default="fp32", show_default=True),
        click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …"),
        click.option("-o", "--output", default="-", show_default=True, help="Compressed if its suffix says so"),
    ):
        command = option(command)
    return command


def make_compute(given: ComputeOptions) -> Compute:
    """Where and how to compute."""
    import torch

    from moses_rnn.producers.base import Compute

    if given.threads:
        torch.set_num_threads(given.threads)
    return Compute(choose_device(given.device), given.precision)


def warn_of_unit(model: OpenModel) -> None:
    """Say that a network learned from phrases, if it did."""
    from moses_rnn.scoring.fit import unit_warnings

    for text in unit_warnings(model, on_sentences=True):
        say(f"warning: {text}")
