"""Learning a recurrent language model from the sentences of a text: batches of sentences of similar length."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import torch

from moses_rnn.networks.batches import Batch, Lengths
from moses_rnn.networks.dropout import Drop, drop_units, keep
from moses_rnn.networks.learning_curves import NATS
from moses_rnn.networks.rnnlm import Rnnlm
from moses_rnn.networks.vocabulary import Ids
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Positions
from moses_rnn.training.gradients import Cost
from moses_rnn.training.n_grams import Text
from moses_rnn.training.threads import Workers, seed_of

ORDER, GROUPS = 0, 1  # random streams of an epoch: of its sentences, of the batches in each group
EVALUATION_WORDS = 4096  # at once when nothing is learned from them


class Sentences:
    """The task of an RNNLM.

    Args:
        model: with its initial weights, on its device.
        text: to learn, each sentence behind one ``<s>``.
        held_out: to be judged by.
        config: batches, precision, seed.
        bptt: how many steps back the error of a word is followed; 0: to its sentence's beginning.
    """

    unit = "sentences"
    measure = NATS

    def __init__(self, model: Rnnlm, text: Text, held_out: Text, config: TrainingConfig, bptt: int) -> None:
        self.model = model
        self._text, self._held_out = _Lines(text), _Lines(held_out)
        self._config, self._bptt = config, bptt
        self._device = model.G.device
        self._product = torch.bfloat16 if config.precision == "bf16" else torch.float32
        self.examples = len(self._text.lengths)
        digests = [hashlib.sha256(part.flat.data).hexdigest() for part in (text, held_out)]
        self.identity = {"text": digests[0], "held-out text": digests[1], **asdict(model.config), "bptt": bptt}

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """The minibatches of an epoch from a given one on; seed and epoch determine them.

        Every sentence comes once. Groups of `sort_batches` minibatches are drawn uniformly, sorted by length and cut;
        the minibatches of a group then come in random order.
        """
        config = self._config
        order = np.random.default_rng((config.seed, epoch, ORDER)).permutation(self.examples)
        size = config.batch_size * max(config.sort_batches, 1)
        before = 0
        for number in range(math.ceil(len(order) / size)):
            group = self._text.by_length(order[number * size : (number + 1) * size])
            cut = [group[start : start + config.batch_size] for start in range(0, len(group), config.batch_size)]
            shuffled = np.random.default_rng((config.seed, epoch, GROUPS, number)).permutation(len(cut))
            for i in shuffled[max(first - before, 0) :]:
                yield cut[i]
            before += len(cut)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities of all words and ends."""
        drop = drop_units(self._config.dropout, seed_of(self._config.seed, step, part), self._device)
        nats, tokens = self._nats(self._text, rows, drop)
        return Cost(nats, nats.item(), tokens)

    def held_out(self, workers: Workers) -> dict[str, float]:
        """Mean cost of a held-out token, words outside the shortlist counted as one."""
        costs = workers.each(self._exact_cost, list(self._held_out.blocks()))
        nats, tokens = (sum(column) for column in zip(*costs, strict=True))
        return {"nats_per_token": nats / tokens}

    def describe(self) -> str:
        """The network, and how far errors are followed."""
        return f"{self.model.config.description}, {describe_reach(self._bptt)}"

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, int]:
        nats, tokens = self._nats(self._held_out, rows)
        return nats.item(), tokens

    def _nats(self, lines: _Lines, rows: Positions, drop: Drop = keep) -> tuple[torch.Tensor, int]:
        sentences = Batch.from_flat(*lines.take(lines.by_length(rows)), self._device)
        log_p = self.model.word_log_probs(sentences, self._product, drop, self._bptt)
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
        order, first = self.by_length(np.arange(len(self.lengths))), 0
        while first < len(order):
            size = max(EVALUATION_WORDS // (int(self.lengths[order[first]]) + 1), 1)
            yield order[first : first + size]
            first += size


def describe_reach(steps: int) -> str:
    """How far errors are followed, for a log."""
    return f"errors followed {steps} steps back" if steps else "errors followed to the sentence's beginning"
