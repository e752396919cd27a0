"""A real Ray cluster of two nodes on this machine: the same results, whatever dies."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from moses_rnn.errors import FormatError, MosesRnnError
from moses_rnn.score import ray_tasks
from moses_rnn.score.ray_tasks import RayWorkers
from moses_rnn.score.workers import map_in_order
from tests.commands import ROOT, run
from tests.score.ray_cluster import Cluster

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        yield made


def worked(begin, cluster, count):
    with RayWorkers(begin, "item {}".format, cluster.address) as workers:
        return list(map_in_order(range(count), workers))


def doubling(folder=None, seconds=0.0, dies_at=None, always=False):
    """What a worker begins: it doubles numbers. One worker dies at an item, or all do."""

    def work(item):
        time.sleep(seconds)
        if item == dies_at and (always or not (folder / "died").exists()):
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * item

    return work


def failing(error, at):
    if at is None:
        raise error

    def work(item):
        if item == at:
            raise error

    return work


def test_a_cluster_writes_what_threads_write(here, models, cluster):
    command = ["score", "table", "--model", models / "rnn", "-q", "-o"]
    run(*command, "threads", cwd=here)
    done = run(*command, "ray", "--ray", cluster.address, cwd=here)
    assert (here / "ray").read_bytes() == (here / "threads").read_bytes()
    assert "Ray" not in done.stderr


@pytest.mark.release  # Ray is slow to replace a worker
def test_a_killed_workers_work_is_done_by_another(cluster, tmp_path):
    assert worked(partial(doubling, tmp_path, dies_at=7), cluster, 30) == [(i, 2 * i) for i in range(30)]
    assert (tmp_path / "died").exists()


@pytest.mark.release
def test_an_item_that_kills_every_worker_is_named(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_tasks, "MOST_RETRIES", 1)
    with pytest.raises(
        MosesRnnError, match="item 3: expected the cluster to finish this work, found WorkerCrashedError"
    ):
        worked(partial(doubling, tmp_path, dies_at=3, always=True), cluster, 9)


@pytest.mark.release  # Ray takes long over what fails
@pytest.mark.parametrize("at", [None, 2])
def test_errors_come_back_as_they_were_raised(cluster, at):
    error = FormatError("t", 5, "this", "that", "Advice.")
    with pytest.raises(FormatError) as raised:
        worked(partial(failing, error, at), cluster, 5)
    assert (str(raised.value), raised.value.line) == (str(error), 5)


@pytest.mark.release  # Ray needs a minute to notice
def test_a_node_that_dies_takes_nothing_with_it(cluster):
    node = cluster.add_node()
    with RayWorkers(partial(doubling, seconds=0.05), str, cluster.address) as workers:
        results = map_in_order(range(60), workers)
        begun = [next(results) for _ in range(10)]
        cluster.kill(node)
        assert begun + list(results) == [(i, 2 * i) for i in range(60)]


def run_alone(program, *arguments, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


OF_ONE_RUN = """
import os
from pathlib import Path
from moses_rnn.score.ray_tasks import RayWorkers
from moses_rnn.score.workers import map_in_order
from tests.score.ray_cluster import descendants


def listening(pid):
    sockets = {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, place, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in sockets:
                yield place.partition(":")[0][-8:]


with RayWorkers(lambda: lambda item: 2 * item, str, "local") as workers:
    assert list(map_in_order(range(9), workers)) == [(i, 2 * i) for i in range(9)]
    places = [place for pid in [os.getpid(), *descendants(os.getpid())] for place in listening(pid)]
    folder = Path(workers._folder.name)
    assert folder.is_dir()
print(len(places) > 4, {*places}, folder.exists())
"""


def test_a_cluster_of_one_run_listens_at_this_machine_alone_and_leaves_nothing(tmp_path):
    done = run_alone(OF_ONE_RUN, HOME=str(tmp_path)).communicate(timeout=300)
    assert done == ("True {'0100007F'} False\n", "")  # 127.0.0.1, of IPv4 or mapped to IPv6
    assert not list(tmp_path.iterdir())


def test_no_cluster_at_an_address():
    program = "from moses_rnn.score.ray_tasks import RayWorkers; RayWorkers(lambda: str, str, '127.0.0.1:1')"
    _, messages = run_alone(program, RAY_gcs_rpc_server_reconnect_timeout_s="1").communicate(timeout=300)
    assert "--ray 127.0.0.1:1: expected a Ray cluster at that address, found" in messages
