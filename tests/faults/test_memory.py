"""Fault 35: memory does not grow with the table."""

import gzip
import random
import subprocess
import sys

import pytest

from tests.commands import program
from tests.faults.conftest import FULL

SMALL, LARGE = (10**5, 10**7) if FULL else (5 * 10**4, 2 * 10**5)
ROOM = 1.05 if FULL else 1.15  # a short run has not yet met its largest block


def write_table(path, lines):
    """Sources of one to three words, all different: nothing that is remembered of them could stay small."""
    draw = random.Random(5)
    with gzip.open(path, "wb", 1) as file:
        for first in range(0, lines, 1000):
            block = []
            for number in range(first, min(first + 1000, lines)):
                words = b" ".join(b"w%d" % draw.randrange(10**6) for _ in range(draw.randint(1, 3)))
                block.append(
                    b"s%d %s ||| %s ||| 0.5 0.25 1 0.125 ||| 0-0 ||| 1 1 1 ||| |||\n" % (number // 2, words, words)
                )
            file.write(b"".join(block))


# A process counts the memory of the one that started it (until its exec) as its own; this one is small.
MEASURE = """
import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss * 1024, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_bytes(folder, table):
    command = [*program("score"), table, "--model", "model", "--threads", "1", "--allow-misfit", "-q", "--force"]
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, *command], cwd=folder, check=True, capture_output=True, text=True
    )
    return int(done.stderr.split()[-1])


@pytest.mark.timeout(6000)
def test_memory_does_not_grow_with_the_table(folder):
    peaks = []
    for lines in (SMALL, LARGE):
        write_table(folder.path / "synthetic.gz", lines)
        peaks.append(peak_bytes(folder.path, "synthetic.gz"))
        (folder.path / "synthetic.gz").unlink()
    print(
        f"peak memory at {SMALL:,} lines {peaks[0]:,}, at {LARGE:,} lines {peaks[1]:,}: ratio {peaks[1] / peaks[0]:.3f}"
    )
    assert peaks[1] < ROOM * peaks[0]
