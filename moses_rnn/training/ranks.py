"""Who shares the work of a training: threads of a process, and the processes that train one network together.

Threads of torch meet after each of a step's hundreds of products, and spin where another process has one of the cores.
Threads that each learn from their own part of a minibatch meet three times a step.

torchrun starts the processes. Each is a rank; the first one, number 0, alone writes. Numbers travel by gloo or NCCL,
words (the corpus is written, a rank failed) through torch's store, which keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from moses_rnn.errors import MosesRnnError, Stopped

Item = TypeVar("Item")
Result = TypeVar("Result")
ROWS = 64  # of a minibatch for each thread: with fewer, products are smaller than they are fast
NATIVE_ROWS = 16  # the same for the native core, whose products are packed with less ado
PATIENCE = timedelta(minutes=30)  # in an exchange: a rank that compiles or saves lets the others wait
SECONDS_BETWEEN_LOOKS = 0.1
FAILURE, IDENTITY = "failure", "identity"  # names in the store


class Threads:
    """Threads that work side by side, each with one thread of torch."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="training") if count > 1 else None

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of all items, in order; the first error is raised once all have ended."""
        if self._pool is None:
            return [work(item) for item in items]
        futures = [self._pool.submit(work, item) for item in items]
        wait(futures)
        return [future.result() for future in futures]


def share_cores(cores: int, batch_size: int, *, native: bool = False) -> int:
    """The threads that share a minibatch; sets torch's own to the cores that are left for each, of `native` to one."""
    count = max(min(cores, batch_size // (NATIVE_ROWS if native else ROWS)), 1)
    torch.set_num_threads(1 if native else max(cores // count, 1))
    return count


class PeerFailed(MosesRnnError):
    """Another rank has failed or died, and this one cannot continue without it."""


class Ranks:
    """One process that trains alone and waits for nobody, or one of several, of which `local` counts a machine's."""

    rank, size = 0, 1

    def __init__(self, store: Any = None, rank: int = 0, size: int = 1, local: int = 0) -> None:
        self.rank, self.size = rank, size
        self._store, self._local = store, local

    @property
    def leads(self) -> bool:
        """Whether this is the rank that writes."""
        return self.rank == 0

    def device(self, wanted: str) -> str:
        """The processor, or of several ranks a GPU for each of a machine; "auto" is GPUs if there are any."""
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
                f"expected a GPU for each process, found {count} and the process with LOCAL_RANK {self._local}",
                advice="Start fewer processes on this machine, or train with --device cpu.",
            )
        torch.cuda.set_device(self._local)  # before anything is put on the first one
        return f"cuda:{self._local}"

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all ranks, the same bits on each."""
        if self.size > 1:
            with self._exchange():
                dist.all_reduce(tensor)

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Numbers added up over all ranks, in double precision; raises what `add_up` does."""
        tensor = torch.tensor(numbers, dtype=torch.float64)
        self.add_up(tensor)
        return cast(list[float], tensor.tolist())

    def any(self, flag: bool) -> bool:
        """Whether it is true on any rank."""
        return self.sums([float(flag)])[0] > 0

    def announce(self, name: str, text: str) -> None:
        """Say something under a name, once, to whoever waits for it."""
        with self._exchange():
            self._store.set(name, text)

    def wait_for(self, name: str, should_stop: Callable[[], bool]) -> str:
        """What was announced under a name, however long that takes."""
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
        """Make sure that all ranks do what the first one does."""
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
        """Tell the others why this rank ends; whether it prints that itself: what several make or see is said once."""
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
        """End together: what the first rank had to write is written then."""
        if self.size > 1:
            self.sums([0.0])
            dist.destroy_process_group()

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # torch.distributed's own errors are among these
            raise PeerFailed(
                f"process {self.rank} of {self.size} has lost the others: {_reason(error)}",
                advice="Was one of them killed? Run the same command again to continue.",
            ) from error


ALONE = Ranks()


def join() -> Ranks:
    """The ranks of which this process is one, by the variables that torchrun sets: RANK, WORLD_SIZE and the others."""
    environment = os.environ
    if "RANK" not in environment or environment.get("WORLD_SIZE", "1") == "1":
        return ALONE
    try:
        met, rank, size = next(iter(rendezvous("env://", timeout=PATIENCE)))
        group, spoken = (dist.PrefixStore(f"moses-rnn/{restarts()}/{name}", met) for name in ("group", "words"))  # type: ignore[attr-defined]
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, store=group, rank=rank, world_size=size, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise MosesRnnError(
            f"process {environment['RANK']} of {environment['WORLD_SIZE']}: cannot meet the others at "
            f"{environment.get('MASTER_ADDR')}:{environment.get('MASTER_PORT')}: {_reason(error)}",
            advice="RANK and WORLD_SIZE are set, as torchrun does; unset them to train in one process.",
        ) from error
    return Ranks(spoken, rank, size, int(environment.get("LOCAL_RANK", rank)))


def restarts() -> int:
    """How often torchrun has started this training again after a process had died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def _reason(error: BaseException) -> str:
    """The first sentence of what torch says."""
    return str(error).strip().partition("\n")[0].partition(". ")[0]


class AllThreads(Threads):
    """The threads of all ranks, for work that is a list of items with figures for results."""

    def __init__(self, threads: Threads, ranks: Ranks) -> None:
        self._threads, self._ranks = threads, ranks

    def each(self, work: Callable[[Item], Any], items: Iterable[Item]) -> list[Any]:
        """The figures of all items in order, on every rank; a figure has the bits that one process would give it."""
        every, ranks = list(items), self._ranks
        if ranks.size == 1 or not every:
            return self._threads.each(work, every)
        mine = self._threads.each(work, every[ranks.rank :: ranks.size])
        width = int(ranks.sums([len(mine[0]) if ranks.leads else 0])[0])  # the first has the first item
        figures = torch.zeros(len(every), width, dtype=torch.float64)
        if mine:
            figures[ranks.rank :: ranks.size] = torch.tensor(mine, dtype=torch.float64)
        ranks.add_up(figures)  # one of the addends is not zero
        return [tuple(row) for row in figures.tolist()]
