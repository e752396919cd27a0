"""The options that the commands that train have in common: of learning and of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from moses_rnn.cli.command import FiniteFloat, Seed, threads_option
from moses_rnn.training.config import CUSTOMARY_RATES
from moses_rnn.training.schedules import SCHEDULES

Command = Callable[..., None]
Decorator = Callable[[Command], Command]


def learning_options(unit: str, text: str, *, evaluated: str = "", patience: str = "") -> Decorator:
    """The options of the optimiser and of how long it runs.

    Args:
        unit: what is counted, capitalised.
        text: what an epoch is a pass over.
        evaluated: shown as the default of --evaluate-every.
        patience: likewise of --patience.
    """
    return _together(
        click.option("--optimiser", type=click.Choice(list(CUSTOMARY_RATES)), help="With its customary learning rate"),
        click.option("--learning-rate", type=FiniteFloat(0, min_open=True)),
        click.option(
            "--schedule",
            type=click.Choice(list(SCHEDULES)),
            help="How the rate falls: after evaluations without gain, every half epoch from the sixth on, as "
            "1 / (1 + 1e-8 examples), or every epoch from one that gains less than 0.3 %, of which the second is the "
            "last",
        ),
        click.option("--batch-size", type=click.IntRange(1), help=f"{unit} a minibatch"),
        click.option(
            "--accumulate",
            type=click.IntRange(1),
            help="Compute each minibatch in this many parts, one after the other, which takes less memory; several "
            "processes share them",
        ),
        click.option("--warm-up", type=click.IntRange(0), help="Minibatches over which the learning rate rises"),
        click.option(
            "--cool-down",
            type=FiniteFloat(0, 1),
            help="Last share of the budget, of time or epochs, over which the learning rate falls to 0",
        ),
        click.option(
            "--averaging", type=FiniteFloat(0, 1), help="Average the weights over about this last share of the steps"
        ),
        click.option(
            "--weight-decay", type=FiniteFloat(0), help="Of matrices, times the learning rate; not for Adadelta"
        ),
        click.option("--dropout", type=FiniteFloat(0, 1, max_open=True), help="Share of units left out while learning"),
        click.option("--clip-norm", type=FiniteFloat(0), help="Bound on the gradient's L2 norm; 0 for none"),
        click.option(
            "--precision",
            type=click.Choice(["auto", "fp32", "bf16"]),
            default="auto",
            show_default=True,
            help="Of matrix products; auto: bf16 where the processor has it and the network is large",
        ),
        click.option("--max-minutes", type=FiniteFloat(0), help="Time budget; 0 for none"),
        click.option("--max-epochs", type=FiniteFloat(0), help=f"Passes over the {text}; 0 for no limit"),
        click.option("--evaluate-every", type=click.IntRange(1), help=f"{unit} between two evaluations{evaluated}"),
        click.option("--patience", type=click.IntRange(1), help=f"Evaluations without gain before stopping{patience}"),
    )


def run_options(command: Command) -> Command:
    """The options of where and how a run takes place."""
    return _together(
        click.option(
            "--seed",
            type=Seed(63),
            default=1,
            show_default=True,
            help="Decides what is held out, the initial weights and the order of the minibatches",
        ),
        click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …"),
        threads_option,
        click.option("--restart", is_flag=True, help="Remove what the model folder holds and start over"),
        click.option("-q", "--quiet", is_flag=True, help="No progress on stderr"),
    )(command)


def preset_option(presets: Mapping[str, object]) -> Decorator:
    """The choice of a preset."""
    text = "Sizes and training, shown below [default: paper on a GPU, else small]"
    return click.option("--preset", type=click.Choice(list(presets)), help=text)


def shown_presets(presets: Mapping[str, object]) -> str:
    """A paragraph of --help that shows what the presets are."""
    lines = "".join(f"\n  {name}  {preset}" for name, preset in presets.items())
    return f"\b\nPresets, of which every figure has an option:{lines}\n"


def _together(*options: Callable[[Any], Any]) -> Decorator:
    """Options in the order in which --help shows them."""

    def with_all(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return with_all
