"""Runs all that needs a GPU and prints tables for docs/results.md, in at most eight minutes on an H100 with 16 cores.

    python benchmarks/gpu.py [STEP …] [--device cuda] [--table TABLE] [--texts PREFIX --source en --target fr]
        [--folder build/gpu] [--minutes 8] [--small]

Each step is a process with a time limit. A step that fails or takes too long stops no other. The folder gets a log of
everything, rows.jsonl and table.md, all written as they come: a run that is cut off leaves what it has found. Nothing
needs to be installed but what the first table misses. With --device cpu --small, the script tries itself in minutes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
NEEDED = "torch numpy click jinja2 xopen zlib_ng safetensors tqdm sacremoses sacrebleu"  # by everything
NEEDED_BY_TESTS = "pytest pytest_timeout xdist hypothesis transformers sentencepiece"
MINUTES = 8.0
# The most seconds of each step, of so many minutes; the most useful ones come first
SECONDS = {
    "machine": 40,
    "score": 120,
    "parity": 90,
    "train": 90,
    "sentences": 90,
    "out-of-memory": 45,
    "tests": 100,
    "golden": 140,
}
LEAST_SECONDS = 10  # to begin a step


class Report:
    """What has been found: printed, logged and written at once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._tables: dict[str, list[dict[str, Any]]] = {}
        self._log, self._rows = (folder / "log").open("w"), (folder / "rows.jsonl").open("w")
        self._table = folder / "table.md"
        self._started = time.monotonic()

    def say(self, line: str) -> None:
        """Print and log a line; keep the row in it, if there is one."""
        if line.startswith("{"):
            self.add(json.loads(line))
        text = f"{time.monotonic() - self._started:6.1f} {line}"
        print(text, flush=True)
        print(text, file=self._log, flush=True)

    def add(self, row: dict[str, Any]) -> None:
        """Add a row to the table of its first column."""
        print(json.dumps(row, ensure_ascii=False), file=self._rows, flush=True)
        self._tables.setdefault(next(iter(row)), []).append(row)
        self._table.write_text(self.markdown(), encoding="utf-8")

    def markdown(self) -> str:
        """Return all tables."""
        parts = []
        for rows in self._tables.values():
            columns = list(dict.fromkeys(column for row in rows for column in row))
            cells = [columns, ["---"] * len(columns), *([shown(row.get(key)) for key in columns] for row in rows)]
            parts.append("".join(f"| {' | '.join(line)} |\n" for line in cells))
        return "\n".join(parts)


def shown(value: object) -> str:
    """Return a figure as a table shows it."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return "" if value is None else str(value)


def run_step(name: str, limit: float, report: Report) -> str:
    """Run a step in a process of its own; return what became of it."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-u", __file__, *sys.argv[1:], "--only", name],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    timer = threading.Timer(limit, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    for line in process.stdout or ():
        report.say(line.rstrip("\n"))
    code = process.wait()
    timer.cancel()
    return "done" if not code else f"cut off after {limit:.0f} s" if code == -signal.SIGKILL else f"failed, code {code}"


def do_step(given: argparse.Namespace) -> None:
    """Print the rows of a step."""
    from gpu_steps import STEPS

    for row in STEPS[given.only](given):
        print(json.dumps(row, ensure_ascii=False), flush=True)


def main() -> int:
    """Run the steps; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(SECONDS)} [default: all]")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--table", default=str(ROOT / "examples" / "phrase-table.gz"))
    parser.add_argument("--texts", default=str(ROOT / "examples" / "corpus" / "train"), help="prefix of two texts")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="fr")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "gpu")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of all steps together")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--only", choices=SECONDS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.preset = "small" if given.small else "paper"
    if unknown := set(given.steps) - SECONDS.keys():
        parser.error(f"expected steps of {', '.join(SECONDS)}, found {', '.join(sorted(unknown))}")
    if given.only:
        do_step(given)
        return 0
    report, end, failed = Report(given.folder), time.monotonic() + 60 * given.minutes, False
    missing = [name for name in (NEEDED + " " + NEEDED_BY_TESTS).split() if importlib.util.find_spec(name) is None]
    report.say(json.dumps({"machine": "missing packages", "found": " ".join(missing) or "none"}))
    for name in given.steps or SECONDS:
        began = time.monotonic()
        limit = min(SECONDS[name] * given.minutes / MINUTES, end - began)
        outcome = run_step(name, limit, report) if limit > LEAST_SECONDS else "no time left"
        failed |= outcome != "done"
        report.say(json.dumps({"step": name, "outcome": outcome, "seconds": round(time.monotonic() - began, 1)}))
    print(report.markdown())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
