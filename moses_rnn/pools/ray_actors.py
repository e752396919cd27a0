"""Actors of a Ray cluster (the extra ``ray``): chunks go out through its object store, and come back in order.

Ray's own retries are off: a chunk whose actor died goes to another actor at once, and the dead one's successor joins
when the cluster has room for it, so that a lost node slows a run and does not hang it. The driver's journal is what
survives the driver.
"""

from __future__ import annotations

import importlib
import os
import secrets
import socket
import tempfile
import time
from concurrent.futures import Future
from typing import Any, Generic, Self, cast

from moses_rnn.errors import MosesRnnError
from moses_rnn.pools.base import ITEMS_AHEAD, Item, Job, NotBegun, Result
from moses_rnn.pools.executors import do

SECONDS_TO_CONNECT = 10.0
SECONDS_BETWEEN_LOOKS_AT_NODES = 5.0
MOST_SECONDS_WITHOUT_ACTORS = 600.0  # a cluster that grows by itself needs minutes for a node


LOCAL = "local"
# Of a cluster that is nobody else's, read by Ray when it is imported: it listens at 127.0.0.1 alone; a token of its own
# keeps other users out, and no notice or file in the home folder tells of it
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def import_ray(address: str = "auto") -> Any:  # noqa: ANN401: a library that may not be there
    """Ray, which sends no usage statistics from here.

    Args:
        address: of the cluster, see `RayPool`.

    Raises:
        MosesRnnError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == LOCAL:
        os.environ.update(ALONE)
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MosesRnnError(
            "--ray: expected Ray to be installed, found none", advice="pip install 'moses_rnn[ray]' installs it."
        ) from error


class _Worker:
    """What an actor is."""

    def work(self, job: Job[Any, Any], place: str, item: object) -> tuple[object, Exception | None]:
        """The result, or the error as it was raised: Ray would wrap it."""
        try:
            return do(job, place, item), None
        except Exception as error:  # noqa: BLE001: raised again by the driver
            return None, error


class RayPool(Generic[Item, Result]):
    """Actors with one processor each, and one GPU if they compute on GPUs.

    Args:
        job: what is done to items; the nodes see its files under the same paths.
        address: of the cluster; "auto": the one that runs here, "local": one that is started for this run alone.
        place: the device of each actor, of those that it sees.
        workers: how many actors; None: one for each GPU, or else processor, of the cluster.

    Raises:
        MosesRnnError: Ray is not installed, there is no such cluster, or it has nothing that could work.
    """

    def __init__(
        self, job: Job[Item, Result], address: str = "auto", place: str = "cpu", *, workers: int | None = None
    ) -> None:
        self._ray = import_ray(address)
        self._job, self._place = job, place
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._connect(address)
        self._node = self._ray.get_runtime_context().get_node_id()
        self._next_look = 0.0
        on_gpus = place.startswith("cuda")
        count = workers or int(self._ray.cluster_resources().get("GPU" if on_gpus else "CPU", 0))
        if not count:
            raise MosesRnnError(f"--ray {address}: expected a cluster with {'GPUs' if on_gpus else 'CPUs'}, found none")
        self.deaths: tuple[type[BaseException], ...] = (
            self._ray.exceptions.RayActorError,
            self._ray.exceptions.ObjectLostError,
            NotBegun,
        )
        self.window = count * ITEMS_AHEAD
        self._make = self._ray.remote(num_cpus=1, num_gpus=int(on_gpus), max_restarts=0)(_Worker)
        self._actors = [self._start() for _ in range(count)]

    def _connect(self, address: str) -> None:
        options: dict[str, object] = {}
        if address == LOCAL:
            self._folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)  # gone with the pool
            options = {"include_dashboard": False, "_temp_dir": self._folder.name}
        try:
            _check_reachable(address)
            self._ray.init(address=address, log_to_driver=False, configure_logging=False, **options)
        except Exception as error:  # of many classes
            raise MosesRnnError(
                f"--ray {address}: expected a Ray cluster at that address, found {type(error).__name__}: {error}",
                advice="`ray start --head` starts one; --ray local starts one for this run alone.",
            ) from error

    def _start(self) -> _Actor:
        handle = self._make.remote()
        return _Actor(handle, handle.__ray_ready__.remote())

    def submit(self, item: Item) -> Future[Result]:
        """Hand an item to the living actor that has least to do."""
        actor = min(self._living(), key=lambda actor: len(actor.unanswered))
        answer: Future[Result] = Future()

        def take_over(answered: Future[tuple[Result, Exception | None]]) -> None:
            death = answered.exception()
            if isinstance(death, self.deaths):
                actor.dead = True
                if actor.unanswered[0] is not answer:
                    death = NotBegun(str(death))
            else:
                actor.unanswered.remove(answer)
            result, error = (None, death) if death else answered.result()
            if not answer.cancelled():
                answer.set_exception(error) if error else answer.set_result(cast(Result, result))

        actor.unanswered.append(answer)
        actor.handle.work.remote(self._job, self._place, item).future().add_done_callback(take_over)
        return answer

    def _living(self) -> list[_Actor]:
        """Actors that are ready; waits for one if there is none, and starts successors of dead ones."""
        deadline = time.monotonic() + MOST_SECONDS_WITHOUT_ACTORS
        while True:
            self.check()
            for i, actor in enumerate(self._actors):
                if actor.dead:
                    self._ray.kill(actor.handle)  # may live, out of reach
                    self._actors[i] = self._start()
            starting = [actor for actor in self._actors if not actor.ready]
            alone = len(starting) == len(self._actors)
            begun, _ = (
                self._ray.wait(
                    [actor.begun for actor in starting], num_returns=len(starting), timeout=1.0 if alone else 0
                )
                if starting
                else ([], [])
            )
            for actor in starting:
                if actor.begun in begun:
                    self._look(actor)
            if living := [actor for actor in self._actors if actor.ready and not actor.dead]:
                return living
            if time.monotonic() > deadline:
                raise MosesRnnError(
                    f"--ray: expected an actor within {MOST_SECONDS_WITHOUT_ACTORS / 60:.0f} minutes, found none ready",
                    advice="Has the cluster processors that nobody else holds? `ray status` says.",
                )

    def _look(self, actor: _Actor) -> None:
        try:
            self._ray.get(actor.begun)
            actor.ready = True
        except self.deaths:
            actor.dead = True

    def check(self) -> None:
        """Raise MosesRnnError if this node died: nothing comes back to it, and nothing says so.

        An actor that died says so by the future of what it was at.
        """
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + SECONDS_BETWEEN_LOOKS_AT_NODES
        if not any(node["NodeID"] == self._node and node["Alive"] for node in self._ray.nodes()):
            raise MosesRnnError(
                "--ray: expected a living node on this machine, through which results come, found that it died",
                advice="`ray start` starts it again.",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the actors, and the cluster if it was started for this run."""
        for actor in self._actors:
            self._ray.kill(actor.handle)
        if self._ours:
            self._ray.shutdown()
        if self._folder is not None:
            self._folder.cleanup()


def _check_reachable(address: str) -> None:
    """Raise OSError if nobody listens at host:port, where Ray would end the process."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in address:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT).close()


class _Actor:
    """An actor: how to call it, what tells that it has begun, and what it is at."""

    def __init__(self, handle: Any, begun: Any) -> None:  # noqa: ANN401: of Ray, which is not typed
        self.handle, self.begun = handle, begun
        self.ready = self.dead = False
        self.unanswered: list[Future[Any]] = []  # the first is what it is at, or has an answer on its way
