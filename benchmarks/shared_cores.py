"""How much of their speed training and scoring keep while another process uses one of the cores.

    python benchmarks/shared_cores.py PHRASE_TABLE [--rounds 2] [--json FILE]

Each command estimates its rate (`--estimate`), in turn alone and beside a process that never stops computing; the best
of all rounds counts. On two cores, a command that lost one core would keep half.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from stages import make_parser, untrained, write_json

from moses_rnn.scorers.open import save_model
from moses_rnn.training.networks import PHRASES

BIN = Path(sys.executable).parent


def rate_of(program: str, *options: str) -> float:
    """Examples a second by a command's own estimate."""
    command = [BIN / program, *options, "--estimate"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return float(re.findall(r"([\d,]+) \w+/s here", done.stdout)[0].replace(",", ""))


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """Another process that always wants a core."""
    process = subprocess.Popen([sys.executable, "-c", "while True: sum(range(100_000))"])
    time.sleep(1)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Print the table."""
    parser = make_parser(__doc__, rounds=2)
    parser.add_argument("--preset", choices=PHRASES, default="small")
    given = parser.parse_args()
    rates: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / "model", untrained(given.table, given.preset))
        score = ["moses-rnn-score", given.table, "--model", f"{folder}/model", "--allow-misfit", "--precision"]
        commands = {
            f"moses-rnn-train --preset {given.preset}": ["moses-rnn-train", given.table, "--preset", given.preset],
            **{f"moses-rnn-score --precision {kind}": [*score, kind] for kind in ("fp32", "bf16")},
        }
        for _ in range(given.rounds):
            for name, command in commands.items():
                for when, beside in {"quiet": contextlib.nullcontext, "shared": neighbour}.items():
                    with beside():
                        found = rates.setdefault(name, {})
                        found[when] = max(found.get(when, 0.0), rate_of(*command))
    print(f"{'examples per second':<40}{'quiet':>10}{'one core taken':>16}{'kept':>8}")
    for name, found in rates.items():
        quiet, shared = found.values()
        print(f"{name:<40}{quiet:>10,.0f}{shared:>16,.0f}{shared / quiet:>8.0%}")
    write_json(given, lines=rates)


if __name__ == "__main__":
    main()
