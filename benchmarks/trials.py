"""Runs the experiments of a plan, each with several seeds, and prints the results as a Markdown table.

    python benchmarks/trials.py PLAN.toml FOLDER [NAME=VALUE ...] [--at-once 2] [--dry-run]

A plan (see benchmarks/plans/) says what varies, which commands to run, and which numbers to read from their output:

    seeds = [1, 2, 3]
    before = ["command"]                      # run once, before all trials
    commands = ["command", "command"]         # run for each trial and seed, in order
    settings = "cell = '{cell}'"              # optional: written to {run}/settings.toml first
    read = {nats = 'cost ([\\d.]+)'}           # columns: the last match in the output of the commands
    every = {minutes = 5, options = ""}       # values for names in braces; they may name {folder}; NAME=VALUE wins
    [trial.small]                             # a row; its values replace those of every
    options = "--hidden-size 64"

Commands and settings may also name {seed}, {trial}, {run} (the folder of this trial and seed) and {folder}. Commands
run without a shell. Δ is the difference from the first trial. seeds='1 2' on the command line replaces the plan's. Run
the same command again to continue: a command that ended well does not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT
from statistics import mean, stdev
from threading import Event
from typing import Any, NoReturn

KEYS = {"commands": list, "read": dict, "trial": dict, "seeds": list, "before": list, "settings": str, "every": dict}
ITEMS = {  # what some of these contain
    "commands": (str, "texts"),
    "before": (str, "texts"),
    "seeds": (int, "whole numbers"),
    "trial": (dict, "tables"),
}
NEEDED = ("commands", "read", "trial")
OWN = {"seed", "trial", "run", "folder"}  # names whose values no plan gives
STOPPED = 75  # resumable
INTERRUPTED = (STOPPED, 128 + SIGINT, -SIGINT)  # what commands end with upon Ctrl-C
stopping = Event()  # once set, no further command starts
PATH = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"


def refuse(message: str) -> NoReturn:
    """Print an error and exit as for any bad input."""
    print(f"trials: {message}", file=sys.stderr)
    sys.exit(3)


def read_plan(path: Path) -> Mapping[str, Any]:
    """Read and check a plan."""
    try:
        plan = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        refuse(f"{path}: expected a plan in TOML, found: {error}")
    for key, value in plan.items():
        if key not in KEYS or not isinstance(value, KEYS[key]):
            refuse(f"{path}: expected tables and lists named {', '.join(KEYS)}, found {key} = {value!r}")
    check_items(path, plan)
    if missing := [key for key in NEEDED if not plan.get(key)]:
        refuse(f"{path}: expected {missing[0]}, found none")
    for name, pattern in plan["read"].items():
        with suppress(re.error, TypeError):
            if re.compile(pattern).groups == 1:
                continue
        refuse(f"{path}: expected a pattern with one group for {name}, found {pattern}")
    return plan


def check_items(path: Path, plan: Mapping[str, Any]) -> None:
    """Check what the lists and tables of a plan contain."""
    for key, (kind, name) in ITEMS.items():
        items = plan.get(key, [])
        if wrong := [item for item in (items.values() if isinstance(items, dict) else items) if type(item) is not kind]:
            refuse(f"{path}: expected {name} as {key}, found {wrong[0]!r}")


def is_command(text: str) -> bool:
    """Whether a text has the words of a command."""
    try:
        return bool(shlex.split(text)) and "\0" not in text
    except ValueError:
        return False


@dataclass
class Run:
    """The commands of one trial and seed, and what those that ended well printed."""

    name: str
    folder: Path
    commands: list[str]
    settings: str  # the content of a file that commands may name
    printed: list[str] = field(default_factory=list)  # of each command that ended well

    @classmethod
    def restored(cls, name: str, texts: Sequence[str], values: Mapping[str, object], own: Mapping[str, object]) -> Run:
        """Fill in settings and commands; read from the record in the folder what is done."""
        if reserved := OWN.intersection(own):
            refuse(f"{name}: expected no value for {', '.join(sorted(reserved))}, which trials sets")
        try:
            values = {**values, **{key: str(value).format_map({**values, **own}) for key, value in own.items()}}
            settings, *commands = [text.format_map(values) for text in texts]
        except KeyError as error:
            refuse(f"{name}: expected a value for {{{error.args[0]}}}, found none")
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            refuse(f"{name}: expected names in braces, and {{{{ for a brace, found: {error}")
        if wrong := [command for command in commands if not is_command(command)]:
            refuse(f"{name}: expected words whose quotes are closed, found {wrong[0]!r}")
        run = cls(name, Path(str(values["run"])), commands, settings)
        run._restore()
        return run

    def _restore(self) -> None:
        """Read from the record what is done."""
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
            said, printed = (record["commands"], record["settings"]), [str(text) for text in record["printed"]]
        except FileNotFoundError:
            return
        except OSError as error:
            refuse(f"{self.record}: expected a place for a record, found: {error.strerror}")
        except (ValueError, LookupError, TypeError) as error:
            refuse(f"{self.record}: expected a record of a run, found: {error!r}; remove it to run again")
        if said != (self.commands, self.settings):
            refuse(f"{self.record}: expected what the plan says, found others; take another folder")
        if len(printed) > len(self.commands):
            refuse(f"{self.record}: expected outputs of {len(self.commands)} commands, found {len(printed)}")
        self.printed = printed

    @property
    def record(self) -> Path:
        """The file that records what is done."""
        return self.folder / "run.json"

    @property
    def is_done(self) -> bool:
        """Whether all commands ended well."""
        return len(self.printed) == len(self.commands)

    def finish(self) -> str:
        """Run what is not done; return why it failed, or an empty string."""
        try:
            return self._run_commands()
        except OSError as error:
            return f"{self.name}: {error.filename or self.folder}: expected to write it, found: {error.strerror}"

    def _run_commands(self) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "settings.toml").write_text(self.settings, encoding="utf-8")
        self._save()
        log = self.folder / "log"
        for command in self.commands[len(self.printed) :]:
            if stopping.is_set():
                return ""
            try:
                with log.open("wb") as out:
                    done = subprocess.run(  # noqa: S603, the plan's
                        shlex.split(command), stdout=out, stderr=out, env={**os.environ, "PATH": PATH}, check=False
                    )
            except OSError as error:  # no such program
                return f"{self.name}: {error}: {command}"
            if done.returncode in INTERRUPTED:
                stopping.set()
            if done.returncode:
                return f"{self.name}: code {done.returncode} of: {command}\n  see {log}"
            self.printed.append(log.read_text(encoding="utf-8", errors="replace"))
            self._save()
        return ""

    def _save(self) -> None:
        text = json.dumps({"commands": self.commands, "settings": self.settings, "printed": self.printed}, indent=2)
        new = self.record.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(self.record)


def runs_of(plan: Mapping[str, Any], folder: Path, given: Mapping[str, str]) -> tuple[Run, dict[str, list[Run]]]:
    """Return the run before all trials, and each trial's runs, one per seed."""
    defaults = {key: str(value).replace("{folder}", str(folder)) for key, value in plan.get("every", {}).items()}
    if reserved := OWN.intersection({**defaults, **given}):
        refuse(f"expected no value for {', '.join(sorted(reserved))}, which trials sets")
    every = {**defaults, **given, "folder": folder}
    words = given["seeds"].split() if "seeds" in given else plan.get("seeds", [1])
    try:
        seeds = [int(seed) for seed in words] or sys.exit("trials: expected at least one seed, found none")
    except ValueError as error:
        sys.exit(f"trials: expected whole numbers as seeds: {error}")
    if len({*seeds}) < len(seeds):
        sys.exit(f"trials: expected each seed once, found {' '.join(map(str, seeds))}")
    folders = {trial: re.sub(r"[^\w.-]+", "-", trial) for trial in plan["trial"]}
    if len({*folders.values()}) < len(folders):
        sys.exit("trials: expected trials whose names give different folders")
    before = Run.restored("before", ["", *plan.get("before", [])], {**every, "run": folder / "before"}, {})
    trials: dict[str, list[Run]] = {}
    for trial, own in plan["trial"].items():
        for seed in seeds:
            here = folder / f"{folders[trial]}.{seed}"
            values = {**every, "trial": trial, "seed": seed, "run": here}
            texts = [plan.get("settings", ""), *plan["commands"]]
            trials.setdefault(trial, []).append(Run.restored(f"{trial}, seed {seed}", texts, values, own))
    return before, trials


def run_all(runs: Sequence[Run], at_once: int) -> bool:
    """Run all, naming those that fail; return whether all ended well."""
    with ThreadPoolExecutor(at_once) as pool:
        waiting = [pool.submit(run.finish) for run in runs]
        with suppress(KeyboardInterrupt):  # the commands receive it too and end
            wait(waiting)
        pool.shutdown(cancel_futures=True)
    if stopping.is_set() or any(run.cancelled() for run in waiting):
        print("trials: stopped; the same command continues", file=sys.stderr)
        sys.exit(STOPPED)
    failures = [failure for run in waiting if (failure := run.result())]
    for failure in failures:
        print(f"trials: {failure}", file=sys.stderr)
    return not failures


def figures(runs: Sequence[Run], pattern: str) -> list[float]:
    """Return the last matching number that each finished run printed."""
    matches = [(run, re.findall(pattern, "\n".join(run.printed), re.MULTILINE)) for run in runs if run.is_done]
    missing = [run.name for run, found in matches if not found]
    if 0 < len(missing) < len(matches):  # else the trial has no such figure
        sys.exit(f"trials: {missing[0]}: expected a figure like {pattern}, as for other seeds, found none")
    try:
        return [float(found[-1]) for _, found in matches if found]
    except ValueError as error:
        sys.exit(f"trials: expected a number from {pattern}, found: {error}")


def table(trials: Mapping[str, Sequence[Run]], read: Mapping[str, str]) -> Iterator[str]:
    """Yield the rows: mean and standard deviation over the seeds, and the difference from the first trial."""
    header = ["trial", "seeds", *(cell for name in read for cell in (name, "Δ"))]
    yield _row(header)
    yield "|" + "---|" * len(header)
    first = next(iter(trials.values()))
    for name, runs in trials.items():
        cells = [name, str(sum(run.is_done for run in runs))]
        for pattern in read.values():
            found, of_first = figures(runs, pattern), figures(first, pattern)
            spread = f" ± {stdev(found):.3g}" if len(found) > 1 and all(map(math.isfinite, found)) else ""
            cells.append(f"{mean(found):.5g}{spread}" if found else "–")
            cells.append(f"{mean(found) - mean(of_first):+.3g}" if found and of_first and runs is not first else "")
        yield _row(cells)


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def main() -> None:
    """Run a plan, or print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("folder", type=Path, help="folder for all results")
    parser.add_argument("values", metavar="NAME=VALUE", nargs="*", help="replaces a value of [every], or seeds")
    parser.add_argument("--at-once", type=int, default=1, help="number of trials at the same time")
    parser.add_argument("--dry-run", action="store_true", help="print the commands and run none")
    given = parser.parse_intermixed_args()
    if given.at_once < 1:
        parser.error(f"--at-once: expected a positive number, found {given.at_once}")
    if wrong := [value for value in given.values if "=" not in value]:
        parser.error(f"expected NAME=VALUE, found {wrong[0]}")
    plan = read_plan(given.plan)
    before, trials = runs_of(plan, given.folder, dict(value.split("=", 1) for value in given.values))
    runs = [run for of_trial in trials.values() for run in of_trial]
    if given.dry_run:
        for run in (before, *runs):
            print("\n".join([f"# {run.name}", *(f"#   {line}" for line in run.settings.splitlines()), *run.commands]))
        return
    good = run_all([before], 1) and run_all(runs, given.at_once)
    print("\n".join(table(trials, plan["read"])))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
