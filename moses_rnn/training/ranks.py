"""Share the work of a training among threads of a process, and among processes that train one network together.

Torch's threads synchronise after each of a step's hundreds of products, and spin if another process uses a core.
Threads that each train on their own part of a minibatch synchronise three times per step.

torchrun starts the processes. Each is a rank; only rank 0 writes. Numbers travel by gloo or NCCL; messages (the corpus
is written, a rank failed) go through torch's store, which does not block.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from moses_rnn.errors import InputError, MosesRnnError, Stopped, shown_value
from moses_rnn.options import MOST_WHOLE

Item = TypeVar("Item")
Result = TypeVar("Result")
PATIENCE = timedelta(minutes=30)  # timeout of an exchange: a rank may be compiling or saving
SECONDS_BETWEEN_LOOKS = 0.1
LAST_PORT = 2**16 - 1
FAILURE, IDENTITY = "failure", "identity"  # names in the store


class Threads:
    """Parallel threads, each using one of torch's threads."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="training") if count > 1 else None

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results of all items, in order; raise the first error once all have ended."""
        if self._pool is None:
            return [work(item) for item in items]
        futures = [self._pool.submit(work, item) for item in items]
        wait(futures)
        return [future.result() for future in futures]


class PeerFailed(MosesRnnError):
    """Another rank has failed or died, so this one cannot continue."""


class Ranks:
    """One process of those that train together, or alone; `local` is its number on this machine."""

    def __init__(self, store: Any = None, rank: int = 0, size: int = 1, local: int = 0) -> None:
        self.rank, self.size = rank, size
        self._store, self._local = store, local

    @property
    def leads(self) -> bool:
        """Whether this is the rank that writes."""
        return self.rank == 0

    def device(self, wanted: str) -> str:
        """Choose this rank's device: with several ranks, a GPU each; "auto" prefers GPUs."""
        if self.size > 1 and wanted == "auto" and torch.cuda.is_available():
            wanted = "cuda"
        if self.size == 1 or not wanted.startswith("cuda"):
            return wanted
        if wanted != "cuda":
            raise MosesRnnError(
                f"--device {wanted}: expected cuda or cpu: each of {self.size} processes uses its own device"
            )
        count = torch.cuda.device_count()
        if self._local >= count:
            raise MosesRnnError(
                f"expected a GPU for each process, found {count} for the process with LOCAL_RANK {self._local}",
                advice="Start fewer processes on this machine, or train with --device cpu.",
            )
        torch.cuda.set_device(self._local)  # before anything uses the first GPU
        return f"cuda:{self._local}"

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all ranks, bit-identical on each."""
        if self.size > 1:
            with self._exchange():
                dist.all_reduce(tensor)

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Sum numbers over all ranks in double precision; raises as `add_up` does."""
        tensor = torch.tensor(numbers, dtype=torch.float64)
        self.add_up(tensor)
        return cast(list[float], tensor.tolist())

    def any(self, flag: bool) -> bool:
        """Whether `flag` is true on any rank."""
        return self.sums([float(flag)])[0] > 0

    def announce(self, name: str, text: str) -> None:
        """Publish a text under a name for ranks in `wait_for`."""
        with self._exchange():
            self._store.set(name, text)

    def wait_for(self, name: str, should_stop: Callable[[], bool]) -> str:
        """Wait for a text announced under a name, for as long as it takes."""
        while True:
            with self._exchange():
                if self._store.check([name]):
                    return str(self._store.get(name).decode())
                if self._store.check([FAILURE]):
                    raise RuntimeError(self._store.get(FAILURE).decode())
            if should_stop():
                raise Stopped("stopped while the first process was reading; run the same command again to start over")
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def compare(self, choices: Mapping[str, Any]) -> None:
        """Raise MosesRnnError unless all ranks have the same choices as the first."""
        if self.size == 1:
            return
        text = json.dumps(dict(choices))
        if self.leads:
            self.announce(IDENTITY, text)
        first, mine = json.loads(self.wait_for(IDENTITY, lambda: False)), json.loads(text)
        differing = [f"{key} {mine.get(key)!r}, not {first[key]!r}" for key in first if mine.get(key) != first[key]]
        if differing:
            raise MosesRnnError(
                f"expected every process to train like the first one, found {'; '.join(differing)}",
                advice="If the machines differ, set --threads, precision in --config and MOSES_RNN_NATIVE.",
            )
        self.sums([0.0])

    def report(self, error: BaseException) -> bool:
        """Tell the other ranks why this one ends; return whether it should print the error, so that one rank does."""
        if self.size == 1:
            return True
        message = str(error) if isinstance(error, MosesRnnError) else f"{type(error).__name__}: {error}"
        rank, first = self.rank, message
        with contextlib.suppress(RuntimeError):  # the store has ended with the first rank
            rank, first = json.loads(self._store.compare_set(FAILURE, "", json.dumps([rank, message])))
        if isinstance(error, Stopped):
            return self.leads
        return rank == self.rank or (not isinstance(error, PeerFailed) and first != message)

    def leave(self) -> None:
        """Wait until all ranks end, so that the first rank has written everything."""
        if self.size > 1:
            self.sums([0.0])
            dist.destroy_process_group()

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # torch.distributed's own errors are among these
            raise PeerFailed(
                f"process {self.rank} of {self.size} has lost the other processes: {_reason(error)}",
                advice="Was one of them killed? Run the same command again to continue.",
            ) from error


ALONE = Ranks()


def join() -> Ranks:
    """Join the other ranks, given by the variables that torchrun sets: RANK, WORLD_SIZE and others."""
    environment = os.environ
    if "RANK" not in environment or environment.get("WORLD_SIZE", "1") == "1":
        return ALONE
    size = _whole_variable("WORLD_SIZE", "1", least=1)
    rank = _whole_variable("RANK", "0", most=size - 1)
    own_device = _whole_variable("LOCAL_RANK", str(rank))
    _whole_variable("MASTER_PORT", "0", most=LAST_PORT)
    start = f"moses-rnn/{restarts()}"
    try:
        met, rank, size = next(iter(rendezvous("env://", timeout=PATIENCE)))
        group, spoken = (dist.PrefixStore(f"{start}/{name}", met) for name in ("group", "words"))  # type: ignore[attr-defined]
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, store=group, rank=rank, world_size=size, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise MosesRnnError(
            f"process {environment['RANK']} of {environment['WORLD_SIZE']}: cannot reach the other processes at "
            f"{environment.get('MASTER_ADDR')}:{environment.get('MASTER_PORT')}: {_reason(error)}",
            advice="RANK and WORLD_SIZE are set, as torchrun does; unset them to train in one process.",
        ) from error
    return Ranks(spoken, rank, size, own_device)


def restarts() -> int:
    """Return how often torchrun has restarted this training after a process died."""
    return _whole_variable("TORCHELASTIC_RESTART_COUNT", "0")


def _whole_variable(name: str, default: str, least: int = 0, most: int = MOST_WHOLE) -> int:
    """Return a whole number from the environment."""
    text = os.environ.get(name, default)
    number = int(text) if re.fullmatch("[0-9]{1,18}", text) else -1
    if not least <= number <= most:
        raise InputError(
            f"{name}: expected a whole number from {least} to {most}, found {shown_value(text)}",
            advice="torchrun sets RANK, WORLD_SIZE and the like; unset them to train in one process.",
        )
    return number


def _reason(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].partition(". ")[0]


class AllThreads(Threads):
    """The threads of all ranks, for lists of items with numeric results."""

    def __init__(self, threads: Threads, ranks: Ranks) -> None:
        self._threads, self._ranks = threads, ranks

    def each(self, work: Callable[[Item], Any], items: Iterable[Item]) -> list[Any]:
        """Return the results of all items in order, on every rank; bit-identical to those of one process."""
        every, ranks = list(items), self._ranks
        if ranks.size == 1 or not every:
            return self._threads.each(work, every)
        mine = self._threads.each(work, every[ranks.rank :: ranks.size])
        width = int(ranks.sums([len(mine[0]) if ranks.leads else 0])[0])  # the first has the first item
        figures = torch.zeros(len(every), width, dtype=torch.float64)
        if mine:
            figures[ranks.rank :: ranks.size] = torch.tensor(mine, dtype=torch.float64)
        ranks.add_up(figures)  # only one addend is not zero
        return [tuple(row) for row in figures.tolist()]
