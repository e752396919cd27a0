"""moses-rnn-analyse trials: a plan of trials, run with the pipeline, as one table."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, Program, StopRequest, put, reports_errors, say, takes
from moses_rnn.errors import InputError, MosesRnnError

if TYPE_CHECKING:
    from moses_rnn.analysis.trials import Tried
    from moses_rnn.formats.plans import Plan
    from moses_rnn.moses.trial_steps import Step, Steps, TrialSteps

EPILOG = """\b
Example: what would be run, then all of it:
  moses-rnn-analyse trials trials.toml --dry-run
  MOSES_ROOT=/path/to/mosesdecoder moses-rnn-analyse trials trials.toml

A plan is explained in docs/trials.md; examples/trials.toml is one. Run the same command again after any interruption:
what is done stays done. Trials whose settings have changed run anew, in another folder. Exit codes: 0 done, 1 a trial
failed (the others are in the table), 2 wrong command line, 3 plan rejected, 75 stopped and resumable.
"""


@dataclass(frozen=True, kw_only=True)
class TrialsRequest:
    """What the command line asks for."""

    plan: Path
    only: tuple[str, ...]
    samples: int
    dry_run: bool
    report: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--only", multiple=True, metavar="TRIAL", help="Only the trial of this name; repeat it")
@click.option("--samples", type=click.IntRange(1), default=1000, show_default=True, help="Of the paired bootstrap")
@click.option("-n", "--dry-run", is_flag=True, help="Print the commands and run none")
@click.option("--report", is_flag=True, help="Print the table of what is done already and run nothing")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr")
@reports_errors
@takes(TrialsRequest)
def trials(request: TrialsRequest) -> None:
    """Train networks, score, tune and compare as PLAN, a TOML file, says, with the pipeline and a real Moses."""
    from moses_rnn.cli.plan_options import plan_options
    from moses_rnn.formats.plans import read_plan
    from moses_rnn.moses.trial_steps import Steps

    plan = read_plan(request.plan, plan_options())
    steps = Steps(plan)
    chosen = _chosen(steps, request)
    if request.dry_run:
        for step in steps.in_order(chosen):
            put(f"# {step.name}\n{shlex.join(['moses-rnn-pipeline', *step.words])}")
        return
    failed = {} if request.report else _run(steps, chosen, quiet=request.quiet)
    unfinished = _print_table(plan, chosen, failed, request)
    if unfinished and not request.report:
        raise MosesRnnError(f"{len(unfinished)} of {len(chosen)} trials failed: {', '.join(unfinished)}")


def _chosen(steps: Steps, request: TrialsRequest) -> list[TrialSteps]:
    names = [each.trial.name for each in steps.trials]
    for name in request.only:
        if name not in names:
            raise InputError(f"{request.plan}: expected a trial named {name}, found {', '.join(names)}")
    return steps.chosen(request.only)


def _run(steps: Steps, chosen: Sequence[TrialSteps], *, quiet: bool) -> dict[Path, str]:
    """Run all steps; the names of those that failed, by the folders of those that therefore are not there."""
    from moses_rnn.moses.pipeline import make_command
    from moses_rnn.moses.trial_runs import StepRunner, locked
    from moses_rnn.moses.trial_steps import changed_settings

    in_order = list(steps.in_order(chosen))
    progress = Progress(len(in_order), quiet=quiet)
    with locked(steps.base.folder.parent) as lock:
        runner = StepRunner(make_command, lock, progress.look, StopRequest(quiet=quiet))
        try:
            for step in in_order:
                for text in changed_settings(step):
                    progress.say(text)
                progress.begin(step)
                if failure := runner.run(step):
                    progress.say(failure)
                progress.end()
        finally:
            progress.close()
    return runner.failures


def _print_table(
    plan: Plan, chosen: Sequence[TrialSteps], failed: Mapping[Path, str], request: TrialsRequest
) -> list[str]:
    """Print it; the names of the trials that are not in it with figures."""
    from moses_rnn.analysis.trials import compare_trial
    from moses_rnn.analysis.trials_table import format_trials

    records, lacking = [], {}
    for steps in chosen:
        reasons = [failed[step.folder] for step in steps.of_trial if step.folder in failed]
        try:
            if reasons:
                lacking[steps.trial.name] = f"failed: {reasons[0]}"
            elif request.report and not _is_done(steps):
                lacking[steps.trial.name] = "not done"
            else:
                records.append(compare_trial(_tried(plan, steps), request.samples))
        except InputError as error:
            lacking[steps.trial.name] = f"failed: {error.message}"
    put("\n".join(format_trials(records, plan.tests, request.samples, lacking)))
    return list(lacking)


def _is_done(steps: TrialSteps) -> bool:
    """Whether the pipeline has left the stamps of all tunings."""
    stamps = [
        step.folder / "done" / f"{step.targets[0]}.{seed}"
        for step in (steps.baseline, steps.system)
        for seed in steps.trial.seeds
    ]
    return all(stamp.exists() for stamp in stamps)


def _tried(plan: Plan, steps: TrialSteps) -> Tried:
    from moses_rnn.analysis.trials import Tried
    from moses_rnn.formats.runs import Place

    target, trial = plan.pipeline["TRG"], steps.trial
    models = [step.model for step in steps.networks]
    return Tried(
        name=trial.name,
        tuner=trial.tuner,
        settings=trial.own,
        baseline=Place(steps.baseline.folder, target, plan.tests),
        system=Place(steps.system.folder, target, plan.tests),
        seeds=[str(seed) for seed in trial.seeds],
        networks=models[: len(trial.networks)],
        inverse_networks=models[len(trial.networks) :],
    )


class Progress:
    """Which step is under way: a bar on a terminal, a line for each step otherwise; always on stderr.

    Args:
        steps: how many there are.
        quiet: show nothing but what went wrong.
    """

    def __init__(self, steps: int, *, quiet: bool) -> None:
        from tqdm import tqdm

        self._steps, self._number, self._quiet = steps, 0, quiet
        on_terminal = sys.stderr.isatty() and not quiet
        self._bar = tqdm(total=steps, unit="step", file=sys.stderr) if on_terminal else None
        self._name, self._began = "", time.monotonic()

    def begin(self, step: Step) -> None:
        """Show that a step begins."""
        self._number += 1
        self._name, self._began = step.name, time.monotonic()
        if self._bar is None and not self._quiet:
            say(f"{self._number} of {self._steps}: {step.name} ({step.folder})")
        self.look()

    def look(self) -> None:
        """Show how long it has taken so far."""
        from moses_rnn.cli.progress import duration

        if self._bar is not None:
            self._bar.set_description_str(f"{self._name} {duration(time.monotonic() - self._began)}")

    def end(self) -> None:
        """Show that it has ended."""
        if self._bar is not None:
            self._bar.update()

    def say(self, text: str) -> None:
        """Print lines that stay."""
        if self._bar is not None:
            self._bar.clear()
        say(text)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
