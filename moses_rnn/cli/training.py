"""What the training commands share: options, the settings file, the run and its messages.

If torchrun starts several processes, the first one prints the messages.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from click.core import ParameterSource

from moses_rnn.cli.command import (
    AMERICAN,
    StopRequest,
    choose_device,
    print_err,
    print_out,
    reports_errors,
    warn,
)
from moses_rnn.cli.progress import Display, duration
from moses_rnn.errors import InputError, MosesRnnError, Stopped, number_of, shown_value
from moses_rnn.options import FIRST_SECTION, Option, Section, expectation
from moses_rnn.training.presets import NETWORKS
from moses_rnn.training.training_options import Options, RunOptions, UnfitOption, choose

if TYPE_CHECKING:
    from moses_rnn.training.ranks import Ranks
    from moses_rnn.training.train import Outcome
    from moses_rnn.training.trainer import Trainer

Estimate = Annotated[bool, Section(FIRST_SECTION), Option("Estimate how long training takes here; train nothing")]
CONFIG, SETTINGS = "config", "settings"  # keys of the context's notes
LOG_Z = "mean_abs_log_z"  # of networks that may learn to be normalised, among the figures of an evaluation
MOST_NATS = 700.0  # whose exponential is a number
SMOOTHING = 0.02  # weight of a minibatch in the mean loss that the bar shows


def shown_presets(*names: str) -> str:
    """Return the paragraph of --help about the presets of some networks."""
    lines = "".join(
        f"\n  {f'{name}, ' * (len(names) > 1)}{preset}  {shown}"
        for name in names
        for preset, shown in NETWORKS[name].presets.items()
    )
    return f"\b\nPresets (you can override every figure):{lines}\n"


def check_options(material: object, learning: Options, run: RunOptions) -> dict[str, Any]:
    """Return all options of a training run; refuse conflicts, naming the command line or the settings file."""
    settings = click.get_current_context().meta.get(SETTINGS, {})
    options = {**vars(material), **learning, **vars(run), **settings}
    with placing_options():
        _, preset = choose(options)
        if settings:
            from moses_rnn.training.train import configure

            configure(options["architecture"], preset.network)
    return options


@contextlib.contextmanager
def placing_options() -> Iterator[None]:
    """Say where an option that does not fit was given: on the command line or in the settings file."""
    try:
        yield
    except UnfitOption as error:
        context = click.get_current_context()
        in_file = context.get_parameter_source(error.name) is ParameterSource.DEFAULT_MAP
        if in_file or error.name in context.meta.get(SETTINGS, {}):
            path = context.meta[CONFIG]
            if error.why.startswith("expected"):
                raise InputError(f"{path}: {error}") from error
            expected, advice = "settings that work together", "docs/training.md lists the settings."
            raise InputError(f"{path}: expected {expected}, found {error}", advice=advice) from error
        raise click.UsageError(f"--{error.name.replace('_', '-')}: {error.why}") from error


@reports_errors
def _take_settings(context: click.Context, _option: click.Parameter, path: str | None) -> None:
    """Make a file's values the defaults of options; note the others, which the network or its training may have."""
    if path is None:
        return
    keys = {name: parameter for parameter in context.command.params for name in _keys(parameter)}
    taken: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for key, value in _read(path).items():
        if key not in keys:
            settings[key] = value
            continue
        if not _is_key(keys[key]):
            expected = "options with a number or choice, and settings"
            raise InputError(f"{path}: expected {expected}, found {key}", advice="Give it on the command line.")
        if expected := expectation(vars(keys[key])["hint"], value):
            raise InputError(f"{path}: {key}: expected {expected}, found {shown_value(value)}")
        name = str(keys[key].name)
        if name in taken:
            raise InputError(f"{path}: expected each setting once, found two of {', '.join(_keys(keys[key]))}")
        taken[name] = value
    context.default_map = taken
    context.meta.update({CONFIG: path, SETTINGS: settings})


def _keys(param: click.Parameter) -> list[str]:
    """Return the names by which a file may set a parameter: those of its option, and the API's."""
    names = [str(param.name), *(name.lstrip("-").replace("-", "_") for name in param.opts if name.startswith("--"))]
    return sorted({*names, *(american for american, name in AMERICAN.items() if name in names)})


def _is_key(param: click.Parameter) -> bool:
    """Whether a file may set a parameter: numbers and choices, but no file names and no flags."""
    return isinstance(param.type, click.Choice | click.IntRange | click.FloatRange)


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: expected a file of settings, found: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected settings in TOML, found: {error}") from error


takes_settings = click.option(
    "--config",
    type=click.Path(readable=False),  # which the shell completes
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_take_settings,
    help="Read settings from this TOML file; the command line wins [docs/training.md lists them all]",
)


# --- running ----------------------------------------------------------------------------------------------------------


class TrainingDisplay:
    """Shows a training run of any network; see `moses_rnn.training.trainer.Observer`."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._display = Display("lines read", quiet=quiet)
        self._has_header = False
        self._loss = 0.0
        self._before = 0  # examples learned when this run was started or resumed
        self._share_before = 0.0  # of the budget, then

    def reading(self, lines: int, share: float | None) -> None:
        """Move the bar of the corpus."""
        self._display.show(lines, share)

    def corpus_read(self, description: Sequence[str]) -> None:
        """Print the description of the corpus."""
        self._display.close()
        for line in description:
            self._display.print_err(line)

    def starting(self, trainer: Trainer) -> None:
        """Print the network's size and the state of the run; open the bar."""
        unit, progress = trainer.task.unit, trainer.progress
        parameters = sum(tensor.numel() for tensor in trainer.model.parameters())
        self._display.print_err(f"network: {trainer.task.describe()}, {parameters:,} parameters")
        self._display.print_err(f"training: {trainer.config.describe(unit)}")
        if trainer.ranks.size > 1:
            self._display.print_err(f"processes: {trainer.ranks.size}, sharing each minibatch")
        if trainer.resumed:
            best = f"best so far {progress.best:.4f}" if progress.history else "no evaluation yet"
            self._display.print_err(f"resuming after {progress.examples:,} {unit}, {best}")
        self._display = Display(unit, quiet=self._quiet)
        self._before = progress.examples
        self._share_before = trainer.share_over()

    def stepped(self, trainer: Trainer, loss: float) -> None:
        """Move the bar."""
        progress = trainer.progress
        self._loss += SMOOTHING * (loss - self._loss) if self._loss else loss
        note = f"epoch {progress.epoch + 1}, {self._loss:.3f} {trainer.task.measure.of_step}"
        share = (trainer.share_over() - self._share_before) / (1 - self._share_before or 1)  # of what was left
        if self._before:
            note = f"{progress.examples:,} in all, {note}"
        self._display.show(progress.examples - self._before, share or None, note)

    def evaluated(self, trainer: Trainer, is_best: bool) -> None:
        """Print the held-out figures, the first time below a header."""
        if not self._has_header:
            self._display.print_err(evaluation_header(trainer))
            self._has_header = True
        self._display.print_err(evaluation_line(trainer, is_best))
        if skipped := trainer.progress.skipped_steps:
            one, several = "step skipped so far: its gradient was", "steps skipped so far: their gradients were"
            self._display.print_err(f"{number_of(skipped, one, several)} not finite")

    def close(self) -> None:
        """Leave the bar as it is."""
        self._display.close()


def evaluation_header(trainer: Trainer) -> str:
    """Return the header above evaluations; nats and perplexity are per held-out target token."""
    last = "|log Z|" if LOG_Z in trainer.progress.history[-1] else "clipped"
    measure = trainer.task.measure
    (cost, beside), speed = measure.columns, f"{measure.counted}/s"
    return f"{trainer.task.unit:>10}  epochs      time  {cost:>13}  {beside:>10}  {last}  {speed:>8}"


def evaluation_line(trainer: Trainer, is_best: bool) -> str:
    """Return the figures of the last evaluation: 80 columns up to ten million examples and a hundred hours."""
    figures, measure = trainer.progress.history[-1], trainer.task.measure
    cost = figures[measure.key]
    beside = figures[measure.beside] if measure.beside else math.exp(min(cost, MOST_NATS))
    last = f"{figures[LOG_Z]:.2f}" if LOG_Z in figures else f"{figures['clipped_share']:.0%}"
    return (
        f"{figures[trainer.task.unit]:>10,}  {figures['epochs']:>6.2f}  {duration(figures['seconds']):>8}  "
        f"{cost:>13.4f}  {beside:>10.4g}  {last:>7}  {figures['tokens_per_second']:>8,.0f}" + "  best" * is_best
    )


def run_training(options: Options, warning_of: Callable[[Outcome], str] = lambda _: "") -> Outcome:
    """Train, alone or with other processes, and print the outcome; only the first process returns."""
    rank = os.environ.get("RANK") if os.environ.get("WORLD_SIZE", "1") != "1" else None  # None: alone
    # Before torch loads, which takes seconds. With several processes, a signal may arrive more than once.
    stop = StopRequest(quiet=rank not in {None, "0"}, patient=rank is not None)
    from moses_rnn.training.train import train

    with together() as ranks:
        options = options_of_rank(options, ranks)
        display = TrainingDisplay(quiet=options["quiet"])
        with placing_options():
            outcome = train(**options, observer=display, should_stop=stop, ranks=ranks)
    display.close()
    progress = outcome.progress
    if not ranks.leads:
        sys.exit(0 if progress.finished else Stopped.exit_code)
    if not progress.finished:
        raise Stopped(f"stopped after {progress.examples:,} {outcome.unit}; run the same command again to continue")
    if warning := warning_of(outcome):
        warn(warning)
    if not options["quiet"]:
        per = outcome.measure.unit if outcome.unit == "pairs" else "nats per token"
        print_err(
            f"finished: {progress.finished}; best held-out {progress.best:.4f} {per}; model in {options['model']}"
        )
        print_err(f"verdict: {outcome.verdict}")
    return outcome


def print_speed(options: Options) -> None:
    """Print how long training takes here, after some seconds of it."""
    from moses_rnn.training.train import estimate_training

    with together() as ranks:
        if ranks.size > 1:
            raise MosesRnnError(f"--estimate: expected one process, found {ranks.size}")
        display = TrainingDisplay(quiet=options["quiet"])
        with placing_options():
            expected = estimate_training(options_of_rank(options, ranks), display, StopRequest())
    seconds = expected.pairs / expected.pairs_per_second
    passes = f"{expected.passes:.1f} passes within the limit" if expected.passes < math.inf else "no limit"
    print_out(
        f"{expected.pairs_per_second:,.0f} pairs/s here: {duration(seconds)} per pass over "
        f"{number_of(expected.pairs, 'pair')}; {passes}",
    )


def print_next(*words: str | Path, quiet: bool) -> None:
    """Print a command that uses the model."""
    if not quiet:
        print_err(f"next: {shlex.join(map(str, words))}")


@contextlib.contextmanager
def together() -> Iterator[Ranks]:
    """Join the processes that train together; an error in one of them ends all and is printed once."""
    from moses_rnn.training.ranks import PeerFailed, join

    ranks = join()
    try:
        yield ranks
    except MosesRnnError as error:
        if not ranks.report(error):
            sys.exit(error.exit_code)
        if not ranks.leads and not isinstance(error, PeerFailed):  # which says where it was seen
            error.message = f"process {ranks.rank} of {ranks.size}: {error.message}"
        raise
    except Exception as error:
        ranks.report(error)
        raise
    ranks.leave()


def options_of_rank(options: Options, ranks: Ranks) -> Options:
    """Return the options of this process: its own device, and progress only in the first process.

    After torchrun has restarted a training, --force has no effect, unless the earlier run is still there.
    """
    from moses_rnn.training.model_folder import is_restarting
    from moses_rnn.training.ranks import restarts

    quiet = options["quiet"] or not ranks.leads
    force = options["force"] and (not restarts() or is_restarting(Path(options["model"])))
    if options["force"] and not force and not quiet:
        print_err(f"--force: ignored, because torchrun restarted this training (restart {restarts()})")
    device = choose_device(ranks.device(options["device"]))
    return {**options, "device": device, "quiet": quiet, "force": force}
