"""What the commands that train have in common: options of learning and of the run, and the model's folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.command import FiniteFloat, Seed
from moses_rnn.errors import OutputError

if TYPE_CHECKING:
    from moses_rnn.models.folders import Kind
    from moses_rnn.training.config import TrainingConfig

Command = Callable[..., None]
Decorator = Callable[[Command], Command]


def learning_options(unit: str, text: str, *, evaluated: str = "", patience: str = "") -> Decorator:
    """The options of the optimiser and of how long it goes on.

    Args:
        unit: what is counted, as it begins a sentence.
        text: what there are passes over.
        evaluated: the default of --evaluate-every, if the preset says none.
        patience: that of --patience.
    """
    return _together(
        click.option("--optimiser", type=click.Choice(["adadelta", "adam"])),
        click.option("--learning-rate", type=FiniteFloat(0, min_open=True)),
        click.option("--batch-size", type=click.IntRange(1), help=f"{unit} a minibatch"),
        click.option("--warm-up", type=click.IntRange(0), help="Minibatches over which the learning rate rises"),
        click.option(
            "--cool-down",
            type=FiniteFloat(0, 1),
            help="Last share of --max-epochs, or else of --max-minutes, over which the learning rate falls to 0",
        ),
        click.option(
            "--averaging", type=FiniteFloat(0, 1), help="Average the weights over about this last share of the steps"
        ),
        click.option("--weight-decay", type=FiniteFloat(0), help="Of matrices, times the learning rate; Adam only"),
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
        click.option("--seed", type=Seed(63), default=1, show_default=True),
        click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …"),
        click.option("--threads", type=click.IntRange(1), help="CPU threads [default: all cores]"),
        click.option("--restart", is_flag=True, help="Throw away what the model folder holds and begin anew"),
        click.option("-q", "--quiet", is_flag=True, help="No progress on stderr"),
    )(command)


def with_threads(config: TrainingConfig, device: str, cores: int) -> TrainingConfig:
    """The same training on some cores: threads that share its minibatches on a CPU, none beside the first for a GPU."""
    from moses_rnn.training.threads import share_cores

    return replace(config, threads=1 if device.startswith("cuda") else share_cores(cores, config.batch_size))


def _together(*options: Callable[[Any], Any]) -> Decorator:
    """Options in the order in which --help shall show them."""

    def with_all(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return with_all


def prepare_folder(folder: Path, kind: Kind, *, restart: bool) -> None:
    """Notice before the data is read that the model cannot be written.

    Args:
        folder: of the model, which is made.
        kind: of the model: only such a one is thrown away.
        restart: whether to throw away what is there.

    Raises:
        OutputError: it cannot be made.
    """
    from moses_rnn.training.model_folder import remove_run

    if restart and folder.exists():
        remove_run(folder, kind)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from error
