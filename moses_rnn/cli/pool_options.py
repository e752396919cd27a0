"""Options of commands whose work can be shared out: among machines of a cluster, and in shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

import click

from moses_rnn.files.shards import Shard

P = ParamSpec("P")
FLAG_OF_RAY = "auto"


def _read_shard(text: str) -> Shard:
    try:
        return Shard.parse(text)
    except ValueError as error:
        raise click.BadParameter(f"expected k/N with k from 1 to N, found {text!r}") from error


shard_option = click.option("--shard", type=_read_shard, metavar="k/N", help="Do only part k of N of the lines")


def pool_options(command: Callable[P, None]) -> Callable[P, None]:
    """The options that say who works, and at which part."""
    for option in (
        shard_option,
        click.option(
            "--ray",
            is_flag=False,
            flag_value=FLAG_OF_RAY,
            metavar="[ADDRESS]",
            help="Work on a Ray cluster: the one at that address, the one that runs here (auto), or one for this run "
            "alone (local). Without an ADDRESS this must be the last option",
        ),
    ):
        command = option(command)
    return command
