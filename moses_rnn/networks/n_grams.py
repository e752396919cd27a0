"""What feed-forward language models have in common: the words before in, one summary and one softmax out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from moses_rnn.networks.batches import Lengths, distinct_rows
from moses_rnn.networks.config import Limits, draw_uniformly
from moses_rnn.networks.hardware import EAGER
from moses_rnn.networks.network import Drop, Unread, WordPrefixes, WordStepper, keep
from moses_rnn.networks.softmax import chosen_log_probs
from moses_rnn.networks.vocabulary import END_ID, Ids

Order = Annotated[int, Limits(2, 64)]
Values = npt.NDArray[np.float64]
INITIAL_RANGE = 0.01  # of a feed-forward one's weights: that of the CSLM of Cho et al. 2014, section 4.1.2


class NGramNetwork(nn.Module):
    """p(w | the n - 1 words before) = softmax(output · summary + b_G).

    Ids are the vocabulary's; what stands before a sentence, ``<s>``, has the id K, which is never predicted. The
    `config` has an `order` n and a `description`.
    """

    config: Any

    def initialise(self, seed: int, deviation: float = INITIAL_RANGE) -> None:
        """Draw all weights uniformly from ±`deviation`; equal seeds give equal weights."""
        draw_uniformly(self, seed, deviation)

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """See `NetworkOfPairs`; the last row is that of ``<s>``."""
        return {"target": self.get_parameter("embedding")}

    @property
    @abstractmethod
    def bias(self) -> Tensor:
        """b_G; K."""

    @property
    def vocabulary_size(self) -> int:
        """K, how many words can be predicted, ``<unk>`` and ``</s>`` among them."""
        return len(self.bias)

    @property
    @abstractmethod
    def output(self) -> Tensor:
        """What gives the words' logits; K × R."""

    @abstractmethod
    def summary(self, contexts: Tensor, product_dtype: torch.dtype | None = None, drop: Drop = keep) -> Tensor:
        """What some contexts come to; n × R.

        Args:
            contexts: ids of the words before, oldest first; n × (order - 1).
            product_dtype: the type that matrix products are computed in; by default that of the weights.
            drop: leaves units out, for training.
        """

    def log_probs(
        self, contexts: Tensor, words: Tensor, product_dtype: torch.dtype | None = None, drop: Drop = keep
    ) -> tuple[Tensor, Tensor]:
        """log p(w | context) and log Z of some n-grams; n each. Arguments as of `summary`, words: n."""
        dtype = product_dtype or self.bias.dtype
        output, summary = self.output, self.summary(contexts, dtype, drop)
        log_p = chosen_log_probs(summary, output, self.bias, words, dtype, EAGER)
        rows = output.index_select(0, words).to(dtype)
        chosen = (summary.to(dtype) * rows).to(self.bias.dtype).sum(1) + self.bias.index_select(0, words)
        return log_p, chosen - log_p


# -- scoring: each distinct n-gram once, each distinct context normalised once

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
        """log p of the last word of each n-gram, natural; n.

        Args:
            n_grams: ids, oldest word first; n × order.
        """
        values = np.empty(len(n_grams))
        if not len(n_grams):
            return values
        distinct, place = distinct_rows(n_grams)
        context_of = np.append(0, np.cumsum((distinct[1:, :-1] != distinct[:-1, :-1]).any(1)))
        first_of = np.append(np.flatnonzero(np.diff(context_of, prepend=-1)), len(distinct))  # n-grams are sorted
        log_p = np.empty(len(distinct))
        for first in range(0, len(first_of) - 1, ROWS):
            last = min(first + ROWS, len(first_of) - 1)
            rows = slice(first_of[first], first_of[last])
            contexts = distinct[first_of[first:last], :-1]
            log_p[rows] = self._score_contexts(contexts, context_of[rows] - first, distinct[rows, -1])
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

    def _score_contexts(self, contexts: Ids, context_of: Ids, words: Ids) -> Values:
        whole = np.zeros((ROWS, contexts.shape[1]), np.int64)
        whole[: len(contexts)] = contexts
        summary = self.model.summary(torch.from_numpy(whole).to(self._device), self._precision)
        logits = linear(summary.to(self._precision), self._output.to(self._precision)).float() + self.model.bias
        log_Z = torch.logsumexp(logits, 1)
        rows, chosen = (torch.from_numpy(part).to(self._device) for part in (context_of, words))
        return cast("Values", (logits[rows, chosen] - log_Z[rows]).double().cpu().numpy())


def n_grams_of(flat: npt.NDArray[np.integer[Any]], positions: Ids, order: int) -> Ids:
    """The n-grams that end at some places of a text; n × order.

    Args:
        flat: ids of sentences end to end, each behind order - 1 times ``<s>``.
        positions: of the last words.
        order: n.
    """
    n_grams: Ids = flat[positions[:, None] + np.arange(1 - order, 1)].astype(np.int64)
    return n_grams


# -- sampling


class NGramStepper(WordStepper):
    """A feed-forward language model, stepped word by word; a state is the n - 1 words before, oldest first."""

    _model: NGramNetwork

    def _prepare(self) -> None:
        self._make_output(self._model.output, self._model.bias)

    def _begin(self) -> Tensor:
        return torch.full((1, self._model.config.order - 1), self.vocabulary_size, device=self.device)

    def _next(self, states: Tensor, words: Tensor) -> Tensor:
        return torch.cat([states[:, 1:], words[:, None]], 1)

    def _read_out(self, terms: Unread, prefixes: WordPrefixes) -> Tensor:
        return self._model.summary(prefixes.state, self._product_dtype)
