"""Runs the experiments of a plan, each with several seeds, and prints a Markdown table of what they reach.

    python benchmarks/trials.py PLAN.toml FOLDER [NAME=VALUE ...] [--at-once 2] [--only TRIAL] [--dry-run] [--report]

A plan (benchmarks/plans/ has some) says what varies, which commands to run, and what to read from what they print:

    seeds = [1, 2, 3]
    before = ["command"]                      # run once, before all trials
    commands = ["command", "command"]         # run for each trial and seed, one after the other
    settings = "cell = '{cell}'"              # optional, what to write to {run}/settings.toml before
    read = {nats = 'cost ([\\d.]+)'}           # columns: the last match in what the commands print
    every = {minutes = 5, options = ""}       # values that commands name in braces; NAME=VALUE replaces them
    [trial.small]                             # a row; its values replace those of all
    options = "--hidden-size 64"

Commands and settings may also name {seed}, {trial}, {run} (the folder of this trial and seed) and {folder}. Commands
run without a shell. Δ is the difference to the first trial. Run the same command again to continue: a command that
ended well does not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT
from statistics import mean, stdev
from threading import Event
from typing import Any, NoReturn

KEYS = {"seeds": list, "before": list, "commands": list, "settings": str, "read": dict, "every": dict, "trial": dict}
NEEDED = ("commands", "read", "trial")
STOPPED = 75  # resumable
INTERRUPTED = (STOPPED, 128 + SIGINT, -SIGINT)  # what commands end with upon Ctrl-C
stopping = Event()  # nothing more is begun
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def refuse(message: str) -> NoReturn:
    """End as for any input that is wrong."""
    print(f"trials: {message}", file=sys.stderr)
    sys.exit(3)


@dataclass
class Run:
    """Commands that run one after the other, and what they have printed so far."""

    name: str
    folder: Path
    commands: list[str]
    settings: str  # the content of a file that commands may name
    printed: list[str] = field(default_factory=list)  # of each command that ended well

    @property
    def record(self) -> Path:
        """The file that says what is done."""
        return self.folder / "run.json"

    @property
    def is_done(self) -> bool:
        """Whether all commands ended well."""
        return len(self.printed) == len(self.commands)

    def restore(self) -> None:
        """Take what is done from the record; other commands or settings would be another experiment."""
        if not self.record.exists():
            return
        record = json.loads(self.record.read_text(encoding="utf-8"))
        if record["commands"] != self.commands or record.get("settings") != self.settings:
            refuse(f"{self.record}: expected the commands and settings of the plan, found others; take another folder")
        self.printed = record["printed"]

    def finish(self) -> str:
        """Run what is not done; why it failed, if it did."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "settings.toml").write_text(self.settings, encoding="utf-8")
        self._save()
        for command in self.commands[len(self.printed) :]:
            if stopping.is_set():
                return ""
            log = self.folder / "log"
            with log.open("wb") as out:
                environment = {**os.environ, "PATH": PATH}
                words = shlex.split(command)
                code = subprocess.run(words, stdout=out, stderr=out, env=environment, check=False).returncode  # noqa: S603, the plan's
            if code in INTERRUPTED:
                stopping.set()
            if code:
                return f"{self.name}: code {code} of: {command}\n  see {log}"
            self.printed.append(log.read_text(encoding="utf-8", errors="replace"))
            self._save()
        return ""

    def _save(self) -> None:
        text = json.dumps({"commands": self.commands, "settings": self.settings, "printed": self.printed}, indent=2)
        new = self.record.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(self.record)


@dataclass
class Plan:
    """What was read, and where it happens."""

    content: Mapping[str, Any]
    folder: Path
    values: Mapping[str, str]  # of the command line

    def before(self) -> Run:
        """What is run once."""
        return self._run("before", self.folder / "before", self.content.get("before", []), "", {})

    def trials(self, names: Sequence[str]) -> dict[str, list[Run]]:
        """The runs of each trial, one for each seed."""
        trials = self.content["trial"]
        if unknown := [name for name in names if name not in trials]:
            refuse(f"expected a trial of {', '.join(trials)}, found {unknown[0]}")
        return {name: list(self._runs(name, trials[name])) for name in trials if not names or name in names}

    def _runs(self, name: str, values: Mapping[str, object]) -> Iterator[Run]:
        for seed in self.content.get("seeds", [1]):
            folder = self.folder / (re.sub(r"[^\w.-]+", "-", name) + f".{seed}")
            of_run = {**values, "trial": name, "seed": seed, "run": folder}
            settings = self.content.get("settings", "")
            yield self._run(f"{name}, seed {seed}", folder, self.content["commands"], settings, of_run)

    def _run(
        self, name: str, folder: Path, commands: Sequence[str], settings: str, values: Mapping[str, object]
    ) -> Run:
        known = {**self.content.get("every", {}), **self.values, **values, "folder": self.folder}
        try:
            known |= {key: str(value).format_map(known) for key, value in values.items()}
            run = Run(name, folder, [command.format_map(known) for command in commands], settings.format_map(known))
        except KeyError as error:
            refuse(f"{name}: expected a value for {{{error.args[0]}}}, found none")
        run.restore()
        return run


def read_plan(path: Path) -> Mapping[str, Any]:
    """The plan's content, checked."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        refuse(f"{path}: expected a plan in TOML, found: {error}")
    for key, value in content.items():
        if key not in KEYS or not isinstance(value, KEYS[key]):
            refuse(f"{path}: expected tables and lists named {', '.join(KEYS)}, found {key} = {value!r}")
    for key in NEEDED:
        if not content.get(key):
            refuse(f"{path}: expected {key}, found none")
    for name, pattern in content["read"].items():
        if re.compile(pattern).groups != 1:
            refuse(f"{path}: expected a pattern with one group for {name}, found {pattern}")
    return content


def figures(runs: Sequence[Run], pattern: str) -> list[float]:
    """The number that each finished run printed last."""
    matches = [re.findall(pattern, "\n".join(run.printed), re.MULTILINE) for run in runs if run.is_done]
    return [float(found[-1]) for found in matches if found]


def table(trials: Mapping[str, Sequence[Run]], read: Mapping[str, str]) -> Iterator[str]:
    """Mean and standard deviation over the seeds, and the difference of the mean to the first trial's."""
    header = ["trial", "seeds", *(cell for name in read for cell in (name, "Δ"))]
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    first = next(iter(trials.values()))
    for name, runs in trials.items():
        cells = [name, str(sum(run.is_done for run in runs))]
        for pattern in read.values():
            found, of_first = figures(runs, pattern), figures(first, pattern)
            spread = f" ± {stdev(found):.3g}" if len(found) > 1 else ""
            cells.append(f"{mean(found):.5g}{spread}" if found else "–")
            cells.append(f"{mean(found) - mean(of_first):+.3g}" if found and of_first and runs is not first else "")
        yield f"| {' | '.join(cells)} |"


def run_all(runs: Sequence[Run], at_once: int) -> bool:
    """Whether all ended well; what failed is named, and stops no other run."""
    with ThreadPoolExecutor(at_once) as pool:
        waiting = [pool.submit(run.finish) for run in runs]
        with suppress(KeyboardInterrupt):  # the commands got it too, and end
            wait(waiting)
        pool.shutdown(cancel_futures=True)
    if stopping.is_set() or any(run.cancelled() for run in waiting):
        print("trials: stopped; the same command continues", file=sys.stderr)
        sys.exit(STOPPED)
    failures = [failure for run in waiting if (failure := run.result())]
    for failure in failures:
        print(f"trials: {failure}", file=sys.stderr)
    return not failures


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("folder", type=Path, help="where everything is made")
    parser.add_argument("values", metavar="NAME=VALUE", nargs="*", help="in place of values of [every]")
    parser.add_argument("--at-once", type=int, default=1, help="trials that run at the same time")
    parser.add_argument("--only", action="append", default=[], metavar="TRIAL", help="may be repeated")
    parser.add_argument("--dry-run", action="store_true", help="print the commands and run none")
    parser.add_argument("--report", action="store_true", help="print the table of what is done and run nothing")
    given = parser.parse_intermixed_args()
    if wrong := [value for value in given.values if "=" not in value]:
        parser.error(f"expected NAME=VALUE, found {wrong[0]}")
    return given


def main() -> None:
    """Run a plan, or print it."""
    given = arguments()
    content = read_plan(given.plan)
    plan = Plan(content, given.folder, dict(value.split("=", 1) for value in given.values))
    before, trials = plan.before(), plan.trials(given.only)
    runs = [run for of_trial in trials.values() for run in of_trial]
    if given.dry_run:
        for run in (before, *runs):
            print("\n".join([f"# {run.name}", *(f"#   {line}" for line in run.settings.splitlines()), *run.commands]))
        return
    good = given.report or (run_all([before], 1) and run_all(runs, given.at_once))
    print("\n".join(table(trials, content["read"])))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
