"""Shared code of feed-forward language models: preceding words in, one summary and one softmax out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from moses_rnn.networks.batches import Lengths, Values, distinct_rows, row_slices
from moses_rnn.networks.network import Drop, LanguageNetwork, WordPrefixes, WordStepper, for_scoring, keep
from moses_rnn.networks.softmax import chosen_log_probs
from moses_rnn.networks.vocabulary import END_ID, Ids
from moses_rnn.options import Option

Order = Annotated[int, Option(min=2, max=64)]


class NGramNetwork(LanguageNetwork):
    """p(w | the n - 1 words before) = softmax(G · summary + b_G); the `config` has an `order` n."""

    deviation = 0.01  # that of the CSLM of Cho et al. 2014, section 4.1.2

    @abstractmethod
    def summary(self, contexts: Tensor, drop: Drop = keep) -> Tensor:
        """Return the summary (n × R) of the preceding words, oldest first (n × (order - 1))."""

    def log_probs(self, contexts: Tensor, words: Tensor, drop: Drop = keep) -> tuple[Tensor, Tensor]:
        """Return log p(w | context) and log Z of n-grams; n each."""
        G, b_G = self.output
        rounded, summary = self.kernel.rounded, self.summary(contexts, drop)
        log_p = chosen_log_probs(summary, G, b_G, words, self.kernel)
        rows = rounded(G.index_select(0, words))
        chosen = (rounded(summary) * rows).to(b_G.dtype).sum(1) + b_G.index_select(0, words)
        return log_p, chosen - log_p


# -- scoring: scores each distinct n-gram and normalises each distinct context once

ROWS = 512  # contexts computed together; always this many, so that a value does not depend on its batch


class NGramScores:
    """Scores each distinct n-gram once, independently of its batch; `dtype` is that of matrix products."""

    def __init__(
        self, model: NGramNetwork, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.model, _ = for_scoring(model, device, dtype)
        self._G, self._b_G = self.model.output
        self._device = self._b_G.device

    def log_probs(self, ids: Ids, lengths: Lengths) -> Values:
        """See `WordNetwork`."""
        return self.n_gram_log_probs(self.n_grams(ids, lengths))

    def n_grams(self, ids: Ids, lengths: Lengths) -> Ids:
        """Return an n-gram for each word and end of sentences, given as in `log_probs`; n × order."""
        order, begin = self.model.config.order, self.model.vocabulary_size
        padded = lengths + order  # (order - 1) × <s>, the words, </s>
        firsts = np.cumsum(padded) - padded
        flat = np.full(int(padded.sum()), begin, np.int64)
        within = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flat[np.repeat(firsts + order - 1, lengths) + within] = ids
        flat[firsts + padded - 1] = END_ID
        return n_grams_of(flat, np.flatnonzero(flat != begin), order)

    @torch.inference_mode()
    def n_gram_log_probs(self, n_grams: Ids) -> Values:
        """Return natural log p of the last word of each n-gram (n × order, oldest word first); n."""
        if not len(n_grams):
            return np.empty(0)
        distinct, place = distinct_rows(n_grams)
        context_of = np.append(0, np.cumsum((distinct[1:, :-1] != distinct[:-1, :-1]).any(1)))
        first_of = np.append(np.flatnonzero(np.diff(context_of, prepend=-1)), len(distinct))  # n-grams are sorted
        log_p = np.empty(len(distinct))
        for some in row_slices(len(first_of) - 1, ROWS):
            rows = slice(first_of[some.start], first_of[some.stop])
            contexts = distinct[first_of[some], :-1]
            log_p[rows] = self._score_contexts(contexts, context_of[rows] - some.start, distinct[rows, -1])
        values: Values = log_p[place]
        return values

    @torch.inference_mode()
    def log_normalisers(self, n_grams: Ids) -> Values:
        """Return log Z of each n-gram's context; n."""
        parts = [np.zeros(0)]
        for rows in row_slices(len(n_grams), ROWS):
            contexts = torch.from_numpy(n_grams[rows, :-1]).to(self._device)
            logits = linear(self.model.summary(contexts), self._G, self._b_G)
            parts.append(torch.logsumexp(logits, 1).double().cpu().numpy())
        return np.concatenate(parts)

    def _score_contexts(self, contexts: Ids, context_of: Ids, words: Ids) -> Values:
        whole = np.pad(contexts, ((0, ROWS - len(contexts)), (0, 0)))
        rounded, summary = self.model.kernel.rounded, self.model.summary(torch.from_numpy(whole).to(self._device))
        logits = linear(rounded(summary), rounded(self._G)).to(self._b_G.dtype) + self._b_G
        log_Z = torch.logsumexp(logits, 1)
        rows, chosen = (torch.from_numpy(part).to(self._device) for part in (context_of, words))
        return cast("Values", (logits[rows, chosen] - log_Z[rows]).double().cpu().numpy())


def n_grams_of(flat: Ids, positions: Ids, order: int) -> Ids:
    """Return the n-grams that end at `positions`; each sentence follows order - 1 times ``<s>``; n × order."""
    n_grams: Ids = flat[positions[:, None] + np.arange(1 - order, 1)].astype(np.int64)
    return n_grams


# -- sampling


class NGramStepper(WordStepper):
    """Steps a feed-forward language model word by word; a state is the last n - 1 words, oldest first."""

    _model: NGramNetwork

    def _begin(self) -> Tensor:
        return torch.full((1, self._model.config.order - 1), self.vocabulary_size, device=self.device)

    def _next(self, states: Tensor, words: Tensor) -> Tensor:
        return torch.cat([states[:, 1:], words[:, None]], 1)

    def _read_out(self, encoded: tuple[Tensor], prefixes: WordPrefixes) -> Tensor:
        return self._model.summary(prefixes.state)
