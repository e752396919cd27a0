"""Targets scored as tries: each distinct prefix of a source is stepped once, and the words after it normalised once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.inference.steps import SomeTerms, Stepper, node_blocks
from moses_rnn.inference.tries import Trie, copy_levels


@torch.inference_mode()
def score_trie(stepper: Stepper[SomeTerms, Any], terms: SomeTerms, targets: Trie) -> npt.NDArray[np.float64]:
    """log p of every distinct target given the source that is its root.

    What the device has to do is decided without a look at its results, so that the processor waits for it only once, at
    the end.

    Args:
        stepper: the network.
        terms: of the sources; a row for each root.
        targets: tries below their sources.

    Returns:
        Natural logarithms, ``</s>`` included, in the order of the trie's leaves.
    """
    leaves: list[Tensor] = []
    prefixes = stepper.start(terms)
    totals = torch.zeros(len(prefixes.sources), dtype=torch.float64, device=stepper.device)
    there = copy_levels(targets.levels, stepper.device)
    for level, (words, parents, alive, ends) in zip(targets.levels, there, strict=True):
        blocks = node_blocks(level.parents, len(prefixes.sources), stepper.words, stepper.device)
        totals = totals.index_select(0, parents) + stepper.word_log_probs(terms, prefixes, parents, words, blocks)
        leaves.append(totals.index_select(0, ends))
        totals = totals[alive]
        prefixes = stepper.step(terms, prefixes, parents[alive], words[alive])
    log_probs: npt.NDArray[np.float64] = torch.cat(leaves).cpu().numpy()
    return log_probs
