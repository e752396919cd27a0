"""A Ray cluster of this machine, as `ray start` makes it: nodes of one processor each."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.commands import ROOT

RAY = Path(sys.executable).with_name("ray")


class Cluster:
    """A context; `address` is what --ray takes, `nodes` are processes with the raylets and workers as children."""

    def __init__(self, nodes=2):
        self._folder = tempfile.mkdtemp(prefix="ray-")  # sockets need short names
        self._environment = {
            **os.environ,
            "RAY_TMPDIR": self._folder,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",
        }
        self._environment["PYTHONPATH"] = str(ROOT)  # where workers find the tests' jobs
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.nodes = [self._start("--head", f"--port={port}", "--include-dashboard=false")]
        for _ in range(nodes - 1):
            self.add_node()

    def add_node(self):
        node = self._start(f"--address={self.address}")
        self.nodes.append(node)
        return node

    def _start(self, *options):
        ours = ["--block", "--num-cpus=1", "--object-store-memory=200000000", "--node-ip-address=127.0.0.1"]
        output = subprocess.PIPE
        node = subprocess.Popen([RAY, "start", *options, *ours], env=self._environment, stdout=output, stderr=output)
        for line in node.stdout:
            if b"Ray runtime started" in line:
                return node
        raise AssertionError(node.stderr.read().decode())

    def workers(self):
        """Process ids of the workers that are at an item."""
        return [pid for node in self.nodes for pid in descendants(node.pid) if b"ray::_work" in command_of(pid)]

    def kill(self, node):
        """Kill a node with all that it runs."""
        for pid in [*descendants(node.pid), node.pid]:
            subprocess.run(["kill", "-9", str(pid)], check=False, stderr=subprocess.DEVNULL)
        node.communicate()
        self.nodes.remove(node)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in reversed(self.nodes[:]):
            self.kill(node)
        shutil.rmtree(self._folder, ignore_errors=True)


def descendants(pid):
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [*children, *(each for child in children for each in descendants(child))]


def command_of(pid):
    """The command line of a process; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found
