"""How many devices one driver can feed: fake devices score a table, in 1 to 64 threads or on a Ray cluster.

    python benchmarks/scaling.py PHRASE_TABLE [--speed 20000] [--workers 1,2,4,8,16,32,64] [--rounds 10] [--ray ADDRESS]

A fake device sleeps for as long as a real one would compute, so one machine is enough. The predicted rate is the lower
one of all devices together and of the driver alone (measured with devices that take no time). The table is read again
until each device has had --rounds chunks. Rates leave out the start of processes; memory is that of this process.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages import make_parser, write_json

from moses_rnn.files.streams import read_blocks
from moses_rnn.score.ray_tasks import RayWorkers
from moses_rnn.score.workers import ScoredChunk, ThreadWorkers, Workers, map_in_order
from moses_rnn.table.signatures import TableCounts
from moses_rnn.table.table_blocks import CHUNK_LINES, TableLines, chunks_between_sources, parse_blocks


@dataclass(frozen=True)
class FakeDevice:
    """Takes the time of a real device but computes nothing."""

    speed: float  # lines per second; 0: takes no time

    def begin(self) -> FakeDevice:
        """Start on a worker of Ray."""
        return self

    def __call__(self, chunk: TableLines) -> ScoredChunk:
        """Sleep."""
        if self.speed:
            time.sleep(len(chunk) / self.speed)
        return chunk.text, TableCounts(len(chunk), [0], [0], [-1.0], [-1.0])


def lines_of(table: str, count: int) -> Iterator[TableLines]:
    """Yield the table again and again, until at least `count` lines are read."""
    given = 0
    while True:
        before = given
        for block in parse_blocks(read_blocks(table), table):
            yield TableLines(block.text, block.spans, block.numbers + before, form=block.form)
            given = before + int(block.numbers[-1])
            if given >= count:
                return


def rate_of(table: str, count: int, workers: Workers[TableLines, ScoredChunk], speed: float = 0.0) -> float:
    """Return the lines per second of `count` lines, from one chunk's time before the first result."""
    begun, lines = 0.0, 0
    with workers, Path("/dev/null").open("wb") as output:
        for chunk, (block, _) in map_in_order(chunks_between_sources(lines_of(table, count)), workers):
            begun = begun or time.monotonic() - (CHUNK_LINES / speed if speed else 0)
            output.write(block)
            lines += len(chunk)
    return lines / (time.monotonic() - begun)


def measure(given: argparse.Namespace, counts: Sequence[int | None]) -> dict[int, float]:
    """Return the rate for each number of threads; None is the Ray cluster."""

    def workers(device: FakeDevice, count: int | None) -> Workers[TableLines, ScoredChunk]:
        return RayWorkers(device.begin, str, given.ray) if count is None else ThreadWorkers([device] * count)

    driver = rate_of(given.table, 10 * given.rounds * CHUNK_LINES, workers(FakeDevice(0), counts[0] and 2))
    print(f"{'threads' if counts[0] else 'ray'}: the driver alone {driver:,.0f} lines/s, a device {given.speed:,.0f}")
    print(f"{'workers':>8}{'lines/s':>14}{'predicted':>14}{'off':>10}{'MiB':>10}")
    rates = {}
    for count in counts:
        working = workers(FakeDevice(given.speed), count)
        predicted = min(working.count * given.speed, driver)
        rate = rate_of(given.table, given.rounds * working.count * CHUNK_LINES, working, given.speed)
        mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"{working.count:>8,}{rate:>14,.0f}{predicted:>14,.0f}{rate / predicted - 1:>+10.0%}{mib:>10,}", flush=True
        )
        rates[working.count] = rate
    return rates


def main() -> None:
    """Measure threads, and the cluster if there is one."""
    parser = make_parser(__doc__, rounds=10)
    parser.add_argument("--speed", type=float, default=20_000, help="lines per second of a device")
    parser.add_argument("--workers", default="1,2,4,8,16,32,64", help="numbers of threads")
    parser.add_argument("--ray", metavar="ADDRESS", help="also measure this Ray cluster")
    given = parser.parse_args()
    threads = measure(given, list(map(int, given.workers.split(","))))
    write_json(given, threads=threads, ray=measure(given, [None]) if given.ray else {})


if __name__ == "__main__":
    main()
