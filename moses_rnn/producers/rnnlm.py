"""A recurrent network as a language model of target sentences."""

from __future__ import annotations

import copy

import torch

from moses_rnn.inference.rnnlm import SentenceScores
from moses_rnn.models.batches import Lengths
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.rnnlm import Rnnlm
from moses_rnn.models.vocabulary import Ids
from moses_rnn.producers.base import HERE, Compute
from moses_rnn.producers.language_models import NetworkLanguageModel, Shares, Values


class RnnlmProducer(NetworkLanguageModel):
    """An RNNLM: log p of a target sentence, which depends on that sentence alone.

    Args:
        checkpoint: network and shortlist.
        compute: where and how.
        shares: of words outside the shortlist in the probability of ``<unk>``.
    """

    name = title = "RNNLM"

    def __init__(self, checkpoint: Checkpoint, compute: Compute = HERE, shares: Shares | None = None) -> None:
        super().__init__(checkpoint.target_vocabulary, shares)
        self._scores = SentenceScores(on_device(checkpoint.model, compute), compute.dtype)

    def _of_ids(self, ids: Ids, lengths: Lengths) -> Values:
        return self._scores.log_probs(ids, lengths)


def on_device(model: Rnnlm, compute: Compute) -> Rnnlm:
    """The network where it is to compute; of float64 if its products are, which the one given does not become."""
    if compute.dtype == torch.float64:
        return copy.deepcopy(model).to(compute.device, torch.float64)
    return model.to(compute.device)
