"""How far one driver reaches: fake devices of a stated speed score a table in a pool, 1 … 64 of them.

    python benchmarks/scaling.py PHRASE_TABLE [--speed 20000] [--workers 1,2,4,8,16,32,64] [--rounds 10] [--ray ADDRESS]

A fake device sleeps for as long as a device of that speed would take: so one machine shows how a driver feeds many.
Predicted is the slower of two: the devices together, and the driver alone, measured with devices that need no time. The
table is read again and again until each device has had so many chunks (--rounds). Rates are of whole runs but for the
start of processes; memory is this process's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stages import FakeDevice

from moses_rnn.files.streams import read_blocks
from moses_rnn.formats.census import Census
from moses_rnn.formats.table_blocks import TableLines, parse_blocks
from moses_rnn.pools.base import Pool
from moses_rnn.pools.processes import ProcessPool
from moses_rnn.pools.ray_actors import RayPool
from moses_rnn.pools.threads import ThreadPool
from moses_rnn.scoring.phrase_tables import CHUNK_LINES, ScoringReport, scored_table
from moses_rnn.scoring.workers import Chunk, ScoredChunk


@dataclass
class Run:
    """Rates and memory of a run, and what was predicted of it."""

    workers: int
    rate: float
    predicted: float
    memory: int = field(default_factory=lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)  # MiB

    def __str__(self) -> str:
        off = self.rate / self.predicted - 1
        return f"{self.workers:>8,}{self.rate:>14,.0f}{self.predicted:>14,.0f}{off:>+10.0%}{self.memory:>10,}"


def lines_of(table: str, count: int) -> Iterator[TableLines]:
    """So many lines at least, of the table again and again."""
    given = 0
    for number in itertools.count():
        for block in parse_blocks(read_blocks(table), table):
            yield TableLines(block.text, block.places, block.numbers + given, form=block.form)
            if given + int(block.numbers[-1]) >= count:
                return
        given += int(block.numbers[-1])
        assert number < count


def rate_of(table: str, count: int, pool: Pool[Chunk, ScoredChunk], speed: float = 0.0) -> float:
    """Lines a second, of so many, from when the workers have begun: one chunk's time before the first answer."""
    report = ScoringReport()
    begun = 0.0
    with pool, Path("/dev/null").open("wb") as output:
        for block in scored_table(lines_of(table, count), pool, report, Census(table)):
            begun = begun or time.monotonic() - (CHUNK_LINES / speed if speed else 0)
            output.write(block)
    return report.lines / (time.monotonic() - begun)


def pool_of(kind: str, device: FakeDevice, workers: int, cluster: str | None) -> Pool[Chunk, ScoredChunk]:
    """Threads, processes, or actors of a Ray cluster."""
    if kind == "threads":
        return ThreadPool([device] * workers)
    if kind == "ray" and cluster is not None:
        return RayPool(device, cluster, workers=workers)
    return ProcessPool(device, ["cpu"] * workers)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--speed", type=float, default=20_000, help="of a device, lines a second")
    parser.add_argument("--workers", default="1,2,4,8,16,32,64")
    parser.add_argument("--rounds", type=int, default=10, help="chunks for each device")
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="of a cluster whose actors work too; it finds benchmarks/stages.py"
    )
    parser.add_argument("--json", type=Path, help="where to write the rates to")
    given = parser.parse_args()
    runs: dict[str, list[Run]] = {}
    kinds = {"threads": 64, "processes": 8, "ray": 8}  # more processes would measure this machine's memory
    for kind, most in kinds.items() if given.ray else itertools.islice(kinds.items(), 2):
        chunks = 10 * given.rounds
        driver = rate_of(given.table, chunks * CHUNK_LINES, pool_of(kind, FakeDevice(0), 2, given.ray))
        print(f"{kind}: the driver alone {driver:,.0f} lines/s, a device {given.speed:,.0f}")
        print(f"{'workers':>8}{'lines/s':>14}{'predicted':>14}{'off':>10}{'MiB':>10}")
        for workers in filter(lambda n: n <= most, map(int, given.workers.split(","))):
            predicted = min(workers * given.speed, driver)
            pool = pool_of(kind, FakeDevice(given.speed), workers, given.ray)
            rate = rate_of(given.table, given.rounds * workers * CHUNK_LINES, pool, given.speed)
            runs.setdefault(kind, []).append(Run(workers, rate, predicted))
            print(runs[kind][-1], flush=True)
    if given.json:
        given.json.write_text(json.dumps({kind: list(map(asdict, of_kind)) for kind, of_kind in runs.items()}))


if __name__ == "__main__":
    main()
