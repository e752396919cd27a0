"""Learning language models from a text: n-grams in random order, or sentences in batches of similar length."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from moses_rnn.networks.batches import Batch, Lengths
from moses_rnn.networks.n_grams import n_grams_of
from moses_rnn.networks.network import Drop, keep
from moses_rnn.networks.vocabulary import Ids
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Positions
from moses_rnn.training.ranks import Workers
from moses_rnn.training.task import ORDER, Cost, Task, batches_by_length, blocks_of_words
from moses_rnn.training.texts import BLOCK, Text, TextCorpus

WITHIN = 1  # random stream of an epoch: of the n-grams in each block
EVALUATION_ROWS = 2048  # n-grams at once when nothing is learned from them
EVALUATION_WORDS = 4096  # words of sentences likewise


def _identity(corpus: TextCorpus, **learning: float) -> dict[str, Any]:
    digests = [hashlib.sha256(text.flat.data).hexdigest() for text in (corpus.text, corpus.held_out)]
    return {"text": digests[0], "held-out text": digests[1], **learning}


class NGrams(Task):
    """The task of a CSLM, or of Bengio's network.

    Args:
        model, corpus, config: as of any task.
        self_normalise: α of a penalty α (log Z)² on what is learned.
    """

    unit = "n-grams"

    def __init__(
        self, model: nn.Module, corpus: TextCorpus, config: TrainingConfig, self_normalise: float = 0.0
    ) -> None:
        identity = _identity(corpus, self_normalise=self_normalise)
        super().__init__(model, config, identity, corpus.text.tokens())
        self._text, self._held_out, self._self_normalise = corpus.text, corpus.held_out, self_normalise

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """Every n-gram comes once. Blocks of the text come in random order, and the n-grams of a block too."""
        size, seed = self.config.batch_size, self.config.seed
        blocks = range(0, len(self._text.flat), BLOCK)
        before = 0
        for number in np.random.default_rng((seed, epoch, ORDER)).permutation(len(blocks)):
            positions = self._text.predicted(blocks[number], blocks[number] + BLOCK)
            shuffled = np.random.default_rng((seed, epoch, WITHIN, number)).permutation(positions)
            cut = range(0, len(shuffled), size)
            for start in cut[max(first - before, 0) :]:
                yield shuffled[start : start + size]
            before += len(cut)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities, and the penalty on log Z."""
        log_p, log_Z = self._log_probs(self._text, rows, self.drop(step, part))
        nats = -log_p.sum()
        penalty = self._self_normalise * (log_Z**2).sum()
        return Cost(nats + penalty, nats.item(), len(rows))

    def held_out(self, workers: Workers) -> dict[str, float]:
        """Mean cost of a held-out token, words outside the shortlist counted as one; mean |log Z|."""
        costs = workers.each(self._exact_cost, range(0, len(self._held_out.flat), EVALUATION_ROWS))
        nats, size, tokens = (sum(column) for column in zip(*costs, strict=True))
        return {"nats_per_token": nats / tokens, "mean_abs_log_z": size / tokens}

    @torch.no_grad()
    def _exact_cost(self, start: int) -> tuple[float, float, int]:
        rows = self._held_out.predicted(start, start + EVALUATION_ROWS)
        if not len(rows):
            return 0.0, 0.0, 0
        log_p, log_Z = self._log_probs(self._held_out, rows)
        return -log_p.double().sum().item(), log_Z.double().abs().sum().item(), len(rows)

    def _log_probs(self, text: Text, rows: Positions, drop: Drop = keep) -> tuple[Tensor, Tensor]:
        n_grams = torch.from_numpy(n_grams_of(text.flat, rows, self.model.config.order)).to(self.device)
        log_p, log_Z = self.model.log_probs(n_grams[:, :-1], n_grams[:, -1], self.product_dtype, drop)
        return log_p, log_Z


class Sentences(Task):
    """The task of an RNNLM, of a text that has one ``<s>`` before each sentence.

    Args:
        model, corpus, config: as of any task.
        bptt: how many steps back the error of a word is followed; 0: to its sentence's beginning.
    """

    unit = "sentences"

    def __init__(self, model: nn.Module, corpus: TextCorpus, config: TrainingConfig, bptt: int = 0) -> None:
        self._text, self._held_out, self._bptt = _Lines(corpus.text), _Lines(corpus.held_out), bptt
        super().__init__(model, config, _identity(corpus, bptt=bptt), len(self._text.lengths))

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `batches_by_length`."""
        return batches_by_length(np.arange(self.examples), self._text.by_length, self.config, epoch, first)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities of all words and ends."""
        nats, tokens = self._nats(self._text, rows, self.drop(step, part))
        return Cost(nats, nats.item(), tokens)

    def held_out(self, workers: Workers) -> dict[str, float]:
        """Mean cost of a held-out token, words outside the shortlist counted as one."""
        costs = workers.each(self._exact_cost, list(self._held_out.blocks()))
        nats, tokens = (sum(column) for column in zip(*costs, strict=True))
        return {"nats_per_token": nats / tokens}

    def describe(self) -> str:
        """The network, and how far errors are followed."""
        steps = f"{self._bptt} steps back" if self._bptt else "to the sentence's beginning"
        return f"{super().describe()}, errors followed {steps}"

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, int]:
        nats, tokens = self._nats(self._held_out, rows)
        return nats.item(), tokens

    def _nats(self, lines: _Lines, rows: Positions, drop: Drop = keep) -> tuple[Tensor, int]:
        sentences = Batch.from_flat(*lines.take(lines.by_length(rows)), self.device)
        log_p = self.model.word_log_probs(sentences, self.product_dtype, drop, self._bptt)
        return -log_p.sum(), len(log_p)


class _Lines:
    """Sentences of a text by their number."""

    def __init__(self, text: Text) -> None:
        self._flat = text.flat
        self._begins = np.flatnonzero(text.flat == text.begin_id) + 1
        self.lengths: Lengths = np.diff(self._begins, append=len(text.flat) + 1) - 2  # without <s> and </s>

    def by_length(self, rows: Positions) -> Positions:
        """Sentences sorted by length, longest first; of equally long ones the first stays the first."""
        return rows[np.argsort(-self.lengths[rows], kind="stable")]

    def take(self, rows: Positions) -> tuple[Ids, Lengths]:
        """Their ids end to end, without end symbols, and the words of each."""
        lengths = self.lengths[rows]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        ids: Ids = self._flat[np.repeat(self._begins[rows], lengths) + within]
        return ids, lengths

    def blocks(self) -> Iterator[Positions]:
        """All sentences, longest first, in blocks that hold a bounded number of words."""
        order = self.by_length(np.arange(len(self.lengths)))
        return blocks_of_words(order, self.lengths[order], EVALUATION_WORDS)
