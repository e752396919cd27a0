"""A continuous-space translation model arranged for scoring: each distinct source is read once, without a trie."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from moses_rnn.inference.normalising import OutputLayer
from moses_rnn.inference.slots import SlottedPairs, distinct_rows
from moses_rnn.inference.steps import for_scoring, node_blocks
from moses_rnn.inference.trie_scoring import IdPhrases, Values
from moses_rnn.models.cstm import Cstm, CstmConfig
from moses_rnn.models.folders import Architecture
from moses_rnn.models.slots import in_slots
from moses_rnn.models.vocabulary import END_ID

Ints = npt.NDArray[np.int64]


class CstmPairs(SlottedPairs):
    """See `PairNetwork`; memory grows with the pairs that are scored together.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
        floor: what a pair scores that has a phrase longer than there are slots; None: it is refused.
    """

    def __init__(
        self,
        model: Cstm,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        floor: float | None = None,
    ) -> None:
        super().__init__(device, model.config.slots, floor)
        self._product_dtype, self._config = dtype, model.config
        self._model, kind = for_scoring(model, self.device, dtype)
        self._outputs = [OutputLayer(*self._model.output(k + 1), dtype, kind) for k in range(self._slots)]

    def _of_short(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        S = self._slots
        distinct, source_of = distinct_rows(in_slots(*sources, S, self._config.source_vocabulary_size))
        h = self._model.hidden(torch.from_numpy(distinct).to(self.device), self._product_dtype)
        words, order = in_slots(*targets, S, END_ID), np.argsort(source_of, kind="stable")
        ends, totals = np.minimum(targets[1] + 1, S)[order], np.zeros(len(order))
        for k in range(S):
            rows = np.flatnonzero(ends > k)  # by source
            if len(rows):
                totals[rows] += self._of_slot(k, h, source_of[order[rows]], words[order[rows], k])
        values = np.empty_like(totals)
        values[order] = totals
        return values

    def _of_slot(self, k: int, h: torch.Tensor, source_of: Ints, words: Ints) -> Values:
        """log p_k of words, each of one source; `source_of` is ascending."""
        needed, above = np.unique(source_of, return_inverse=True)
        rows, chosen, sources = (
            torch.from_numpy(np.ascontiguousarray(array)).to(self.device) for array in (above, words, needed)
        )
        blocks = node_blocks(above, len(needed), self._config.target_vocabulary_size, self.device)
        log_probs = self._outputs[k].chosen(h.index_select(0, sources), rows, chosen, blocks)
        values: Values = log_probs.double().cpu().numpy()
        return values


CSTM = Architecture(
    "cstm",
    "CSTM",
    "CSTM",
    ("source", "target"),
    CstmConfig,
    Cstm,
    pairs=CstmPairs,
    ends="its </s> included where it has a slot",
    format=2,
)
