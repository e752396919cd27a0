"""Score phrase pairs as tries: each distinct prefix is stepped and normalised once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.steps import SomeTerms, Stepper, node_blocks
from moses_rnn.networks.tries import Trie, build_trie, copy_levels, take_phrases
from moses_rnn.networks.vocabulary import Ids

Values = npt.NDArray[np.float64]
IdPhrases = tuple[Ids, Lengths]  # ids of all phrases, concatenated without end symbols; words of each phrase
TRIE_CELLS = 1 << 24  # maximum of pairs × longest phrase in one trie


class PairNetwork(Protocol):
    """A network prepared to score phrase pairs given as ids."""

    device: torch.device

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """Return natural log p(target | source) of at least one pair, both ``</s>`` included; pairs."""


class SteppedPairs:
    """Scores pairs with a stepper, level by level of a trie."""

    def __init__(self, stepper: Stepper[Any, Any]) -> None:
        self.stepper = stepper
        self.device = stepper.device

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """See `PairNetwork`; reads each distinct source once."""
        lengths = sources[1] + targets[1]
        if len(lengths) > 1 and len(lengths) * int(max(sources[1].max(), targets[1].max())) > TRIE_CELLS:
            return self._short_and_long_apart(sources, targets, lengths)
        distinct, row_of = without_repeats(*sources)
        terms, term_of = self.stepper.encode(*distinct)
        trie = build_trie(*targets, term_of[row_of])
        return score_trie(self.stepper, terms, trie)[trie.leaf_of]

    def _short_and_long_apart(self, sources: IdPhrases, targets: IdPhrases, lengths: Lengths) -> Values:
        """Score short and long pairs separately: a few long phrases would make the whole trie wide."""
        order = np.argsort(lengths, kind="stable")
        values = np.empty(len(lengths))
        for part in np.array_split(order, 2):
            values[part] = self.log_probs(take_phrases(*sources, part), take_phrases(*targets, part))
        return values


def without_repeats(ids: Ids, lengths: Lengths) -> tuple[IdPhrases, npt.NDArray[np.int64]]:
    """Drop phrases equal to the previous one; return the rest, and the row of each phrase in it."""
    before = np.repeat(np.append(0, lengths[:-1]), lengths)  # distance to the same word of the previous phrase
    equal = ids == ids[np.maximum(np.arange(len(ids)) - before, 0)]
    different = np.append(0, np.cumsum(~equal))
    ends = np.cumsum(lengths)
    new = (different[ends] != different[ends - lengths]) | (lengths != np.append(-1, lengths[:-1]))
    return (ids[np.repeat(new, lengths)], lengths[new]), np.cumsum(new) - 1


@torch.inference_mode()
def score_trie(stepper: Stepper[SomeTerms, Any], terms: SomeTerms, targets: Trie) -> npt.NDArray[np.float64]:
    """Return natural log p of every distinct target given its root, the source, in the order of leaves.

    The device's work does not depend on its results, so the CPU waits for it only once, at the end.
    """
    leaves: list[Tensor] = []
    prefixes = stepper.start(terms)
    totals = torch.zeros(len(prefixes.sources), dtype=torch.float64, device=stepper.device)
    there = copy_levels(targets.levels, stepper.device)
    for level, (words, parents, alive, ends) in zip(targets.levels, there, strict=True):
        blocks = node_blocks(level.parents, len(prefixes.sources), stepper.vocabulary_size, stepper.device)
        totals = totals.index_select(0, parents) + stepper.word_log_probs(terms, prefixes, parents, words, blocks)
        leaves.append(totals.index_select(0, ends))
        totals = totals[alive]
        prefixes = stepper.step(terms, prefixes, parents[alive], words[alive])
    log_probs: npt.NDArray[np.float64] = torch.cat(leaves).cpu().numpy()
    return log_probs
