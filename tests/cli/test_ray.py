"""Commands on a real Ray cluster of two nodes: the bytes of threads, whatever is killed."""

import os
import random
import signal
import subprocess

import pytest

from tests.cli.scored import LONG
from tests.commands import program, run, saved_lines
from tests.score.ray_cluster import Cluster, wait_until

pytest.importorskip("ray")
pytestmark = pytest.mark.timeout(1200)
DRIVERS = 4


@pytest.mark.slow
def test_workers_and_drivers_are_killed_twenty_times(long_table, monkeypatch):
    monkeypatch.setenv("MOSES_RNN_NATIVE", "0")
    here = long_table
    with Cluster() as cluster:
        command = [*program("score"), *LONG, "-q", "--resume", "--ray", cluster.address]
        kills = [kill for _ in range(DRIVERS) for kill in killed(command, here, cluster)]
        assert len(kills) == 20
        again = subprocess.run(command, cwd=here, capture_output=True, check=False)
    assert again.returncode == 0, again.stderr.decode()
    threads = ["-q", "-o", "threads.gz", "--output-ini", "threads.ini", "--threads", "2"]
    run("score", *LONG, *threads, cwd=here, env=dict(os.environ))
    assert (here / "long.rnn.gz").read_bytes() == (here / "threads.gz").read_bytes()


def killed(command, here, cluster):
    """The processes that are killed while a driver works: four workers, and it."""
    before = saved_lines(here / "long.rnn.gz")
    with subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as driver:
        for _ in range(4):
            worker = random.choice(wait_until(cluster.workers))
            os.kill(worker, signal.SIGKILL)
            yield worker
        wait_until(lambda: saved_lines(here / "long.rnn.gz") > before)
        assert driver.poll() is None, driver.stderr.read().decode()
        driver.kill()
        yield driver.pid
    wait_until(lambda: not cluster.workers())  # they end with it


@pytest.mark.slow
def test_sigterm_stops_a_run_that_can_be_resumed(long_table, monkeypatch):
    monkeypatch.setenv("MOSES_RNN_NATIVE", "0")
    command = [*program("score"), *LONG, "-q", "--resume", "--ray", "local"]
    with subprocess.Popen(command, cwd=long_table, stderr=subprocess.PIPE, text=True) as running:
        wait_until(lambda: saved_lines(long_table / "long.rnn.gz") > 0)
        running.terminate()
        assert running.wait() == 75, running.stderr.read()
