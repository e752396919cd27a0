"""Processes that train together and meet by torch.distributed.

Numbers on the processor travel by gloo, gradients on GPUs by NCCL. What is said in words, that the corpus is written or
why a rank failed, goes through the store at which they met, which keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from moses_rnn.errors import MosesRnnError, Stopped
from moses_rnn.training.ranks import ALONE, PeerFailed, Ranks

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


class Together(Ranks):
    """One of several processes, on one machine or on several.

    Args:
        store: at which they met; the process group is made of it.
        rank: of this process.
        size: how many there are.
        local: rank of this process among those of its machine.
    """

    def __init__(self, store: Store, rank: int, size: int, local: int) -> None:
        self.rank, self.size = rank, size
        self._local = local
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
                advice="On machines that differ, give --threads, precision in --config and MOSES_RNN_NATIVE.",
            )
        self.meet()

    def report(self, error: BaseException) -> bool:
        """See `Ranks`: what several make or see is said by one of them, and the failure of another by the first."""
        if isinstance(error, PeerFailed) and error.report is not None:
            return self.leads and not error.report["lost"]
        lost = isinstance(error, PeerFailed)
        code = error.exit_code if isinstance(error, MosesRnnError) else 1
        mine = {"rank": self.rank, "message": _message(error), "code": code, "lost": lost}
        try:
            first = json.loads(self._store.compare_set(FAILURE, "", json.dumps(mine)))
        except RuntimeError:  # the store has ended with the first rank
            first = mine
        if isinstance(error, Stopped):
            return self.leads
        return bool(first["rank"] == self.rank or (not lost and first["message"] != mine["message"]))

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
                return PeerFailed(f"process {report['rank']} of {self.size} failed: {report['message']}", report)
        failure = PeerFailed(f"process {self.rank} of {self.size} has lost the others: {_reason(symptom)}")
        failure.add_advice("Was one of them killed? Run the same command again to continue.")
        return failure


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
            f"{environment.get('MASTER_ADDR')}:{environment.get('MASTER_PORT')}: {_reason(error)}",
            advice="RANK and WORLD_SIZE are set, as torchrun does; unset them to train in one process.",
        ) from error
    return Together(_within(attempt, "words"), rank, size, int(environment.get("LOCAL_RANK", rank)))


def _within(store: Any, prefix: str) -> Any:
    """A part of torch's store, of names that nobody else uses."""
    return dist.PrefixStore(prefix, store)  # type: ignore[attr-defined]


def restarts() -> int:
    """How often torchrun has started this training again after a process had died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def _reason(error: BaseException | None) -> str:
    """The first sentence of what torch says."""
    return str(error).strip().partition("\n")[0].partition(". ")[0]


def _message(error: BaseException) -> str:
    return str(error) if isinstance(error, MosesRnnError) else f"{type(error).__name__}: {error}"
