"""A real Ray cluster of two nodes on this machine: the same results, whatever dies."""

import os
import re
import signal
import subprocess
import sys

import pytest

from moses_rnn.errors import FormatError, MosesRnnError
from moses_rnn.score.ray_tasks import RayWorkers
from moses_rnn.score.workers import map_in_order
from tests.commands import ROOT
from tests.score.ray_cluster import Cluster, command_of, descendants
from tests.score.ray_jobs import Doubling, Dying, Failing

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        yield made


def doubled(job, cluster, count):
    with RayWorkers(job, cluster.address) as workers:
        return list(map_in_order(range(count), workers))


def test_workers_of_two_nodes_answer_in_order(cluster, tmp_path):
    assert doubled(Doubling(str(tmp_path), 0.01), cluster, 40) == [(i, 2 * i) for i in range(40)]
    begun = [file.read_text() for file in tmp_path.iterdir()]
    assert begun == ["cpu"] * len(begun)  # each process opens its job once
    assert len(begun) < 10


def test_a_killed_workers_work_is_done_by_another(cluster, tmp_path):
    assert doubled(Dying(str(tmp_path), over=7), cluster, 30) == [(i, 2 * i) for i in range(30)]
    assert (tmp_path / "died").exists()


def test_an_item_that_kills_every_worker_is_named(cluster, tmp_path):
    with pytest.raises(MosesRnnError, match="item 3: expected the cluster to finish it, found WorkerCrashedError"):
        doubled(Dying(str(tmp_path), over=3, always=True), cluster, 9)


@pytest.mark.parametrize("at", [None, 2])
def test_errors_come_back_as_they_were_raised(cluster, at):
    error = FormatError("t", 5, "this", "that", "Advice.")
    with pytest.raises(FormatError) as raised:
        doubled(Failing(error=error, at=at), cluster, 5)
    assert (str(raised.value), raised.value.line) == (str(error), 5)


def test_a_node_that_dies_takes_nothing_with_it(cluster):
    node = cluster.add_node()
    with RayWorkers(Doubling(seconds=0.05), cluster.address) as workers:
        results = map_in_order(range(60), workers)
        begun = [next(results) for _ in range(10)]
        cluster.kill(node)
        assert begun + list(results) == [(i, 2 * i) for i in range(60)]


def run_alone(program, **environment):
    """A driver in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


ON_A_CLUSTER = """
import sys
from moses_rnn.score.ray_tasks import RayWorkers
from moses_rnn.score.workers import map_in_order
from tests.score.ray_jobs import Doubling
with RayWorkers(Doubling(seconds=0.05), sys.argv[1]) as workers:
    for item, _ in map_in_order(range(1000), workers):
        print(item, flush=True)
"""


@pytest.mark.release
def test_a_driver_whose_own_node_dies_ends():
    with Cluster() as cluster:
        command = [sys.executable, "-c", ON_A_CLUSTER, cluster.address]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        driver = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while driver.stdout.readline() != "5\n":
            assert driver.poll() is None
        for pid in descendants(cluster.nodes[0].pid):
            if b"raylet/raylet" in command_of(pid):
                os.kill(pid, signal.SIGKILL)
        _, messages = driver.communicate(timeout=120)
    assert driver.returncode == 1
    assert re.search("found LocalRayletDiedError|Raylet is terminated|The program will terminate", messages)


OF_ONE_RUN = """
import os, socket
from pathlib import Path
from moses_rnn.score.ray_tasks import RayWorkers
from moses_rnn.score.workers import map_in_order
from tests.score.ray_jobs import Doubling


def children(pid):
    found = [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if parent(stat) == pid]
    return [*found, *(each for child in found for each in children(child))]


def parent(stat):
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def listening(pid):
    sockets = {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, place, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in sockets:
                yield place.partition(":")[0][-8:]


with RayWorkers(Doubling(), "local") as workers:
    assert list(map_in_order(range(9), workers)) == [(i, 2 * i) for i in range(9)]
    places = [place for pid in [os.getpid(), *children(os.getpid())] for place in listening(pid)]
    folder = Path(workers._folder.name)
    assert folder.is_dir()
print(len(places) > 4, {*places}, folder.exists())
"""


def test_a_cluster_of_one_run_listens_at_this_machine_alone_and_leaves_nothing(tmp_path):
    """It says nothing either."""
    done = run_alone(OF_ONE_RUN, HOME=str(tmp_path))
    assert (done.stdout, done.stderr) == ("True {'0100007F'} False\n", "")  # 127.0.0.1, of IPv4 or mapped to IPv6
    assert not list(tmp_path.iterdir())


def test_no_cluster_at_an_address():
    done = run_alone(
        "from moses_rnn.score.ray_tasks import RayWorkers\n"
        "from tests.score.ray_jobs import Doubling\n"
        "RayWorkers(Doubling(), '127.0.0.1:1')\n",
        RAY_gcs_rpc_server_reconnect_timeout_s="1",
    )
    assert "--ray 127.0.0.1:1: expected a Ray cluster at that address, found" in done.stderr
