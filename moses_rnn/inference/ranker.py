"""A ranker arranged for scoring: each distinct phrase of a side is multiplied once."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.inference.slots import SlottedPairs, distinct_rows
from moses_rnn.inference.steps import for_scoring
from moses_rnn.inference.trie_scoring import IdPhrases, Values
from moses_rnn.models.folders import Architecture
from moses_rnn.models.learning_curves import RANKED_WRONG
from moses_rnn.models.ranker import Ranker, RankerConfig, Side
from moses_rnn.models.slots import in_slots


class RankerPairs(SlottedPairs):
    """See `PairNetwork`, whose "log-probabilities" are here the ranker's scores s.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
        floor: what a pair scores that has a phrase longer than there are slots; None: it is refused.
    """

    def __init__(
        self,
        model: Ranker,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        floor: float | None = None,
    ) -> None:
        super().__init__(device, model.config.slots, floor)
        self._model, self._dtype = for_scoring(model, self.device, dtype)
        self._halves = [half.to(dtype).contiguous() for half in self._model.W_1.chunk(2, 1)]  # of source, of target

    def _of_short(self, sources: IdPhrases, targets: IdPhrases) -> Values:
        source, target = self._halves
        projected = self._half(sources, self._model.source, source) + self._half(targets, self._model.target, target)
        values: Values = self._model.read_out(projected).double().cpu().numpy()
        return values

    def _half(self, phrases: IdPhrases, side: Side, W: Tensor) -> Tensor:
        """What a side's words add to W_1 u; pairs × A."""
        distinct, row_of = distinct_rows(in_slots(*phrases, self._slots, len(side.embedding) - 1))
        e = side(torch.from_numpy(distinct).to(self.device))
        product = linear(e.to(W.dtype), W).to(self._dtype)
        return product.index_select(0, torch.from_numpy(row_of).to(self.device))


RANKER = Architecture(
    "ranker",
    "ranker",
    "RANK",
    ("source", "target"),
    RankerConfig,
    Ranker,
    pairs=RankerPairs,
    ends="without </s>",
    unbounded=True,
    format=2,
    measure=RANKED_WRONG,
)
