"""The processes that train one network together: each is a rank, and the first one, number 0, alone writes.

They exchange numbers by torch.distributed: those on the processor by gloo, gradients on GPUs by NCCL. What is said in
words, that the corpus is written or why a rank failed, goes through the store at which they met, which keeps nobody
waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from moses_rnn.errors import MosesRnnError, Stopped
from moses_rnn.training.threads import Figures, Item, Threads

PATIENCE = timedelta(minutes=30)  # in an exchange: a rank that compiles or saves lets the others wait
SECONDS_BETWEEN_LOOKS = 0.1
FAILURE, IDENTITY = "failure", "identity"  # names in the store


class Store(Protocol):
    """As much of torch's store of words as is used here."""

    def check(self, keys: list[str], /) -> bool:
        """Whether there is something under these names."""

    def set(self, key: str, value: str, /) -> None:
        """Put something there."""

    def get(self, key: str, /) -> bytes:
        """What is there."""

    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes:
        """Put something there, if nothing is yet; what is there then."""


class PeerFailed(MosesRnnError):
    """Another rank has failed or died, and this one cannot continue without it."""


class Ranks:
    """One process that trains alone, and waits for nobody; `Together` is one of several."""

    rank, size = 0, 1
    on_one_machine = True

    @property
    def leads(self) -> bool:
        """Whether this is the rank that writes."""
        return self.rank == 0

    def device(self, wanted: str) -> str:
        """The device of this rank, where `wanted` names those of all."""
        return wanted

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Numbers added up over all ranks, in double precision."""
        return list(numbers)

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all ranks, the same bits on each."""

    def any(self, flag: bool) -> bool:
        """Whether it is true on any rank."""
        return self.sums([float(flag)])[0] > 0

    def of_first(self, number: float) -> float:
        """The number that the first rank has."""
        return self.sums([number if self.leads else 0.0])[0]

    def meet(self) -> None:
        """Wait until all are here."""
        self.sums([0.0])

    def announce(self, name: str, text: str) -> None:
        """Say something under a name, once, to whoever waits for it."""

    def wait_for(self, name: str, should_stop: Callable[[], bool]) -> str:
        """What was announced under a name, however long that takes."""
        raise NotImplementedError

    def compare(self, choices: Mapping[str, Any]) -> None:
        """Make sure that all ranks do what the first one does."""

    def report(self, error: BaseException) -> bool:
        """Let the others know why this rank ends; whether it should say so itself."""
        del error
        return True

    def leave(self) -> None:
        """End together: what the first rank had to write is written then."""


ALONE = Ranks()


class Together(Ranks):
    """One of several processes, on one machine or on several.

    Args:
        store: at which they met; the process group is made of it.
        rank: of this process.
        size: how many there are.
        local: rank of this process among those of its machine, and their number; 0 if that is not known.
    """

    def __init__(self, store: Store, rank: int, size: int, local: tuple[int, int]) -> None:
        self.rank, self.size = rank, size
        self._local, of_machine = local
        self.on_one_machine = of_machine == size
        self._store = store

    def device(self, wanted: str) -> str:
        """The processor, or a GPU for each rank of a machine; "auto" is GPUs if there are any.

        Raises:
            MosesRnnError: a single GPU is named, or the machine has too few.
        """
        if wanted == "auto" and torch.cuda.is_available():
            wanted = "cuda"
        if not wanted.startswith("cuda"):
            return wanted
        if wanted != "cuda":
            raise MosesRnnError(f"--device {wanted}: expected cuda or cpu: each of {self.size} processes takes its own")
        count = torch.cuda.device_count()
        if self._local >= count:
            raise MosesRnnError(
                f"expected a GPU for each process, found {count} and the process with LOCAL_RANK {self._local}",
                advice="Start fewer processes on this machine, or train with --device cpu.",
            )
        torch.cuda.set_device(self._local)  # before anything is put on the first one
        return f"cuda:{self._local}"

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """See `Ranks`.

        Raises:
            PeerFailed: of the other ranks one is gone.
        """
        tensor = torch.tensor(numbers, dtype=torch.float64)
        self.add_up(tensor)
        added: list[float] = tensor.tolist()
        return added

    def add_up(self, tensor: Tensor) -> None:
        """See `Ranks`; raises what `sums` does."""
        with self._exchange():
            dist.all_reduce(tensor)

    def announce(self, name: str, text: str) -> None:
        """See `Ranks`."""
        with self._exchange():
            self._store.set(name, text)

    def wait_for(self, name: str, should_stop: Callable[[], bool]) -> str:
        """See `Ranks`.

        Raises:
            PeerFailed: it will never come.
            Stopped: `should_stop` was true.
        """
        while True:
            with self._exchange():
                if self._store.check([name]):
                    return self._store.get(name).decode()
                if self._store.check([FAILURE]):
                    raise self._failure()
            if should_stop():
                raise Stopped("stopped while the first process was reading; run the same command again to start")
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def compare(self, choices: Mapping[str, Any]) -> None:
        """See `Ranks`.

        Raises:
            MosesRnnError: this rank differs.
            PeerFailed: another one does.
        """
        if self.leads:
            self.announce(IDENTITY, json.dumps(dict(choices)))
        first = json.loads(self.wait_for(IDENTITY, lambda: False))
        mine = json.loads(json.dumps(dict(choices)))
        differing = [f"{key} {mine.get(key)!r}, not {first.get(key)!r}" for key in first if mine.get(key) != first[key]]
        if differing:
            raise MosesRnnError(
                f"expected every process to train as the first one, found {'; '.join(differing)}",
                advice="On machines that differ, --threads, --precision and MOSES_RNN_NATIVE make them do the same.",
            )
        self.meet()

    def report(self, error: BaseException) -> bool:
        """See `Ranks`: an error that several ranks make is said by one, the end of another rank by the first alone."""
        if isinstance(error, PeerFailed):
            return self.leads
        code = error.exit_code if isinstance(error, MosesRnnError) else 1
        mine = {"rank": self.rank, "message": _message(error), "code": code}
        try:
            first = json.loads(self._store.compare_set(FAILURE, "", json.dumps(mine)))
        except RuntimeError:  # the store has ended with the first rank
            first = mine
        if isinstance(error, Stopped):
            return self.leads
        return bool(first["rank"] == self.rank or first["message"] != mine["message"])

    def leave(self) -> None:
        """See `Ranks`."""
        self.meet()
        dist.destroy_process_group()

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # torch.distributed's own errors are among these
            raise self._failure(error) from error

    def _failure(self, symptom: RuntimeError | None = None) -> PeerFailed:
        """Why another rank is gone, as far as it could say."""
        with contextlib.suppress(RuntimeError):
            if self._store.check([FAILURE]):
                report = json.loads(self._store.get(FAILURE))
                failed = PeerFailed(f"process {report['rank']} of {self.size} failed: {report['message']}")
                failed.exit_code = report["code"]
                return failed
        return PeerFailed(
            f"process {self.rank} of {self.size} has lost the others: {_first_line(symptom)}",
            advice="Was one of them killed? Run the same command again to continue.",
        )


class AllThreads:
    """The threads of all ranks, for work that is a list of items with figures for results.

    Args:
        threads: of this rank.
        ranks: all of them.
    """

    def __init__(self, threads: Threads, ranks: Ranks) -> None:
        self._threads, self._ranks = threads, ranks

    def each(self, work: Callable[[Item], Figures], items: Iterable[Item]) -> list[Figures]:
        """The figures of all items in order, on every rank; a figure has the bits that one process would give it."""
        every, ranks = list(items), self._ranks
        if ranks.size == 1 or not every:
            return self._threads.each(work, every)
        mine = self._threads.each(work, every[ranks.rank :: ranks.size])
        width = int(ranks.of_first(len(mine[0]) if mine else 0))  # the first has the first item
        figures = torch.zeros(len(every), width, dtype=torch.float64)
        if mine:
            figures[ranks.rank :: ranks.size] = torch.tensor(mine, dtype=torch.float64)
        ranks.add_up(figures)  # one of the addends is not zero
        return [cast(Figures, tuple(row)) for row in figures.tolist()]


def join() -> Ranks:
    """The ranks of which this process is one, by the variables that torchrun sets: RANK, WORLD_SIZE and the others.

    Raises:
        MosesRnnError: the others cannot be reached.
    """
    environment = os.environ
    if "RANK" not in environment or environment.get("WORLD_SIZE", "1") == "1":
        return ALONE
    try:
        met, rank, size = next(iter(rendezvous("env://", timeout=PATIENCE)))
        attempt = _within(met, f"moses-rnn/{restarts()}")
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        group = _within(attempt, "group")
        dist.init_process_group(backend, store=group, rank=rank, world_size=size, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise MosesRnnError(
            f"process {environment['RANK']} of {environment['WORLD_SIZE']}: cannot meet the others at "
            f"{environment.get('MASTER_ADDR')}:{environment.get('MASTER_PORT')}: {_first_line(error)}",
            advice="RANK and WORLD_SIZE are set, as torchrun does; unset them to train in one process.",
        ) from error
    local = int(environment.get("LOCAL_RANK", rank)), int(environment.get("LOCAL_WORLD_SIZE", "0"))
    return Together(_within(attempt, "words"), rank, size, local)


def _within(store: Any, prefix: str) -> Any:
    """A part of torch's store, of names that nobody else uses."""
    return dist.PrefixStore(prefix, store)  # type: ignore[attr-defined]


def restarts() -> int:
    """How often torchrun has started this training again after a process had died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def _first_line(error: BaseException | None) -> str:
    return str(error).strip().partition("\n")[0]


def _message(error: BaseException) -> str:
    return str(error) if isinstance(error, MosesRnnError) else f"{type(error).__name__}: {error}"
