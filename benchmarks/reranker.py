"""Time of `moses-rnn reranker translate` relative to Moses alone: python benchmarks/reranker.py RERANKER TEXT.

Both decode the same lines with the same lists, one after the other. Loading is measured with an empty line, and taken
off. The processor's seconds count, so that other programs disturb less; seconds by the clock are shown too.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from moses_rnn.moses.decoding import Moses
from moses_rnn.nbest.reranker import Settings


def seconds_of(command: list[str], text: bytes, folder: Path) -> tuple[float, float]:
    """Run a command; return its seconds by the clock, and of the processor, its children's included."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    discarded = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, input=text, cwd=folder, check=True, **discarded)  # noqa: S603, a list of ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - started, sum(after[:2]) - sum(before[:2])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reranker", type=Path)
    parser.add_argument("text", type=Path)
    given = parser.parse_args()
    settings, threads = Settings.read(given.reranker), os.cpu_count() or 2
    text = given.text.read_bytes()
    lines = text.count(b"\n")
    translate = [sys.executable, "-m", "moses_rnn", "reranker", "translate", str(given.reranker.absolute())]
    commands = {
        "Moses alone": settings.decoder(threads).command(Moses.required()),
        "reranker": [*translate, "--threads", str(threads), "--quiet"],
    }
    folder, found = Path(settings.ini).parent, {}
    print("                 clock    CPU   ms a line (CPU)")
    for name, command in commands.items():
        loading, whole = (seconds_of(command, part, folder) for part in (b"\n", text))
        clock, processor = (max(a - b, 1e-9) for a, b in zip(whole, loading, strict=True))
        found[name] = clock, processor
        print(f"{name:<15} {clock:6.1f}s {processor:5.1f}s {1000 * processor / lines:8.1f}")
    ratios = (b / a for a, b in zip(*found.values(), strict=True))
    print("ratio           " + " ".join(f"{ratio:6.2f} " for ratio in ratios))


if __name__ == "__main__":
    main()
