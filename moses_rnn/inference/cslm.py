"""A feed-forward language model for scoring: each distinct n-gram once, each distinct context normalised once."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from torch.nn.functional import linear

from moses_rnn.models.batches import Lengths
from moses_rnn.models.bengio import Bengio, BengioConfig
from moses_rnn.models.cslm import Cslm, CslmConfig, Values, n_grams_of
from moses_rnn.models.folders import Architecture
from moses_rnn.models.language_models import NGramNetwork
from moses_rnn.models.vocabulary import END_ID, Ids

ROWS = 512  # n-grams computed together; always so many, so that a value does not depend on its company


class NGramScores:
    """Scores n-grams; each distinct one once, whatever company it comes in.

    Args:
        model: a network, which goes to the device.
        device: where to compute.
        dtype: of the matrix products.
    """

    def __init__(
        self, model: NGramNetwork, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.model = model.to(device)
        self._precision = dtype
        self._device = model.bias.device
        self._output = model.output.detach()  # which may be put together of several matrices

    def log_probs(self, ids: Ids, lengths: Lengths) -> Values:
        """See `WordNetwork`."""
        return self.n_gram_log_probs(self.n_grams(ids, lengths))

    def n_grams(self, ids: Ids, lengths: Lengths) -> Ids:
        """One n-gram for each word and end of sentences, given as of `log_probs`; n × order."""
        order, begin = self.model.config.order, self.model.words
        padded = lengths + order  # (order - 1) × <s>, the words, </s>
        firsts = np.cumsum(padded) - padded
        flat = np.full(int(padded.sum()), begin, np.int64)
        within = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flat[np.repeat(firsts + order - 1, lengths) + within] = ids
        flat[firsts + padded - 1] = END_ID
        return n_grams_of(flat, np.flatnonzero(flat != begin), order)

    @torch.inference_mode()
    def n_gram_log_probs(self, n_grams: Ids) -> Values:
        """log p of the last word of each n-gram, natural; n.

        Args:
            n_grams: ids, oldest word first; n × order.
        """
        values = np.empty(len(n_grams))
        if not len(n_grams):
            return values
        distinct, place = _distinct_rows(n_grams)
        context_of = np.append(0, np.cumsum((distinct[1:, :-1] != distinct[:-1, :-1]).any(1)))
        first_of = np.append(np.flatnonzero(np.diff(context_of, prepend=-1)), len(distinct))  # n-grams are sorted
        log_p = np.empty(len(distinct))
        for first in range(0, len(first_of) - 1, ROWS):
            last = min(first + ROWS, len(first_of) - 1)
            rows = slice(first_of[first], first_of[last])
            contexts = distinct[first_of[first:last], :-1]
            log_p[rows] = self._of_contexts(contexts, context_of[rows] - first, distinct[rows, -1])
        values[:] = log_p[place]
        return values

    @torch.inference_mode()
    def log_normalisers(self, n_grams: Ids) -> Values:
        """log Z of each n-gram's context; n. Arguments as of `n_gram_log_probs`."""
        parts = [np.zeros(0)]
        for first in range(0, len(n_grams), ROWS):
            contexts = torch.from_numpy(n_grams[first : first + ROWS, :-1]).to(self._device)
            logits = linear(self.model.summary(contexts), self._output, self.model.bias)
            parts.append(torch.logsumexp(logits, 1).double().cpu().numpy())
        return np.concatenate(parts)

    def _of_contexts(self, contexts: Ids, context_of: Ids, words: Ids) -> Values:
        whole = np.zeros((ROWS, contexts.shape[1]), np.int64)
        whole[: len(contexts)] = contexts
        summary = self.model.summary(torch.from_numpy(whole).to(self._device), self._precision)
        logits = linear(summary.to(self._precision), self._output.to(self._precision)).float() + self.model.bias
        log_Z = torch.logsumexp(logits, 1)
        rows, chosen = (torch.from_numpy(part).to(self._device) for part in (context_of, words))
        return cast("Values", (logits[rows, chosen] - log_Z[rows]).double().cpu().numpy())


def _distinct_rows(rows: Ids) -> tuple[Ids, Ids]:
    """The distinct rows in order, and which one each row is."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(1))
    place = np.empty(len(rows), np.int64)
    place[order] = np.cumsum(new) - 1
    return ordered[new], place


CSLM = Architecture("cslm", "CSLM", "CSLM", ("target",), CslmConfig, Cslm, words=NGramScores)
BENGIO = Architecture(
    "bengio", "NPLM of Bengio et al.", "NPLM", ("target",), BengioConfig, Bengio, words=NGramScores, format=2
)
