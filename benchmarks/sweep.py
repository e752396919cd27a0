"""What settings of training reach in a given time: held-out nats of each, as a Markdown table.

    python benchmarks/sweep.py PHRASE_TABLE PLAN.toml FOLDER [--at-once 2] [--minutes 5 15 30 60] [--cores 1.0]

A plan has a table for each trial, with settings of moses-rnn-train (its --config); [every] holds for all. Trials run
in one thread each, as many at once as there are cores, and their minutes are those of the processor, so that what
else the machine does hardly matters. `--cores` says how many such minutes a minute of training on all cores is worth.
Each trial's model stays in FOLDER, and a trial that is finished is not run again; one that was stopped is resumed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stages import settings

from moses_rnn.cli.train import main as train
from moses_rnn.training import trainer

LOG = Path("training", "log.jsonl")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("plan", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5, 15, 30, 60])
    parser.add_argument("--cores", type=float, default=1.0)
    parser.add_argument("--trial", help=argparse.SUPPRESS)
    parser.add_argument("--report", action="store_true", help="print what there is, run nothing")
    return parser.parse_args()


def run_trial(table: Path, folder: Path, options: dict[str, Any]) -> None:
    """Train in this process, by the processor's clock."""
    trainer.time = SimpleNamespace(monotonic=time.process_time)  # type: ignore[attr-defined]
    words = settings(folder.with_name(f"{folder.name}.toml"), options)
    train([str(table), "--model", str(folder), "--threads", "1", *words], standalone_mode=False)


def history_of(folder: Path) -> list[dict[str, float]]:
    """The evaluations of a trial."""
    path = folder / LOG
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def row(name: str, options: dict[str, Any], history: list[dict[str, float]], seconds: list[float]) -> str:
    """A trial's best held-out nats within each time; empty where it did not run that long."""
    cells = []
    for limit in seconds:
        within = [h["nats_per_token"] for h in history if h["seconds"] <= 1.02 * limit]
        long_enough = history and history[-1]["seconds"] >= 0.9 * limit
        cells.append(f"{min(within):.3f}" if within and long_enough else "")
    rate = f"{history[-1]['pairs'] / max(history[-1]['seconds'], 0.1):,.0f}" if history else ""
    best = min((h["nats_per_token"] for h in history), default=float("nan"))
    last = history[-1]["nats_per_token"] if history else float("nan")
    settings = ", ".join(f"{key} {value}" for key, value in options.items())
    return " | ".join(["", name, settings, rate, *cells, f"{best:.3f}", f"{last:.3f}", ""]).strip()


def main() -> None:
    """Run or print a plan."""
    given = arguments()
    plan = tomllib.loads(given.plan.read_text())
    every = plan.pop("every", {})
    if given.trial:
        run_trial(given.table, given.folder / given.trial, {**every, **plan[given.trial]})
        return
    given.folder.mkdir(parents=True, exist_ok=True)

    def run(name: str) -> None:
        command = [sys.executable, __file__, given.table, given.plan, given.folder, "--trial", name]
        with (given.folder / f"{name}.log").open("a") as log:
            if subprocess.run(command, stderr=log, stdout=log, check=False).returncode:  # noqa: S603, our own
                print(f"{name}: failed; see {given.folder / name}.log", file=sys.stderr)

    if not given.report:
        with ThreadPoolExecutor(given.at_once) as pool:
            list(pool.map(run, plan))
    seconds = [60 * minutes * given.cores for minutes in given.minutes]
    times = (f"{minutes:g} min" for minutes in given.minutes)
    print(" | ".join(["", "trial", "settings", "pairs/s", *times, "best", "last", ""]).strip())
    print("|" + "---|" * (len(given.minutes) + 5))
    for name, options in plan.items():
        print(row(name, options, history_of(given.folder / name), seconds))


if __name__ == "__main__":
    main()
