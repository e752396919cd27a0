"""Phrases as padded tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.networks.vocabulary import END_ID, Ids, Phrase

Ints = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Lengths = Ints  # words of each phrase
Parts = TypeVar("Parts")  # a tensor, or tuples or lists of them


@dataclass(frozen=True)
class Batch:
    """Phrases with their closing ``</s>``, longest first.

    Because the rows are sorted, the phrases with a word at step t are the first ``active[t]`` rows. Networks compute
    only those rows, so that padding is never read and a score depends on its pair alone.
    """

    ids: Tensor  # rows × longest, int64, padded with END_ID
    active: list[int]  # longest; descending

    @classmethod
    def from_flat(cls, flat: Ids, lengths: Lengths, device: torch.device | str = "cpu") -> Batch:
        """Make a batch of concatenated phrases without end symbols; `lengths` are descending."""
        steps = np.arange(int(lengths[0]) + 1)  # one more for </s>
        ids = in_slots(flat, lengths, len(steps), END_ID)
        active = (lengths[:, None] >= steps[None, :]).sum(axis=0)
        return cls(torch.from_numpy(ids).to(device), [int(n) for n in active])

    @classmethod
    def from_lists(cls, phrases: Sequence[Phrase], device: torch.device | str = "cpu") -> Batch:
        """Make a batch of lists of ids without end symbols, longest first."""
        flat, lengths = flatten(phrases)
        assert (np.diff(lengths) <= 0).all(), "phrases must be sorted, longest first"
        return cls.from_flat(flat, lengths, device)

    def packed(self) -> Tensor:
        """Return all real ids by step: step 1 of all rows, then step 2 of the rows that have one, …; nodes."""
        return torch.cat([self.ids[:n, t] for t, n in enumerate(self.active)])

    def rows(self) -> Tensor:
        """Return the row of each packed id; nodes."""
        every = torch.arange(self.ids.shape[0], device=self.ids.device)
        return torch.cat([every[:n] for n in self.active])

    def steps(self) -> Tensor:
        """Return the step of each packed id, from 0; nodes."""
        steps = torch.repeat_interleave(torch.arange(len(self.active)), torch.tensor(self.active))
        return steps.to(self.ids.device)

    def places(self) -> Tensor:
        """Return the packed position of each row's id at each step; rows × longest.

        A row without such a step gets the position of its last id, so that looked-up values are finite.
        """
        begins, lengths = self._begins(), self.lengths()
        steps = torch.minimum(torch.arange(len(self.active))[None, :], lengths[:, None] - 1)
        return (begins[steps] + torch.arange(self.active[0])[:, None]).to(self.ids.device)

    def mirrored(self) -> Tensor:
        """Return, for each packed id, the packed position of its mirror image within its row; nodes."""
        begins, lengths = self._begins(), self.lengths()
        places = [begins[lengths[:n] - 1 - t] + torch.arange(n) for t, n in enumerate(self.active)]
        return torch.cat(places).to(self.ids.device)

    def lengths(self) -> Tensor:
        """Return the length of each row, ``</s>`` included; rows, on the CPU."""
        return (torch.tensor(self.active)[None, :] > torch.arange(self.active[0])[:, None]).sum(1)

    def _begins(self) -> Tensor:
        """Return the packed position at which each step begins; longest, on the CPU."""
        steps = torch.tensor(self.active)
        return torch.cumsum(steps, 0) - steps

    def last(self) -> Tensor:
        """Return the packed position of each row's last id; rows."""
        return (self._begins()[self.lengths() - 1] + torch.arange(self.active[0])).to(self.ids.device)


def flatten(phrases: Sequence[Phrase]) -> tuple[Ids, Lengths]:
    """Concatenate phrases of ids without end symbols; return their ids, and the length of each."""
    lengths = np.array([len(phrase) for phrase in phrases], np.int64)
    return np.array([word for phrase in phrases for word in phrase], np.int64), lengths


def in_slots(flat: Ids, lengths: Lengths, slots: int, otherwise: int) -> Ints:
    """Arrange concatenated phrases in rows of slots, with `otherwise` in empty slots; phrases × slots."""
    table = np.full((len(lengths), slots), otherwise, np.int64)
    table[np.arange(slots)[None, :] < lengths[:, None]] = flat
    return table


def take_spans(tokens: Ids, begins: Ints, lengths: Lengths) -> Ids:
    """Concatenate spans of an array of ids."""
    shift = begins - (np.cumsum(lengths) - lengths)
    return tokens[np.repeat(shift, lengths) + np.arange(int(lengths.sum()))]


def reverse_each(ids: Ids, lengths: Lengths) -> Ids:
    """Reverse the words of each of the concatenated phrases."""
    ends = np.cumsum(lengths)
    return ids[np.repeat(2 * ends - lengths, lengths) - 1 - np.arange(len(ids))]


def row_slices(rows: int, at_once: int) -> Iterator[slice]:
    """Yield slices of at most `at_once` rows that cover all rows."""
    for first in range(0, rows, at_once):
        yield slice(first, min(first + at_once, rows))


def distinct_rows(rows: Ids) -> tuple[Ids, Ints]:
    """Return the sorted distinct rows, and the index of each row among them."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(1))
    place = np.empty(len(rows), np.int64)
    place[order] = np.cumsum(new) - 1
    return ordered[new], place


def take_rows(parts: Parts, rows: Tensor | slice) -> Parts:
    """Take rows (a slice or indices, which may repeat) of a tensor or of all tensors in nested tuples."""

    def take(part: Tensor) -> Tensor:
        return part[rows] if isinstance(rows, slice) else part.index_select(0, rows)

    taken: Parts = _map_tensors(take, parts)
    return taken


def join_rows(parts: Sequence[Parts]) -> Parts:
    """Concatenate the rows of tensors, or of nested tuples of the same structure."""
    joined: Parts = _map_tensors(lambda *of_each: torch.cat(of_each), *parts)
    return joined


def _map_tensors(function: Callable[..., Tensor], *parts: Any) -> Any:
    first = parts[0]
    if isinstance(first, Tensor):
        return function(*parts)
    each = [_map_tensors(function, *inner) for inner in zip(*parts, strict=True)]
    return type(first)(*each) if hasattr(first, "_fields") else type(first)(each)
