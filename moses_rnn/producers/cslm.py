"""A CSLM as a language model of target sentences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from moses_rnn.inference.cslm import NGramScores
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.cslm import n_grams_of
from moses_rnn.models.vocabulary import END_ID, UNKNOWN_ID, Ids
from moses_rnn.producers.backoff import Backoff
from moses_rnn.producers.base import HERE, Compute, PhraseIds, Phrases, Scores, Tally
from moses_rnn.producers.language_models import Values, sums


class CslmProducer:
    """A CSLM: log p of a target sentence; words outside the shortlist count as ``<unk>``, or are backed off.

    Args:
        checkpoint: network and shortlist.
        compute: where and how; nothing is compiled.
        backoff: shares the probability of ``<unk>`` out among the words it stands for.
    """

    name = "CSLM"
    num_scores = 1

    def __init__(self, checkpoint: Checkpoint, compute: Compute = HERE, backoff: Backoff | None = None) -> None:
        self._network = NGramScores(checkpoint.model.to(compute.device), compute.dtype)
        self._ids_of = PhraseIds(checkpoint.target_vocabulary)
        self._order = checkpoint.model.config.order
        self._backoff = backoff
        rest = "backed off to an n-gram model" if backoff else "counted as <unk>"
        self.meaning = f"log p(target) of the CSLM, natural, </s> included; words outside the shortlist {rest}"

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        n_grams = self.n_grams(sentences)
        values = self._network.log_probs(n_grams)
        if self._backoff:
            unknown = np.flatnonzero(n_grams[:, -1] == UNKNOWN_ID)
            values[unknown] += self._backoff.log_shares(sentences, unknown)
        return values

    def log_probs(self, _sources: Phrases, targets: Phrases, _tally: Tally | None = None) -> Scores:
        """Natural logarithms; targets × 1."""
        return sums(self.word_log_probs(targets), targets)

    def unknown(self, sentences: Phrases) -> npt.NDArray[np.bool_]:
        """Which words are outside the shortlist; as `word_log_probs`."""
        unknown: npt.NDArray[np.bool_] = self.n_grams(sentences)[:, -1] == UNKNOWN_ID
        return unknown

    def n_grams(self, sentences: Phrases) -> Ids:
        """One n-gram for each word and end; n × order."""
        if not sentences:
            return np.zeros((0, self._order), np.int64)
        ids, lengths = self._ids_of(sentences)
        begin = self._network.model.config.vocabulary_size
        padded = lengths + self._order  # (order - 1) × <s>, the words, </s>
        firsts = np.cumsum(padded) - padded
        flat = np.full(int(padded.sum()), begin, np.int64)
        within = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flat[np.repeat(firsts + self._order - 1, lengths) + within] = ids
        flat[firsts + padded - 1] = END_ID
        return n_grams_of(flat, np.flatnonzero(flat != begin), self._order)
