"""Learning log p(target | source) from pairs: the distinct ones of a phrase table, or sentences.

With a large shortlist an epoch may be learned by partitions, each with few distinct target words (Jean, Cho, Memisevic
and Bengio 2015; arXiv 1412.2007, section 3.2). Its minibatches are walked over in the order in which they are learned.
A partition's words are <unk>, </s> and those of its minibatches; it closes before the minibatch with which it would
have too many. While it is learned, they alone are normalised over. The released code fills partitions up with other
words; these stay smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.errors import InputError
from moses_rnn.networks.batches import Batch
from moses_rnn.networks.network import Drop, TranslationNetwork, keep
from moses_rnn.networks.softmax import Estimate, WordPartition, WordSample
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Corpus, Positions
from moses_rnn.training.ranks import Workers
from moses_rnn.training.task import Cost, Task, batches_by_length, blocks_of_words

SPECIAL = UNKNOWN_ID, END_ID
WordIds = npt.NDArray[np.int64]
SAMPLES = 2  # random stream of a step: of words
EVALUATION_WORDS = 4096  # target words at once when nothing is learned from them


class PhrasePairs(Task):
    """The task of a network of pairs (equation 4 of Cho et al. 2014): of phrases or of sentences."""

    def __init__(self, model: TranslationNetwork, corpus: Corpus, config: TrainingConfig) -> None:
        super().__init__(model, config, {"corpus": corpus.digest}, len(corpus.training))
        self.corpus = corpus
        self._unigram: npt.NDArray[np.float64] | None = None
        self._partition: WordPartition | None = None  # of the minibatch that was given out last

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `epoch_batches`; with partitions the order is that of the first epoch, unless it is to be reshuffled."""
        config = self.config
        if not 0 < config.partition_words < len(self.corpus.target_vocabulary):
            yield from epoch_batches(self.corpus, config, epoch, first)
            return
        order = epoch_batches(self.corpus, config, epoch if config.reshuffle else 0)
        number = 0
        for words, batches in partitions_of(self.corpus, order, config.partition_words):
            self._partition = WordPartition(torch.from_numpy(words).to(self.device))
            for batch in batches:
                if number >= first:
                    yield batch
                number += 1

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities of the targets; an estimate of them by sampled words or by a partition.

        A minibatch's partition is that of the last one that `batches` has given out.
        """
        log_probs = self._log_probs(rows, self._partition or self._sample(step), self.drop(step, part))
        nats = -log_probs.sum()
        return Cost(nats, nats.item(), len(log_probs))

    def held_out(self, workers: Workers) -> dict[str, float]:
        """Mean cost of the held-out pairs: nats per target token (end symbols included), nats per pair."""
        rows = by_length(self.corpus, self.corpus.held_out)
        costs = workers.each(self._exact_cost, evaluation_blocks(self.corpus, rows))
        nats, tokens = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
        return {"nats_per_token": nats / tokens, "nats_per_pair": nats / len(rows)}

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, int]:
        log_probs = self._log_probs(rows)
        return -log_probs.double().sum().item(), len(log_probs)

    def _sample(self, step: int) -> WordSample | None:
        """The words to estimate a step's normalisation by; seed and step determine them."""
        count = self.config.sampled_words
        if not count:
            return None
        if self._unigram is None:
            self._unigram = self.corpus.unigram_model()
        random = np.random.default_rng((self.config.seed, step, SAMPLES))
        words = random.choice(len(self._unigram), count, p=self._unigram)
        expected = torch.from_numpy(np.log(count * self._unigram[words])).float()
        return WordSample(torch.from_numpy(words).to(self.device), expected.to(self.device))

    def _log_probs(self, rows: Positions, estimate: Estimate | None = None, drop: Drop = keep) -> Tensor:
        """Score every target word and end symbol of some pairs by its log p, in no particular order; nodes."""
        by_target = by_length(self.corpus, rows)
        source_lengths = self.corpus.source.ends[by_target + 1] - self.corpus.source.ends[by_target]
        by_source = np.argsort(-source_lengths, kind="stable")
        source_of = np.empty_like(by_source)
        source_of[by_source] = np.arange(len(by_source))
        sources = Batch.from_flat(*self.corpus.source.take(by_target[by_source]), self.device)
        targets = Batch.from_flat(*self.corpus.target.take(by_target), self.device)
        rows_of_sources = torch.from_numpy(source_of).to(self.device)
        network: TranslationNetwork = self.model
        return network.word_log_probs(sources, targets, rows_of_sources, self.product_dtype, estimate, drop)


def epoch_batches(corpus: Corpus, config: TrainingConfig, epoch: int, first: int = 0) -> Iterator[Positions]:
    """The training pairs of an epoch; see `batches_by_length`."""
    return batches_by_length(corpus.training, lambda rows: by_length(corpus, rows), config, epoch, first)


def evaluation_blocks(corpus: Corpus, rows: Positions) -> Iterator[Positions]:
    """Pairs, sorted longest first, in blocks that hold a bounded number of target words."""
    return blocks_of_words(rows, corpus.target.ends[rows + 1] - corpus.target.ends[rows], EVALUATION_WORDS)


def by_length(corpus: Corpus, rows: Positions) -> Positions:
    """Pairs sorted by target length, then source length, longest first."""
    target = corpus.target.ends[rows + 1] - corpus.target.ends[rows]
    source = corpus.source.ends[rows + 1] - corpus.source.ends[rows]
    return rows[np.lexsort((-source, -target))]


class Partition(NamedTuple):
    """Minibatches that follow each other, and their distinct target words with <unk> and </s>; ascending."""

    words: WordIds
    batches: list[Positions]


def partitions_of(corpus: Corpus, batches: Iterable[Positions], most: int) -> Iterator[Partition]:
    """The partitions of an epoch.

    A minibatch that has too many words of its own comes as two halves, or quarters: of the first epoch there is none,
    see `describe_partitions`, but a later one may meet it in a new order.

    Args:
        corpus: what is learned.
        batches: in the order of learning.
        most: words of a partition, τ.
    """
    seen = np.zeros(len(corpus.target_vocabulary), np.bool_)
    seen[list(SPECIAL)] = True
    held: list[Positions] = []
    for batch in _narrow_enough(corpus, batches, most):
        own = target_words(corpus, batch)
        if np.count_nonzero(seen) + np.count_nonzero(~seen[own]) > most:
            yield Partition(np.flatnonzero(seen), held)
            seen[:], held = False, []
            seen[list(SPECIAL)] = True
        seen[own] = True
        held.append(batch)
    if held:
        yield Partition(np.flatnonzero(seen), held)


def _narrow_enough(corpus: Corpus, batches: Iterable[Positions], most: int) -> Iterator[Positions]:
    for batch in batches:
        if len(batch) > 1 and len(target_words(corpus, batch)) > most - len(SPECIAL):
            yield from _narrow_enough(corpus, np.array_split(batch, 2), most)
        else:
            yield batch


def target_words(corpus: Corpus, batch: Positions) -> WordIds:
    """The distinct target words of a minibatch, <unk> and </s> apart; ascending."""
    words = np.unique(corpus.target.take(batch)[0]).astype(np.int64)
    return words[~np.isin(words, SPECIAL)]


def describe_partitions(corpus: Corpus, config: TrainingConfig) -> list[str]:
    """What partitions the first epoch falls into, if it does, in lines for a log.

    Raises:
        InputError: a minibatch alone has too many words for one.
    """
    most = config.partition_words
    if not 0 < most < len(corpus.target_vocabulary):
        return []
    batches = list(epoch_batches(corpus, config, 0))
    widest = max(len(target_words(corpus, batch)) for batch in batches)
    if widest > most - len(SPECIAL):
        raise InputError(
            f"partition_words {most}: expected at least {widest + len(SPECIAL):,}, the distinct target words of the "
            f"widest minibatch with <unk> and </s>, found {most:,}",
            advice="A smaller --batch-size has narrower minibatches.",
        )
    sizes = [len(partition.words) for partition in partitions_of(corpus, batches, most)]
    return [
        f"partitions of the first epoch: {len(sizes):,}, of {max(sizes):,} target words at most; the widest "
        f"minibatch has {widest:,}"
    ]
