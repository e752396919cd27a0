"""The options that the commands that train have in common, and the file of settings that goes with them."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from moses_rnn.cli.command import AMERICAN, MOST_WHOLE, FiniteFloat, Seed, reports_errors, section, threads_option
from moses_rnn.errors import InputError, shown_value
from moses_rnn.training.config import CUSTOMARY_RATES
from moses_rnn.training.networks import NETWORKS, Options, UnfitOption, choose
from moses_rnn.training.schedules import SCHEDULES

Command = Callable[..., None]
Decorator = Callable[[Command], Command]
CONFIG = "config"  # key of the context's notes


class Setting(click.Parameter):
    """What --config alone can set.

    Args:
        name: of the key, and of the option.
        kind: of its values.
    """

    param_type_name = "setting"

    def __init__(self, name: str, kind: Any) -> None:
        super().__init__([name], type=kind)

    def _parse_decls(self, decls: Sequence[str], _expose_value: bool) -> tuple[str, list[str], list[str]]:
        return decls[0], [], []

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Do nothing: the command line cannot give it."""


def learning_settings() -> list[click.Parameter]:
    """What is set about learning in the file of every command that trains."""
    return [
        Setting("schedule", click.Choice(list(SCHEDULES))),
        Setting("warm_up", click.IntRange(0)),
        Setting("cool_down", FiniteFloat(0, 1)),
        Setting("averaging", FiniteFloat(0, 1)),
        Setting("weight_decay", FiniteFloat(0)),
        Setting("clip_norm", FiniteFloat(0)),
        Setting("initial_deviation", FiniteFloat(0, min_open=True)),
        Setting("accumulate", click.IntRange(1)),
        Setting("precision", click.Choice(["auto", "fp32", "bf16"])),
        Setting("evaluate_every", click.IntRange(1)),
        Setting("patience", click.IntRange(1)),
    ]


def limit_options(presets: Mapping[str, object], text: str) -> Decorator:
    """How much is learned, and where.

    Args:
        presets: to choose from.
        text: what an epoch is a pass over.
    """

    def decorate(command: Command) -> Command:
        for option in (
            threads_option,
            click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …"),
            click.option(
                "--max-epochs", type=FiniteFloat(0), help=f"Stop after this many passes over the {text}; 0 for no limit"
            ),
            click.option("--max-minutes", type=FiniteFloat(0), help="Stop after this many minutes; 0 for no limit"),
            click.option(
                "--preset",
                type=click.Choice(list(presets)),
                help="Sizes and training, shown below [default: paper on a GPU, else small]",
            ),
        ):
            command = option(command)
        return command

    return decorate


def learning_options(unit: str, *more: Decorator) -> Decorator:
    """How a network learns.

    Args:
        unit: what a minibatch consists of, capitalised.
        more: options of one command.
    """
    return section(
        "Learning",
        click.option(
            "--config",
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=reports_errors(_take_settings),
            help="Take settings from this TOML file, rare ones too; options on the command line win [docs/training.md]",
        ),
        click.option(
            "--optimiser",
            type=click.Choice(list(CUSTOMARY_RATES)),
            help="How weights are changed; each has a customary learning rate",
        ),
        click.option("--learning-rate", type=FiniteFloat(0, min_open=True), help="Step size, in place of the preset's"),
        click.option("--batch-size", type=click.IntRange(1), help=f"{unit} per minibatch"),
        click.option(
            "--dropout", type=FiniteFloat(0, 1, max_open=True), help="Share of units that is left out while learning"
        ),
        *more,
        click.option(
            "--seed",
            type=Seed(63),
            default=1,
            show_default=True,
            help="Decides what is held out, the initial weights and the order of the minibatches",
        ),
    )


def run_options(*more: Decorator) -> Decorator:
    """How a run takes place; `more`: options of one command."""
    return section(
        "Run",
        click.option("--restart", is_flag=True, help="Remove what the model folder holds and start over"),
        click.option("-q", "--quiet", is_flag=True, help="No progress on stderr"),
        *more,
    )


def shown_presets(*names: str) -> str:
    """A paragraph of --help that shows what the presets of some networks are."""
    lines = "".join(
        f"\n  {f'{name}, ' * (len(names) > 1)}{preset}  {shown}"
        for name in names
        for preset, shown in NETWORKS[name].presets.items()
    )
    return f"\b\nPresets, of which every figure can be set:{lines}\n"


def check_options(options: Options) -> None:
    """Refuse an option that does not go with the others by its place: the command line, or the file of settings."""
    try:
        choose(options)
    except UnfitOption as error:
        context = click.get_current_context()
        if context.get_parameter_source(error.name) is ParameterSource.DEFAULT_MAP:
            expected = "settings that go with the others"
            raise InputError(f"{context.meta[CONFIG]}: expected {expected}, found {error}") from error
        raise click.UsageError(f"--{error.name.replace('_', '-')}: {error.why}") from error


def _take_settings(context: click.Context, _option: click.Parameter, path: str | None) -> None:
    """Have a file's values be the defaults."""
    if path is None:
        return
    keys = {parameter.name: parameter for parameter in context.command.params if _is_key(parameter)}
    taken = {}
    for name, value in _read(path).items():
        key = AMERICAN.get(name, name)
        if key not in keys:
            raise InputError(f"{path}: expected keys among {', '.join(sorted(map(str, keys)))}, found {key}")
        taken[key] = _checked(f"{path}: {key}", keys[key], value, context)
    context.default_map = taken
    context.meta[CONFIG] = path


def _is_key(param: click.Parameter) -> bool:
    """Numbers, choices and settings may come from a file; names of files and what is of one run alone may not."""
    return isinstance(param, Setting) or isinstance(param.type, click.Choice | click.IntRange | click.FloatRange)


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: expected a file of settings, found: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected settings in TOML, found: {error}") from error


def _checked(place: str, parameter: click.Parameter, value: object, context: click.Context) -> object:
    """A value that is of its key's type and within its bounds."""
    types, expected = _expectation(parameter.type)
    if type(value) in types:
        with contextlib.suppress(click.BadParameter, OverflowError):
            return parameter.type.convert(value, parameter, context)
    raise InputError(f"{place}: expected {expected}, found {shown_value(value)}")


def _expectation(kind: Any) -> tuple[tuple[type, ...], str]:
    """What TOML may have for a type of click's, and how a message says so."""
    if isinstance(kind, click.Choice):
        return (str,), f"one of {', '.join(kind.choices)}"
    if isinstance(kind, click.IntRange):
        most = f" and at most {MOST_WHOLE}" * (kind.max is None)
        return (int,), f"an integer, {kind._describe_range()}{most}"
    if isinstance(kind, click.FloatRange):
        return (int, float), f"a number, {kind._describe_range()}"
    return (bool,), "true or false"
