"""Workers of a Ray cluster (the extra ``ray``). Each item is a task, which Ray retries if its worker dies."""

from __future__ import annotations

import importlib
import os
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Self, TypeVar, cast

from moses_rnn.errors import MosesRnnError

Item = TypeVar("Item")
Result = TypeVar("Result")
LOCAL = "local"
MOST_RETRIES = 3  # per item, when its worker dies
SECONDS_TO_CONNECT = 10.0
# Environment of a cluster for this run only; Ray reads it on import. The cluster listens on 127.0.0.1 only, and its
# own token keeps other users out, without a notice or a file in the home folder.
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


_begun: list[Callable[[Any], Any]] = []  # what a worker process has begun; it serves a single run


def _work(begin: Callable[[], Callable[[Item], Result]], item: Item) -> tuple[Result | None, Exception | None]:
    """Return the result, or the error as it was raised: Ray would wrap it."""
    try:
        if not _begun:
            _begun.append(begin())
        return _begun[0](item), None
    except Exception as error:
        return None, error


class RayWorkers(Generic[Item, Result]):
    """One worker for each GPU of the cluster, or for each CPU if the device is the CPU.

    Each worker process calls `begin` once, to open models, and then its result for each item. `begin` is pickled. All
    nodes must see its files under the same paths. `name_of` names an item in messages. `address` is the cluster's;
    "auto" finds the one running here, "local" starts one for this run only. `device` is "cpu" or "cuda".
    """

    def __init__(
        self,
        begin: Callable[[], Callable[[Item], Result]],
        name_of: Callable[[Item], str],
        address: str,
        device: str = "cpu",
    ) -> None:
        self._ray = ray = _import_ray(address)
        self._name_of = name_of
        self._folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)  # of a local cluster
        self._connect(address)
        kind = "CPU" if device == "cpu" else "GPU"
        self.count = int(ray.cluster_resources().get(kind, 0))
        if not self.count:
            raise MosesRnnError(f"--ray {address}: expected a cluster with {kind}s, found none")
        # Without max_calls=0, a GPU worker would exit after each item
        options = {"num_cpus": 1, "num_gpus": int(kind == "GPU"), "max_calls": 0, "max_retries": MOST_RETRIES}
        self._task = ray.remote(**options)(_work)
        self._begin = ray.put(begin)

    def _connect(self, address: str) -> None:
        options = {"include_dashboard": False, "_temp_dir": self._folder.name} if address == LOCAL else {}
        is_main = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGTERM)
        try:
            _check_reachable(address)
            self._ray.init(address=address, log_to_driver=False, configure_logging=False, **options)
            if is_main:
                signal.signal(signal.SIGTERM, handler)  # Ray has put its own in place
        except Exception as error:  # of many classes
            raise MosesRnnError(
                f"--ray {address}: expected a Ray cluster at that address, found {type(error).__name__}: {error}",
                advice="`ray start --head` starts one; --ray local starts one for this run only.",
            ) from error

    def submit(self, item: Item) -> Callable[[], Result]:
        """Hand an item to the cluster."""
        return partial(self._result, self._task.remote(self._begin, item), item)

    def _result(self, task: object, item: Item) -> Result:
        """Wait for a task; raise its error, or a MosesRnnError that names the item that the cluster gave up."""
        try:
            result, error = self._ray.get(task)
        except self._ray.exceptions.RayError as death:
            found = f"{type(death).__name__}: {death}".splitlines()[0]
            raise MosesRnnError(
                f"{self._name_of(item)}: expected the cluster to finish this work, found {found}",
                advice=f"Ray retries {MOST_RETRIES} times when a worker dies. Did it run out of memory? "
                "`ray start --num-cpus` with a lower number starts fewer workers.",
            ) from death
        if error is not None:
            raise error
        return cast(Result, result)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect from the cluster, or stop it if it was started for this run."""
        self._ray.shutdown()
        self._folder.cleanup()


def _import_ray(address: str) -> Any:
    """Import Ray with usage statistics off and a limit on retries after out-of-memory errors."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_task_oom_retries", str(MOST_RETRIES))
    if address == LOCAL:
        os.environ.update(ALONE)
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MosesRnnError(
            "--ray: expected Ray, found no such package", advice="pip install 'moses-rnn[ray]' installs it."
        ) from error


def _check_reachable(address: str) -> None:
    """Raise OSError if nothing listens at host:port: Ray would exit the process."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in address:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT).close()
