"""A continuous-space translation model arranged for scoring: each distinct source is read once, without a trie."""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt
import torch

from moses_rnn.inference.normalising import OutputLayer
from moses_rnn.inference.steps import node_blocks
from moses_rnn.inference.trie_scoring import IdPhrases
from moses_rnn.inference.tries import take_phrases
from moses_rnn.models.cstm import Cstm, check_length
from moses_rnn.models.hardware import EAGER, Kernel
from moses_rnn.models.vocabulary import END_ID

Ints = npt.NDArray[np.int64]


class CstmPairs:
    """See `PairNetwork`; memory grows with the pairs that are scored together.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
        kernel: does the work of the output layers.
        floor: what a pair scores that has a phrase longer than there are slots; None: it is refused.
    """

    def __init__(
        self,
        model: Cstm,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        kernel: Kernel = EAGER,
        floor: float | None = None,
    ) -> None:
        self.device = torch.device(device)
        self._product_dtype, self._floor, self._config = dtype, floor, model.config
        kind = torch.float64 if dtype == torch.float64 else torch.float32
        self._model = copy.deepcopy(model).requires_grad_(False).to(self.device, kind)
        self._model.use_kernel(EAGER)
        self._outputs = [
            OutputLayer(*self._model.output(k + 1), dtype, kind, kernel) for k in range(self._config.slots)
        ]

    @torch.inference_mode()
    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> npt.NDArray[np.float64]:
        """See `PairNetwork`.

        Raises:
            PairError: a phrase is longer than there are slots, and nothing stands for its score.
        """
        longest = np.maximum(sources[1], targets[1])
        if self._floor is None:
            check_length(int(longest.max()), self._config.slots)
        values = np.full(len(longest), np.nan if self._floor is None else self._floor)
        short = np.flatnonzero(longest <= self._config.slots)
        if len(short):
            values[short] = self._short(take_phrases(*sources, short), take_phrases(*targets, short))
        return values

    def _short(self, sources: IdPhrases, targets: IdPhrases) -> npt.NDArray[np.float64]:
        """Of pairs whose phrases have their slots."""
        S = self._config.slots
        distinct, source_of = np.unique(
            _slotted(sources, S, self._config.source_vocabulary_size), axis=0, return_inverse=True
        )
        h = self._model.hidden(torch.from_numpy(distinct).to(self.device), self._product_dtype)
        words, order = _slotted(targets, S, END_ID), np.argsort(source_of.ravel(), kind="stable")
        ends, totals = np.minimum(targets[1] + 1, S)[order], np.zeros(len(order))
        for k in range(S):
            rows = np.flatnonzero(ends > k)  # by source
            if len(rows):
                totals[rows] += self._of_slot(k, h, source_of.ravel()[order[rows]], words[order[rows], k])
        values = np.empty_like(totals)
        values[order] = totals
        return values

    def _of_slot(self, k: int, h: torch.Tensor, source_of: Ints, words: Ints) -> npt.NDArray[np.float64]:
        """log p_k of words, each of one source; `source_of` is ascending."""
        needed, above = np.unique(source_of, return_inverse=True)
        rows, chosen, sources = (
            torch.from_numpy(np.ascontiguousarray(array)).to(self.device) for array in (above, words, needed)
        )
        blocks = node_blocks(above, len(needed), self._config.target_vocabulary_size, self.device)
        log_probs = self._outputs[k].chosen(h.index_select(0, sources), rows, chosen, blocks)
        values: npt.NDArray[np.float64] = log_probs.double().cpu().numpy()
        return values


def _slotted(phrases: IdPhrases, slots: int, otherwise: int) -> Ints:
    """Phrases with a column for each slot, and an id where they have no word."""
    ids, lengths = phrases
    table = np.full((len(lengths), slots), otherwise, np.int64)
    table[np.arange(slots)[None, :] < lengths[:, None]] = ids
    return table
