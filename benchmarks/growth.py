"""Time and memory of moses-rnn-score by the size of the table.

    python benchmarks/growth.py [--most 1000000] [--json FILE]

The tables are synthetic, and all their sources differ. The network has 8 hidden units, so arithmetic takes almost no
time. The sizes take turns for several rounds. The best time counts, minus the time for a table of two lines (start-up).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent
SIZES = ["--hidden-size", "8", "--embedding-size", "8", "--shortlist", "200", "--max-epochs", "0.1"]
WORDS = 5_000
NOISE = 0.1  # seconds by which the start-up time varies


def write_table(path: Path, lines: int) -> None:
    """Write a table in which all sources differ."""
    with gzip.open(path, "wb", 1) as file:
        for i in range(lines):
            source = f"the w{i % WORDS} of n{i // WORDS}"
            file.write(
                f"{source} ||| le m{i * 7 % WORDS} de o{i % 97} ||| 0.5 0.0123457 0.25 1e-05 ||| 0-0 1-1 2-2 3-3 ||| "
                f"{i % 9 + 1} 2 1 ||| |||\n".encode()
            )


def run(table: Path, model: Path) -> tuple[float, float, int]:
    """Score a table; return wall-clock seconds, CPU seconds and peak memory in bytes."""
    command = [BIN / "moses-rnn-score", table, "--model", model, "-o", table.with_suffix(".out.gz")]
    started = time.perf_counter()
    process = subprocess.Popen([*command, "--force", "--allow-misfit", "-q"], stdout=subprocess.DEVNULL)  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"moses-rnn-score ended with status {status}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--most", type=int, default=1_000_000, help="lines of the largest table")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sizes = [10**n for n in range(3, 10) if 10**n <= given.most][-3:]
    best: dict[int, tuple[float, ...]] = {}
    with tempfile.TemporaryDirectory() as folder:
        tables = {lines: Path(folder) / f"{lines}.gz" for lines in (2, *sizes)}
        for lines, path in tables.items():
            write_table(path, lines)
        model = Path(folder) / "model"
        learn = [BIN / "moses-rnn-train", tables[sizes[0]], "--model", model, *SIZES]
        subprocess.run([*learn, "-q"], check=True, stderr=subprocess.DEVNULL)  # noqa: S603
        for _ in range(given.rounds):
            for lines, path in tables.items():
                found = run(path, model)
                best[lines] = tuple(map(min, best.get(lines, found), found))
    wall_0, cpu_0, _ = best.pop(2)
    print(f"start-up {wall_0:.2f} s ({cpu_0:.2f} s of CPU time), subtracted; best of {given.rounds} rounds")
    print(f"{'lines':>12}{'seconds':>10}{'lines/s':>12}{'CPU µs per line':>26}{'peak MiB':>10}")
    for lines, (wall, cpu, peak) in best.items():
        seconds, cpu_seconds = wall - wall_0, cpu - cpu_0
        per_second = f"{lines / seconds:,.0f}" if seconds > NOISE else "-"
        per_line = f"{cpu_seconds / lines * 1e6:.2f}" if cpu_seconds > NOISE else "-"
        print(f"{lines:>12,}{seconds:>10.2f}{per_second:>12}{per_line:>26}{peak / 2**20:>10.0f}")
    if given.json:
        given.json.write_text(json.dumps({"start_up": [wall_0, cpu_0], "wall_cpu_peak": best}, indent=2) + "\n")


if __name__ == "__main__":
    main()
