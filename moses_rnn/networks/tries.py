"""Phrases as tries: each distinct prefix once, level by level, so work is shared and nothing is padded.

Levels are built from sorted rows in numpy, without Python work per phrase. Their arrays are copied to a device in one
piece. A target is below its source, so each distinct prefix of a source's targets is stepped and normalised once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.networks.batches import Ints, Lengths, Parts, Values, in_slots, join_rows, take_rows, take_spans
from moses_rnn.networks.steps import Encoded, Stepper, node_blocks
from moses_rnn.networks.vocabulary import END_ID, Ids

IdPhrases = tuple[Ids, Lengths]  # ids of all phrases, concatenated without end symbols; words of each phrase
Mask = npt.NDArray[np.bool_]
NOTHING = -1
TRIE_CELLS = 1 << 24  # maximum of pairs × longest phrase in one trie


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
    roots = np.zeros(len(lengths), np.int64) if roots is None else roots
    ids, order, new = sort_prefixes(flat, lengths, roots)
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


def sort_prefixes(flat: Ids, lengths: Lengths, roots: Ints) -> tuple[Ints, Ints, Mask]:
    """Sort concatenated phrases by root and words; return their ids, their order, and where a prefix is new.

    Rows of ids end with ``</s>``, and then with `NOTHING`.
    """
    ids = in_slots(flat, lengths, int(lengths.max(initial=0)) + 1, NOTHING)
    ids[np.arange(len(lengths)), lengths] = END_ID
    order = _sorted_order(ids, roots)
    ids = ids[order]
    # A prefix is new if its root or any of its words differs from the row above.
    new = np.ones(ids.shape, dtype=np.bool_)
    new[1:] = ids[1:] != ids[:-1]
    new[1:, 0] |= roots[order[1:]] != roots[order[:-1]]
    np.logical_or.accumulate(new, axis=1, out=new)
    new &= ids != NOTHING
    return ids, order, new


def number_prefixes(ids: Ints, roots: Ints, new: Mask) -> tuple[Ints, Mask]:
    """Number what precedes each word of sorted phrases, equal prefixes of a root alike.

    Return the numbers, with `NOTHING` where no word is, and where each number is first. These are ascending.
    """
    first = np.column_stack([np.append(True, np.diff(roots) != 0), new[:, :-1]]) & (ids != NOTHING)
    numbers = np.where(first, np.cumsum(first).reshape(first.shape) - 1, 0)
    return np.where(ids != NOTHING, np.maximum.accumulate(numbers, axis=0), NOTHING), first


def take_phrases(ids: Ids, lengths: Lengths, rows: Ints) -> IdPhrases:
    """Take the phrases in `rows`, in that order."""
    begins = np.cumsum(lengths) - lengths
    return take_spans(ids, begins[rows], lengths[rows]), lengths[rows]


def distinct_phrases(ids: Ids, lengths: Lengths) -> tuple[IdPhrases, Ints]:
    """Return the distinct phrases, and the row of each phrase among them."""
    row_of = build_trie(ids, lengths).leaf_of
    return take_phrases(ids, lengths, np.unique(row_of, return_index=True)[1]), row_of


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


def _sorted_order(ids: Ints, roots: Ints) -> Ints:
    """Sort rows by root, then word by word. Two words make one key, which halves the work."""
    shifted = ids + 1
    if shifted.shape[1] % 2:
        shifted = np.pad(shifted, ((0, 0), (0, 1)))
    keys = (shifted[:, ::2] << 32) | shifted[:, 1::2]
    return np.lexsort((*keys.T[::-1], roots))


# -- scoring


class PairNetwork(Protocol):
    """A network prepared to score phrase pairs given as ids."""

    device: torch.device

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """Return natural log p(target | source) of at least one pair, both ``</s>`` included; pairs."""


class SteppedPairs:
    """Scores pairs with a stepper, level by level of a trie."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.device = stepper.device

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """See `PairNetwork`; reads each distinct source once."""
        lengths = sources[1] + targets[1]
        if len(lengths) > 1 and len(lengths) * int(max(sources[1].max(), targets[1].max())) > TRIE_CELLS:
            return self._short_and_long_apart(sources, targets, lengths)
        encoded, row_of = self.stepper.encode(*sources)
        trie = build_trie(*targets, row_of)
        return score_trie(self.stepper, encoded, trie)[trie.leaf_of]

    def _short_and_long_apart(self, sources: IdPhrases, targets: IdPhrases, lengths: Lengths) -> Values:
        """Score short and long pairs separately: a few long phrases would make the whole trie wide."""
        order = np.argsort(lengths, kind="stable")
        values = np.empty(len(lengths))
        for part in np.array_split(order, 2):
            values[part] = self.log_probs(take_phrases(*sources, part), take_phrases(*targets, part))
        return values


@torch.inference_mode()
def score_trie(stepper: Stepper, encoded: Encoded, targets: Trie) -> Values:
    """Return natural log p of every distinct target given its root, the source, in the order of leaves.

    The device's work does not depend on its results, so the CPU waits for it only once, at the end.
    """
    leaves: list[Tensor] = []
    prefixes = stepper.start(encoded)
    totals = torch.zeros(len(prefixes.sources), dtype=torch.float64, device=stepper.device)
    there = copy_levels(targets.levels, stepper.device)
    for level, (words, parents, alive, ends) in zip(targets.levels, there, strict=True):
        blocks = node_blocks(level.parents, len(prefixes.sources), stepper.vocabulary_size, stepper.device)
        totals = totals.index_select(0, parents) + stepper.word_log_probs(encoded, prefixes, parents, words, blocks)
        leaves.append(totals.index_select(0, ends))
        totals = totals[alive]
        prefixes = stepper.step(encoded, prefixes, parents[alive], words[alive])
    log_probs: Values = torch.cat(leaves).cpu().numpy()
    return log_probs
