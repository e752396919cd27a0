"""Which options of the commands that train and score a plan of trials may give, and what they are on a command line."""

from __future__ import annotations

from collections.abc import Collection

import click

from moses_rnn.errors import shown_value
from moses_rnn.formats.plan_values import Unexpected, check_text

# what the harness or the pipeline gives, or what is of one run alone
NOT_TO_TRAIN = {"model", "inverse", "seed", "estimate", "restart", "quiet", "help", "version"}
NOT_TO_SCORE = {
    *("model", "inverse-model", "combine", "output", "moses-ini", "output-ini", "feature", "log", "resume", "again"),
    *("shard", "processes", "ray", "ray-workers", "force", "quiet", "help", "version"),
}


class CommandOptions:
    """The options of a command, as far as a plan may give them.

    Args:
        name: of the command.
        command: itself.
        without: names of options that a plan may not give.
    """

    def __init__(self, name: str, command: click.Command, without: Collection[str]) -> None:
        self._name = name
        params = [param for param in command.params if isinstance(param, click.Option)]
        self._options = {
            option.removeprefix("--"): param
            for param in params
            for option in param.opts
            if option.startswith("--") and option.removeprefix("--") not in without
        }

    def words(self, name: str, value: object) -> tuple[str, ...]:
        """What an option is on the command line; nothing for a switch that is off.

        Raises:
            Unexpected: there is no such option, or it does not take the value.
        """
        option = self._options.get(name)
        if option is None:
            raise Unexpected(f"an option of {self._name} that a trial may have", f"--{name}")
        return self._switch(option, name, value) if option.is_flag else self._valued(option, name, value)

    def _switch(self, option: click.Option, name: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, bool):
            raise Unexpected("true or false", shown_value(value))
        return (f"--{name}",) if value else tuple(option.secondary_opts[:1])

    def _valued(self, option: click.Option, name: str, value: object) -> tuple[str, ...]:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Unexpected("a number or a text", shown_value(value))
        text = check_text(str(value))
        try:
            option.type.convert(text, option, None)
        except click.UsageError as error:
            raise Unexpected(f"what {self._name} --{name} takes", f"{shown_value(value)}: {error.message}") from error
        return (f"--{name}={text}",)


def plan_options() -> dict[str, CommandOptions]:
    """Of the commands that train and score, as a plan names them."""
    from moses_rnn.cli.score import main as score
    from moses_rnn.cli.train import main as train

    return {
        "train": CommandOptions("moses-rnn-train", train, NOT_TO_TRAIN),
        "score": CommandOptions("moses-rnn-score", score, NOT_TO_SCORE),
    }
