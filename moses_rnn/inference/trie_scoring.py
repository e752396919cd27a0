"""Targets scored as tries: each distinct prefix of a source is stepped once, and the words after it normalised once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.inference.steps import SomeTerms, Stepper
from moses_rnn.inference.tries import Trie


@torch.inference_mode()
def score_trie(stepper: Stepper[SomeTerms, Any], terms: SomeTerms, targets: Trie) -> npt.NDArray[np.float64]:
    """log p of every distinct target given the source that is its root.

    Args:
        stepper: the network.
        terms: of the sources; a row for each root.
        targets: tries below their sources.

    Returns:
        Natural logarithms, ``</s>`` included, in the order of the trie's leaves.
    """

    def on_device(ids: npt.NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(ids).to(stepper.device)

    leaves: list[Tensor] = []
    prefixes = stepper.start(terms)
    totals = torch.zeros(len(prefixes.sources), dtype=torch.float64, device=stepper.device)
    for level in targets.levels:
        parents, words = on_device(level.parents), on_device(level.words)
        totals = totals.index_select(0, parents) + stepper.word_log_probs(terms, prefixes, parents, words)
        leaves.append(totals.index_select(0, on_device(level.leaves)))
        alive = on_device(level.alive)
        totals = totals[alive]
        prefixes = stepper.step(terms, prefixes, parents[alive], words[alive])
    log_probs: npt.NDArray[np.float64] = torch.cat(leaves).cpu().numpy()
    return log_probs
