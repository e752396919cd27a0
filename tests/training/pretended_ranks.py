"""Ranks that are threads of one process and meet without torch.distributed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch

from moses_rnn.training.ranks import Ranks


class Meeting:
    def __init__(self, size):
        self.barrier = threading.Barrier(size, timeout=60)
        self.tensors = [None] * size
        self.announced = {}
        self.event = threading.Event()


class PretendedRanks(Ranks):
    def __init__(self, rank, meeting):
        self.rank, self.size = rank, len(meeting.tensors)
        self._meeting = meeting

    def sums(self, numbers):
        tensor = torch.tensor(numbers, dtype=torch.float64)
        self.add_up(tensor)
        return tensor.tolist()

    def add_up(self, tensor):
        self._meeting.tensors[self.rank] = tensor.clone()
        self._meeting.barrier.wait()
        tensor.copy_(sum(self._meeting.tensors))
        self._meeting.barrier.wait()

    def announce(self, name, text):
        self._meeting.announced[name] = text
        self._meeting.event.set()

    def wait_for(self, name, should_stop):
        assert self._meeting.event.wait(60)
        return self._meeting.announced[name]


def in_ranks(size, work):
    """What `work(ranks)` gives on each rank; the first one's error is raised."""
    meeting = Meeting(size)

    def of_rank(rank):
        try:
            return work(PretendedRanks(rank, meeting))
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(of_rank, rank) for rank in range(size)]
    return [future.result() for future in futures]
