"""The limit of one driver: fake devices of a given speed score a table, in 1 … 64 threads or on a Ray cluster.

    python benchmarks/scaling.py PHRASE_TABLE [--speed 20000] [--workers 1,2,4,8,16,32,64] [--rounds 10] [--ray ADDRESS]

A fake device sleeps for as long as a real one would compute, so one machine shows how a driver feeds many devices. The
prediction is the slower of two rates: that of all devices together, and that of the driver alone (measured with devices
that need no time). The table is read again until each device has had --rounds chunks. Rates leave out the start of
processes; memory is that of this process.
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
from moses_rnn.score.workers import ScoredChunk, Threads, Workers, map_in_order
from moses_rnn.table.signatures import TableCounts
from moses_rnn.table.table_blocks import CHUNK_LINES, TableLines, chunks_between_sources, parse_blocks


@dataclass(frozen=True)
class FakeDevice:
    """Takes the time that a device would, and gives back what the table's writer needs, with nothing computed."""

    speed: float  # lines a second; 0: none is taken

    def begin(self) -> FakeDevice:
        """It needs nothing."""
        return self

    def __call__(self, chunk: TableLines) -> ScoredChunk:
        """Sleep."""
        if self.speed:
            time.sleep(len(chunk) / self.speed)
        return chunk.text, TableCounts(len(chunk), [0], [0], [-1.0], [-1.0])


def lines_of(table: str, count: int) -> Iterator[TableLines]:
    """So many lines at least, of the table again and again."""
    given = 0
    while True:
        before = given
        for block in parse_blocks(read_blocks(table), table):
            yield TableLines(block.text, block.spans, block.numbers + before, form=block.form)
            given = before + int(block.numbers[-1])
            if given >= count:
                return


def rate_of(table: str, count: int, workers: Workers[TableLines, ScoredChunk], speed: float = 0.0) -> float:
    """Lines a second, of so many, from when the workers have begun: one chunk's time before the first answer."""
    begun, lines = 0.0, 0
    with workers, Path("/dev/null").open("wb") as output:
        for chunk, (block, _) in map_in_order(chunks_between_sources(lines_of(table, count)), workers):
            begun = begun or time.monotonic() - (CHUNK_LINES / speed if speed else 0)
            output.write(block)
            lines += len(chunk)
    return lines / (time.monotonic() - begun)


def measure(given: argparse.Namespace, counts: Sequence[int | None]) -> dict[int, float]:
    """Rates of so many threads each; None: of a Ray cluster."""

    def workers(device: FakeDevice, count: int | None) -> Workers[TableLines, ScoredChunk]:
        return RayWorkers(device.begin, str, given.ray) if count is None else Threads([device] * count)

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
    """Print the table."""
    parser = make_parser(__doc__, rounds=10)
    parser.add_argument("--speed", type=float, default=20_000, help="of a device, in lines per second")
    parser.add_argument("--workers", default="1,2,4,8,16,32,64", help="how many threads")
    parser.add_argument("--ray", metavar="ADDRESS", help="of a cluster to measure too")
    given = parser.parse_args()
    threads = measure(given, list(map(int, given.workers.split(","))))
    write_json(given, threads=threads, ray=measure(given, [None]) if given.ray else {})


if __name__ == "__main__":
    main()
