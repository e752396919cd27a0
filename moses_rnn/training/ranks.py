"""The processes that train one network together: each is a rank, and the first one, number 0, alone writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from moses_rnn.errors import MosesRnnError
from moses_rnn.training.threads import Figures, Item, Threads


class PeerFailed(MosesRnnError):
    """Another rank has failed or died, and this one cannot continue without it.

    Args:
        message: which one and why, as far as that is known.
        report: what the other one, or a third, has said of it; None if nobody has.
    """

    def __init__(self, message: str, report: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report
        if report is not None:
            self.exit_code = report["code"]


class Ranks:
    """One process that trains alone, and waits for nobody; `processes.Together` is one of several."""

    rank, size = 0, 1

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
