"""Phrase pairs scored as tries: each distinct prefix is stepped once, and the words after it normalised once."""

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
IdPhrases = tuple[Ids, Lengths]  # ids of all phrases end to end, without end symbols; words of each phrase
TRIE_CELLS = 1 << 24  # pairs × longest phrase from which a trie is built


class PairNetwork(Protocol):
    """A network arranged to score phrase pairs, ids in."""

    device: torch.device

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """log p(target | source) of at least one pair, natural, both ``</s>`` included; pairs."""


class SteppedPairs:
    """A network that steps word by word, level by level of its tries."""

    def __init__(self, stepper: Stepper[Any, Any]) -> None:
        self.stepper = stepper
        self.device = stepper.device

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        """See `PairNetwork`; each distinct source is read once."""
        lengths = sources[1] + targets[1]
        if len(lengths) > 1 and len(lengths) * int(max(sources[1].max(), targets[1].max())) > TRIE_CELLS:
            return self._short_and_long_apart(sources, targets, lengths)
        distinct, row_of = without_repeats(*sources)
        terms, term_of = self.stepper.encode(*distinct)
        trie = build_trie(*targets, term_of[row_of])
        return score_trie(self.stepper, terms, trie)[trie.leaf_of]

    def _short_and_long_apart(self, sources: IdPhrases, targets: IdPhrases, lengths: Lengths) -> Values:
        """A few long phrases among many would make a wide trie of all."""
        order = np.argsort(lengths, kind="stable")
        values = np.empty(len(lengths))
        for part in np.array_split(order, 2):
            values[part] = self.log_probs(take_phrases(*sources, part), take_phrases(*targets, part))
        return values


def without_repeats(ids: Ids, lengths: Lengths) -> tuple[IdPhrases, npt.NDArray[np.int64]]:
    """Phrases without those that equal the one before, and the row of each phrase among them."""
    before = np.repeat(np.append(0, lengths[:-1]), lengths)  # a word's place less its counterpart's, of equal lengths
    equal = ids == ids[np.maximum(np.arange(len(ids)) - before, 0)]
    different = np.append(0, np.cumsum(~equal))
    ends = np.cumsum(lengths)
    new = (different[ends] != different[ends - lengths]) | (lengths != np.append(-1, lengths[:-1]))
    return (ids[np.repeat(new, lengths)], lengths[new]), np.cumsum(new) - 1


@torch.inference_mode()
def score_trie(stepper: Stepper[SomeTerms, Any], terms: SomeTerms, targets: Trie) -> npt.NDArray[np.float64]:
    """log p of every distinct target given the source that is its root, in the order of leaves; natural.

    What the device has to do is decided without a look at its results, so that the processor waits for it only once, at
    the end.
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
