"""Phrases as padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.models.vocabulary import END_ID, Ids

Lengths = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Phrases with their closing ``</s>``, longest first.

    Because the rows are sorted, the phrases that have a word at step t are the first ``active[t]`` rows. Networks
    compute those rows and no others, so that padding is never read and a score depends on its pair alone.
    """

    ids: Tensor  # rows × longest, int64, padded with END_ID
    active: list[int]  # longest; descending

    @classmethod
    def from_flat(cls, flat: Ids, lengths: Lengths, device: torch.device | str = "cpu") -> Batch:
        """Phrases laid end to end.

        Args:
            flat: ids of all phrases, without end symbols; sum of `lengths`.
            lengths: words of each phrase; rows, descending.
            device: where the ids go.
        """
        steps = np.arange(int(lengths[0]) + 1)  # one more for </s>
        ids = np.full((len(lengths), len(steps)), END_ID, dtype=np.int64)
        ids[steps[None, :] < lengths[:, None]] = flat
        active = (lengths[:, None] >= steps[None, :]).sum(axis=0)
        return cls(torch.from_numpy(ids).to(device), [int(n) for n in active])

    @classmethod
    def from_lists(cls, phrases: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Batch:
        """Phrases as lists of ids without end symbols, longest first."""
        lengths = np.array([len(phrase) for phrase in phrases], dtype=np.int64)
        assert (np.diff(lengths) <= 0).all(), "phrases must be sorted, longest first"
        flat = np.fromiter((i for phrase in phrases for i in phrase), dtype=np.int32, count=int(lengths.sum()))
        return cls.from_flat(flat, lengths, device)

    def packed(self) -> Tensor:
        """All real ids, step by step: those of step 1 for all rows, of step 2 for the rows that have one, …; nodes."""
        return torch.cat([self.ids[:n, t] for t, n in enumerate(self.active)])

    def rows(self) -> Tensor:
        """For each packed id the row it is from; nodes."""
        every = torch.arange(self.ids.shape[0], device=self.ids.device)
        return torch.cat([every[:n] for n in self.active])

    def last(self) -> Tensor:
        """For each row the place of its last id among the packed ones; rows."""
        steps = torch.tensor(self.active)
        begins = torch.cumsum(steps, 0) - steps
        lengths = (steps[None, :] > torch.arange(self.active[0])[:, None]).sum(1)
        return (begins[lengths - 1] + torch.arange(self.active[0])).to(self.ids.device)
