"""A real Ray cluster of two nodes on this machine: the same results, whatever dies."""

import os
import subprocess
import sys

import pytest

from moses_rnn.errors import FormatError, MosesRnnError
from moses_rnn.pools.base import MOST_TRIES, in_order
from moses_rnn.pools.ray_actors import RayPool, import_ray
from tests.commands import ROOT
from tests.pools.jobs import Doubling, Dying, DyingOverEach, Failing

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one processor each; the second one can be removed and comes back."""
    os.environ["PYTHONPATH"] = str(ROOT)  # where actors find the tests' jobs
    ray = import_ray()
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    yield made
    ray.shutdown()
    made.shutdown()


def test_actors_of_two_nodes_answer_in_order(cluster, tmp_path):
    with RayPool(Doubling(str(tmp_path), 0.01), cluster.address) as pool:
        assert pool.window == 4
        assert list(in_order(range(40), pool, str)) == [(i, 2 * i) for i in range(40)]
    assert len(list(tmp_path.iterdir())) == 2  # each began its job once


def test_a_killed_actors_work_is_done_by_another(cluster, tmp_path):
    with RayPool(Dying(7, str(tmp_path)), cluster.address) as pool:
        assert list(in_order(range(30), pool, str)) == [(i, 2 * i) for i in range(30)]
    assert (tmp_path / "died").exists()


def test_an_item_that_kills_every_actor_is_named(cluster, tmp_path):
    with (
        RayPool(Dying(3, str(tmp_path), always=True), cluster.address) as pool,
        pytest.raises(MosesRnnError, match="item 3: expected a worker to finish it, found that 3 died over it"),
    ):
        list(in_order(range(9), pool, lambda item: f"item {item}"))


def test_deaths_over_other_items_do_not_count_for_those_that_wait(cluster, tmp_path):
    with RayPool(DyingOverEach(MOST_TRIES - 1, str(tmp_path)), cluster.address, workers=1) as pool:
        assert list(in_order(range(3), pool, str)) == [(i, 2 * i) for i in range(3)]


def test_errors_come_back_as_they_were_raised(cluster):
    error = FormatError("t", 5, "this", "that", "Advice.")
    with RayPool(Failing(error, 2), cluster.address) as pool, pytest.raises(FormatError) as raised:
        list(in_order(range(5), pool, str))
    assert (str(raised.value), raised.value.line) == (str(error), 5)


def test_a_node_that_dies_takes_nothing_with_it(cluster):
    node = cluster.add_node(num_cpus=1)
    with RayPool(Doubling(seconds=0.05), cluster.address, workers=3) as pool:
        results = in_order(range(60), pool, str)
        begun = [next(results) for _ in range(10)]
        cluster.remove_node(node, allow_graceful=False)
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


@pytest.mark.release
def test_a_driver_whose_own_node_dies_ends():
    done = run_alone(
        "from ray.cluster_utils import Cluster\n"
        "from moses_rnn.pools.base import MOST_TRIES, in_order\n"
        "from moses_rnn.pools.ray_actors import RayPool\n"
        "from tests.pools.jobs import Doubling\n"
        "made = Cluster(initialize_head=True, head_node_args={'num_cpus': 1, 'include_dashboard': False})\n"
        "made.add_node(num_cpus=1)\n"
        "with RayPool(Doubling(seconds=0.05), made.address) as pool:\n"
        "    results = in_order(range(1000), pool, str)\n"
        "    begun = [next(results) for _ in range(5)]\n"
        "    made.head_node.kill_raylet()\n"
        "    list(results)\n"
    )
    assert done.returncode == 1
    assert (
        "--ray: expected a living node on this machine, through which results come, found that it died" in done.stderr
    )


OF_ONE_RUN = """
import os, socket
from pathlib import Path
from moses_rnn.pools.base import in_order
from moses_rnn.pools.ray_actors import RayPool
from tests.pools.jobs import Doubling


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


with RayPool(Doubling(), "local", workers=2) as pool:
    assert list(in_order(range(9), pool, str)) == [(i, 2 * i) for i in range(9)]
    places = [place for pid in [os.getpid(), *children(os.getpid())] for place in listening(pid)]
    folder = Path(pool._folder.name)
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
        "from moses_rnn.pools.ray_actors import RayPool\n"
        "from tests.pools.jobs import Doubling\n"
        "RayPool(Doubling(), '127.0.0.1:1')\n",
        RAY_gcs_rpc_server_reconnect_timeout_s="1",
    )
    assert "--ray 127.0.0.1:1: expected a Ray cluster at that address, found" in done.stderr
