"""Learning log p(target | source) from the distinct phrase pairs of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.networks.batches import Batch
from moses_rnn.networks.dropout import Drop, drop_units, keep
from moses_rnn.networks.hardware import COMPILED
from moses_rnn.networks.learning_curves import NATS, Measure
from moses_rnn.networks.native_learning import NativeKernel, core_named
from moses_rnn.networks.softmax import Estimate, WordPartition, WordSample
from moses_rnn.networks.translation_network import NetworkOfPairs, TranslationNetwork
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Corpus, Positions
from moses_rnn.training.gradients import Cost
from moses_rnn.training.partitions import partitions_of
from moses_rnn.training.threads import Workers, seed_of

ORDER, GROUPS = 0, 1  # random streams of an epoch: of its pairs, of the batches in each group
SAMPLES = 2  # and of a step: of words
EVALUATION_WORDS = 4096  # target words at once when nothing is learned from them


class PhrasePairs:
    """The task of a network of pairs (equation 4 of Cho et al. 2014): of phrases or of sentences.

    Args:
        model: with its initial weights, on its device.
        corpus: pairs as ids.
        config: batches, precision, seed.
    """

    unit = "pairs"
    measure = NATS

    def __init__(self, model: TranslationNetwork, corpus: Corpus, config: TrainingConfig) -> None:
        self.model = model
        self.corpus = corpus
        self.examples = len(corpus.training)
        self.identity = {"corpus": corpus.digest, **asdict(model.config)}
        self._config = config
        self._device = next(model.parameters()).device
        self._product = product_dtype(config)
        self._unigram: npt.NDArray[np.float64] | None = None
        self._partition: WordPartition | None = None  # of the minibatch that was given out last
        take_kernel(model, config)

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `epoch_batches`; with partitions the order is that of the first epoch, unless it is to be reshuffled."""
        config = self._config
        if not 0 < config.partition_words < len(self.corpus.target_vocabulary):
            yield from epoch_batches(self.corpus, config, epoch, first)
            return
        order = epoch_batches(self.corpus, config, epoch if config.reshuffle else 0)
        number = 0
        for words, batches in partitions_of(self.corpus, order, config.partition_words):
            self._partition = WordPartition(torch.from_numpy(words).to(self._device))
            for batch in batches:
                if number >= first:
                    yield batch
                number += 1

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities of the targets; an estimate of them by sampled words or by a partition.

        A minibatch's partition is that of the last one that `batches` has given out.
        """
        drop = drop_units(self._config.dropout, seed_of(self._config.seed, step, part), self._device)
        log_probs = self._log_probs(rows, self._partition or self._sample(step), drop)
        nats = -log_probs.sum()
        return Cost(nats, nats.item(), len(log_probs))

    def held_out(self, workers: Workers) -> dict[str, float]:
        """Mean cost of the held-out pairs: nats per target token (end symbols included), nats per pair."""
        rows = by_length(self.corpus, self.corpus.held_out)
        costs = workers.each(self._exact_cost, evaluation_blocks(self.corpus, rows))
        nats, tokens = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
        return {"nats_per_token": nats / tokens, "nats_per_pair": nats / len(rows)}

    def describe(self) -> str:
        """The network's own words."""
        described: str = self.model.config.description
        return described

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, int]:
        log_probs = self._log_probs(rows)
        return -log_probs.double().sum().item(), len(log_probs)

    def _sample(self, step: int) -> WordSample | None:
        """The words to estimate a step's normalisation by; seed and step determine them."""
        count = self._config.sampled_words
        if not count:
            return None
        if self._unigram is None:
            self._unigram = self.corpus.unigram_model()
        random = np.random.default_rng((self._config.seed, step, SAMPLES))
        words = random.choice(len(self._unigram), count, p=self._unigram)
        expected = torch.from_numpy(np.log(count * self._unigram[words])).float()
        return WordSample(torch.from_numpy(words).to(self._device), expected.to(self._device))

    def _log_probs(self, rows: Positions, estimate: Estimate | None = None, drop: Drop = keep) -> Tensor:
        """Score every target word and end symbol of some pairs by its log p, in no particular order; nodes."""
        by_target = by_length(self.corpus, rows)
        source_lengths = self.corpus.source.ends[by_target + 1] - self.corpus.source.ends[by_target]
        by_source = np.argsort(-source_lengths, kind="stable")
        source_of = np.empty_like(by_source)
        source_of[by_source] = np.arange(len(by_source))
        sources = Batch.from_flat(*self.corpus.source.take(by_target[by_source]), self._device)
        targets = Batch.from_flat(*self.corpus.target.take(by_target), self._device)
        return self.model.word_log_probs(
            sources, targets, torch.from_numpy(source_of).to(self._device), self._product, estimate, drop
        )


def product_dtype(config: TrainingConfig) -> torch.dtype:
    """The type that matrix products are computed in."""
    return torch.bfloat16 if config.precision == "bf16" else torch.float32


def take_kernel(model: NetworkOfPairs, config: TrainingConfig) -> None:
    """Have a network compute as its training is to.

    Raises:
        MosesRnnError: by a native core that is not there.
    """
    if config.native:
        model.use_kernel(NativeKernel(core=core_named(config.native)))
    elif config.compiled:
        model.use_kernel(COMPILED)


def epoch_batches(corpus: Corpus, config: TrainingConfig, epoch: int, first: int = 0) -> Iterator[Positions]:
    """The minibatches of an epoch from a given one on; seed and epoch determine them.

    Every training pair comes once. Groups of ``sort_batches`` minibatches are drawn uniformly, sorted by length and
    cut; the minibatches of a group then come in random order, so that no length is always learned last.
    """
    order = np.random.default_rng((config.seed, epoch, ORDER)).permutation(corpus.training)
    size = config.batch_size * max(config.sort_batches, 1)
    before = 0  # minibatches of earlier groups
    for number in range(math.ceil(len(order) / size)):
        group = order[number * size : (number + 1) * size]
        if before + config.sort_batches < first and len(group) == size:
            before += size // config.batch_size
            continue
        cut = _minibatches(corpus, config, group)
        shuffled = np.random.default_rng((config.seed, epoch, GROUPS, number)).permutation(len(cut))
        for i in shuffled[max(first - before, 0) :]:
            yield cut[i]
        before += len(cut)


def _minibatches(corpus: Corpus, config: TrainingConfig, group: Positions) -> list[Positions]:
    """A group of pairs cut by length."""
    if config.sort_batches > 1:
        group = by_length(corpus, group)
    return [group[first : first + config.batch_size] for first in range(0, len(group), config.batch_size)]


def evaluation_blocks(corpus: Corpus, rows: Positions) -> Iterator[Positions]:
    """Pairs, sorted longest first, in blocks that hold a bounded number of target words."""
    first = 0
    while first < len(rows):
        longest = int(corpus.target.ends[rows[first] + 1] - corpus.target.ends[rows[first]]) + 1
        size = max(EVALUATION_WORDS // longest, 1)
        yield rows[first : first + size]
        first += size


def by_length(corpus: Corpus, rows: Positions) -> Positions:
    """Pairs sorted by target length, then source length, longest first."""
    target = corpus.target.ends[rows + 1] - corpus.target.ends[rows]
    source = corpus.source.ends[rows + 1] - corpus.source.ends[rows]
    return rows[np.lexsort((-source, -target))]


def describe_corpus(corpus: Corpus, measure: Measure = NATS) -> list[str]:
    """What a table holds, in lines for a log; `measure`: what is to be learned from it is judged by."""
    n = corpus.statistics
    collapsed = n.collapsed_pairs / n.distinct_pairs
    return [
        f"table: {n.pairs:,} lines, {n.distinct_pairs:,} distinct pairs; {collapsed:.2%} equal another "
        "pair once rare words are <unk>, and are learned once",
        f"left out: {n.too_long:,} pairs longer than max_length, {n.empty:,} with an empty side",
        f"source shortlist: {len(corpus.source_vocabulary) - 2:,} of {n.source_words:,} words, "
        f"{n.source_coverage:.2%} of running words",
        f"target shortlist: {len(corpus.target_vocabulary) - 2:,} of {n.target_words:,} words, "
        f"{n.target_coverage:.2%} of running words",
        f"training pairs: {n.training_pairs:,}; held out by source phrase: {n.held_out_pairs:,}",
        *[f"unigram baseline: {corpus.unigram_nats_per_token:.4f} held-out nats per target token"] * (measure is NATS),
    ]
