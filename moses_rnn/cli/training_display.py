"""What a training run says as it proceeds: its corpus, its network, its held-out figures, its end."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moses_rnn.cli.command import say
from moses_rnn.cli.progress import Display, duration
from moses_rnn.errors import Stopped

if TYPE_CHECKING:
    from moses_rnn.training.run import Outcome
    from moses_rnn.training.trainer import Trainer

LOG_Z = "mean_abs_log_z"  # of networks that may learn to be normalised, among the figures of an evaluation
MOST_NATS = 700.0  # whose exponential is a number
SMOOTHING = 0.02  # weight of a minibatch in the mean loss that the bar shows


class TrainingDisplay:
    """Shows a training run, of whatever network; see `moses_rnn.training.trainer.Observer`."""

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
        """Print what the corpus holds."""
        self._display.close()
        for line in description:
            self._say(line)

    def starting(self, trainer: Trainer) -> None:
        """Print how large the network is and where the run stands; open the bar."""
        unit, progress = trainer.task.unit, trainer.progress
        parameters = sum(tensor.numel() for tensor in trainer.model.parameters())
        self._say(f"network: {trainer.task.describe()}, {parameters:,} parameters")
        self._say(f"training: {trainer.config.describe(unit)}")
        if trainer.ranks.size > 1:
            self._say(f"processes: {trainer.ranks.size}, which share each minibatch")
        if trainer.resumed:
            best = f"best so far {progress.best:.4f}" if progress.history else "no evaluation yet"
            self._say(f"resuming after {progress.examples:,} {unit}, {best}")
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
            self._display.say(evaluation_header(trainer))
            self._has_header = True
        self._display.say(evaluation_line(trainer, is_best))
        if skipped := trainer.progress.skipped_steps:
            self._display.say(f"{skipped:,} steps skipped so far: their gradients were not finite")

    def _say(self, text: str) -> None:
        if not self._quiet:
            say(text)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._display.close()


def evaluation_header(trainer: Trainer) -> str:
    """What stands above evaluations; nats and perplexity are those of a held-out token of the target."""
    last = "|log Z|" if LOG_Z in trainer.progress.history[-1] else "clipped"
    measure = trainer.task.measure
    (cost, beside), speed = measure.columns, f"{measure.counted}/s"
    return f"{trainer.task.unit:>10}  epochs      time  {cost:>13}  {beside:>10}  {last}  {speed:>8}"


def evaluation_line(trainer: Trainer, is_best: bool) -> str:
    """The figures of the last evaluation: 80 columns up to ten million examples and a hundred hours."""
    figures, measure = trainer.progress.history[-1], trainer.task.measure
    cost = figures[measure.key]
    beside = figures[measure.beside] if measure.beside else math.exp(min(cost, MOST_NATS))
    last = f"{figures[LOG_Z]:.2f}" if LOG_Z in figures else f"{figures['clipped_share']:.0%}"
    return (
        f"{figures[trainer.task.unit]:>10,}  {figures['epochs']:>6.2f}  {duration(figures['seconds']):>8}  "
        f"{cost:>13.4f}  {beside:>10.4g}  {last:>7}  {figures['tokens_per_second']:>8,.0f}" + "  best" * is_best
    )


def say_end(outcome: Outcome, folder: Path, unit: str, *, quiet: bool, leads: bool = True, warning: str = "") -> None:
    """Print how a run ended, and what that says of it.

    Args:
        outcome: of the run.
        folder: of the model.
        unit: what was learned.
        quiet: print what is wrong alone.
        leads: whether this is the process that speaks, of several that trained together; others end without a word.
        warning: what is wrong.

    Raises:
        Stopped: it was stopped before its end.
    """
    progress = outcome.progress
    if not leads:
        sys.exit(0 if progress.finished else Stopped.exit_code)
    if not progress.finished:
        raise Stopped(f"stopped after {progress.examples:,} {unit}; run the same command again to continue")
    if warning:
        say(f"warning: {warning}")
    if not quiet:
        per = "nats per token" if unit != "pairs" else outcome.measure.unit
        say(f"finished: {progress.finished}; best held-out {progress.best:.4f} {per}; model in {folder}")
        say(f"verdict: {outcome.verdict}")


def say_next(*words: str | Path, quiet: bool) -> None:
    """Print a command that uses the model."""
    if not quiet:
        say(f"next: {shlex.join(map(str, words))}")
