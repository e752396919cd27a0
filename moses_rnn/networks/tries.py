"""Phrases as a trie: each distinct prefix once, level by level, so shared work is done once and nothing is padded.

Levels are built from sorted rows in numpy, without Python work per phrase. Their arrays are copied to a device in one
piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.networks.batches import Lengths, Parts, join_rows, take_rows
from moses_rnn.networks.vocabulary import END_ID, Ids

Ints = npt.NDArray[np.int64]
NOTHING = -1


class Level(NamedTuple):
    """All distinct prefixes of one length, ordered by parent.

    `words` is the last word of each node. `leaves` are the nodes that end with ``</s>``, `alive` the others. `parents`
    is the index of each node's parent among the live nodes of the level above.
    """

    words: Ints
    parents: Ints
    alive: Ints
    leaves: Ints


@dataclass(frozen=True)
class Trie:
    """Levels of prefixes of 1, 2, … words below `roots` roots; every phrase ends with ``</s>``.

    Leaves, the distinct phrases, are numbered level by level; `leaf_of` is the leaf of each input phrase.
    """

    roots: int
    levels: list[Level]
    leaf_of: Ints

    @property
    def leaves(self) -> int:
        """Number of distinct phrases, by root."""
        return sum(len(level.leaves) for level in self.levels)

    @property
    def nodes(self) -> int:
        """Number of nodes without the roots."""
        return sum(len(level.words) for level in self.levels)


def build_trie(flat: Ids, lengths: Lengths, roots: Ints | None = None) -> Trie:
    """Build the trie of phrases, concatenated without end symbols, each below its root; None: one root for all."""
    ids = _padded(flat, lengths)  # rows × (longest + 1)
    roots = np.zeros(len(lengths), np.int64) if roots is None else roots
    order = _sorted_order(ids, roots)
    ids = ids[order]
    # A prefix is new if its root or any of its words differs from the row above.
    new = np.ones(ids.shape, dtype=np.bool_)
    new[1:] = ids[1:] != ids[:-1]
    new[1:, 0] |= roots[order[1:]] != roots[order[:-1]]
    np.logical_or.accumulate(new, axis=1, out=new)
    new &= ids != NOTHING
    number = np.cumsum(new, axis=0) - 1  # node of each row at each depth
    number_alive = np.cumsum(new & (ids != END_ID), axis=0) - 1
    levels = []
    leaf_of = np.empty(len(lengths), np.int64)
    leaves_before = 0
    above = roots[order]
    for depth in range(ids.shape[1]):
        first = np.flatnonzero(new[:, depth])  # first row of each node
        words = ids[first, depth]
        is_leaf = words == END_ID
        ending = np.flatnonzero(ids[:, depth] == END_ID)
        leaf_of[order[ending]] = leaves_before + (np.cumsum(is_leaf) - 1)[number[ending, depth]]
        levels.append(Level(words, above[first], np.flatnonzero(~is_leaf), np.flatnonzero(is_leaf)))
        leaves_before += len(levels[-1].leaves)
        above = number_alive[:, depth]
    return Trie(int(roots.max(initial=0)) + 1, levels, leaf_of)


def take_phrases(ids: Ids, lengths: Lengths, rows: Ints) -> tuple[Ids, Lengths]:
    """Take the phrases in `rows`, in that order, from concatenated ones; return their ids and lengths."""
    begins = np.cumsum(lengths) - lengths
    taken = lengths[rows]
    within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
    return ids[np.repeat(begins[rows], taken) + within], taken


def copy_levels(levels: Sequence[Level], device: torch.device) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Copy the arrays of levels to a device; on the CPU, return views.

    Another device gets all of them in one copy from pinned memory, for which the CPU does not wait.
    """
    arrays = list(chain.from_iterable(levels))
    if device.type == "cpu":
        views: Iterator[Tensor] = map(torch.from_numpy, arrays)
    else:
        lengths = [len(array) for array in arrays]
        packed = torch.empty(sum(lengths), dtype=torch.int64, pin_memory=True)
        np.concatenate(arrays, out=packed.numpy())
        views = iter(torch.split(packed.to(device, non_blocking=True), lengths))
    return list(zip(views, views, views, views, strict=True))


def last_states(
    sources: Trie, device: torch.device, state: Parts, step: Callable[[Tensor, Parts, Tensor], Parts]
) -> Parts:
    """Return the states after the last word of each distinct phrase, in the order of leaves.

    `state` has one row per root; `step` takes the nodes' words, the states above, and each node's row in these.
    """
    last = []
    for words, parents, alive, leaves in copy_levels(sources.levels, device):
        state = step(words, state, parents)
        last.append(take_rows(state, leaves))
        state = take_rows(state, alive)
    return join_rows(last)


def _padded(flat: Ids, lengths: Lengths) -> Ints:
    """Return phrases with ``</s>`` as rows, padded with NOTHING."""
    width = int(lengths.max(initial=0)) + 1
    ids = np.full((len(lengths), width), NOTHING, dtype=np.int64)
    ids[np.arange(len(lengths)), lengths] = END_ID
    ids[np.arange(width)[None, :] < lengths[:, None]] = flat
    return ids


def _sorted_order(ids: Ints, roots: Ints) -> Ints:
    """Sort rows by root, then word by word. Two words make one key, which halves the work."""
    shifted = ids + 1
    if shifted.shape[1] % 2:
        shifted = np.pad(shifted, ((0, 0), (0, 1)))
    keys = (shifted[:, ::2] << 32) | shifted[:, 1::2]
    return np.lexsort((*keys.T[::-1], roots))
