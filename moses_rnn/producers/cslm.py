"""Feed-forward networks as language models of target sentences."""

from __future__ import annotations

import numpy as np

from moses_rnn.formats.pairs import Phrases
from moses_rnn.inference.cslm import NGramScores
from moses_rnn.models.batches import Lengths
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.cslm import n_grams_of
from moses_rnn.models.vocabulary import END_ID, Ids
from moses_rnn.producers.base import HERE, Compute
from moses_rnn.producers.language_models import NetworkLanguageModel, Shares, Values


class CslmProducer(NetworkLanguageModel):
    """A CSLM: log p of a target sentence; words outside the shortlist count as ``<unk>``, or are backed off.

    Args:
        checkpoint: network and shortlist.
        compute: where and how.
        backoff: shares the probability of ``<unk>`` out among the words it stands for.
    """

    name = title = "CSLM"

    def __init__(self, checkpoint: Checkpoint, compute: Compute = HERE, backoff: Shares | None = None) -> None:
        super().__init__(checkpoint.target_vocabulary, backoff)
        self._network = NGramScores(checkpoint.model.to(compute.device), compute.dtype)
        self._order = checkpoint.model.config.order

    def n_grams(self, sentences: Phrases) -> Ids:
        """One n-gram for each word and end; n × order."""
        if not sentences:
            return np.zeros((0, self._order), np.int64)
        return self._n_grams(*self._ids_of(sentences))

    def _of_ids(self, ids: Ids, lengths: Lengths) -> Values:
        return self._network.log_probs(self._n_grams(ids, lengths))

    def _n_grams(self, ids: Ids, lengths: Lengths) -> Ids:
        begin = self._network.model.words
        padded = lengths + self._order  # (order - 1) × <s>, the words, </s>
        firsts = np.cumsum(padded) - padded
        flat = np.full(int(padded.sum()), begin, np.int64)
        within = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flat[np.repeat(firsts + self._order - 1, lengths) + within] = ids
        flat[firsts + padded - 1] = END_ID
        return n_grams_of(flat, np.flatnonzero(flat != begin), self._order)


class NplmProducer(CslmProducer):
    """Bengio's network likewise."""

    name, title = "NPLM", "NPLM of Bengio et al."
