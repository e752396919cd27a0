"""Worker processes that are killed, and drivers that are: the same bytes in the end."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from tests.cli.scored import LONG, start_and_wait_for_blocks
from tests.commands import program


def children_of(pid):
    """The worker processes of a driver, without multiprocessing's own tracker."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(c) for c in listed if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
    except OSError:
        return []


def test_workers_are_killed_again_and_again(long_table):
    command = [program("score"), *LONG, "--processes", "2", "--no-native"]
    journal, choose, at_kills = long_table / ".long.rnn.gz.journal", random.Random(1), [-2]
    with subprocess.Popen(command, cwd=long_table, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as driver:
        while driver.poll() is None:
            time.sleep(0.01)
            done = journal.read_bytes().count(b'"block"') if journal.exists() else 0
            if done >= at_kills[-1] + 3 and (workers := children_of(driver.pid)):
                os.kill(choose.choice(workers), signal.SIGKILL)
                at_kills.append(done)
        assert driver.returncode == 0, driver.stderr.read()
    assert len(at_kills) > 3
    assert (long_table / "long.rnn.gz").read_bytes() == torch_bytes(long_table)


def torch_bytes(here):
    """What threads of torch write."""
    options = ["-o", "torch.gz", "--output-ini", "torch.ini", "--no-native", "--threads", "2"]
    subprocess.run([program("score"), *LONG, *options], cwd=here, check=True, capture_output=True)
    return (here / "torch.gz").read_bytes()


def test_a_killed_driver_resumes_and_its_workers_are_gone(long_table):
    process = start_and_wait_for_blocks(long_table, 2, "--processes", "2")
    workers = children_of(process.pid)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    again = [program("score"), *LONG, "--processes", "1", "--resume"]
    subprocess.run(again, cwd=long_table, check=True, capture_output=True)
    assert (long_table / "long.rnn.gz").read_bytes() == (long_table / "whole.gz").read_bytes()
