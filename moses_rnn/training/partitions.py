"""Learning with a large shortlist by parts of the corpus, each with few distinct target words.

(Jean, Cho, Memisevic and Bengio 2015; arXiv 1412.2007, section 3.2.) The minibatches of an epoch are walked over in the
order in which they are learned. A partition's words are <unk>, </s> and those of its minibatches; it closes before the
minibatch with which it would have too many. While it is learned, they alone are normalised over. The released code
fills partitions up with other words; these stay smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.training.corpus import Corpus, Positions

SPECIAL = UNKNOWN_ID, END_ID
WordIds = npt.NDArray[np.int64]


class Partition(NamedTuple):
    """Minibatches that follow each other, and their distinct target words with <unk> and </s>; ascending."""

    words: WordIds
    batches: list[Positions]


class PartitionSizes(NamedTuple):
    """What an epoch falls into."""

    partitions: int
    largest: int  # words
    widest: int  # words of a minibatch, <unk> and </s> apart


def partitions_of(corpus: Corpus, batches: Iterable[Positions], most: int) -> Iterator[Partition]:
    """The partitions of an epoch.

    A minibatch that has too many words of its own comes as two halves, or quarters: of the first epoch there is none,
    see `check_partitions`, but a later one may meet it in a new order.

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


def check_partitions(corpus: Corpus, batches: Iterable[Positions], most: int) -> PartitionSizes:
    """What the first epoch falls into.

    Args:
        corpus: what is learned.
        batches: of the first epoch, in order.
        most: words of a partition, τ.

    Raises:
        InputError: a minibatch alone has more words.
    """
    every = list(batches)
    widest = max(len(target_words(corpus, batch)) for batch in every)
    if widest > most - len(SPECIAL):
        raise InputError(
            f"partition_words {most}: expected at least {widest + len(SPECIAL):,}, the distinct target words of the "
            f"widest minibatch with <unk> and </s>, found {most:,}",
            advice="A smaller --batch-size has narrower minibatches.",
        )
    sizes = [len(partition.words) for partition in partitions_of(corpus, every, most)]
    return PartitionSizes(len(sizes), max(sizes), widest)


def describe_partitions(sizes: PartitionSizes) -> str:
    """In words, for a log."""
    return (
        f"partitions of the first epoch: {sizes.partitions:,}, of {sizes.largest:,} target words at most; the widest "
        f"minibatch has {sizes.widest:,}"
    )
