"""Phrase pairs as lists of ids without end symbols, and what scores them."""

import numpy as np

from moses_rnn.networks.batches import flatten as flat
from moses_rnn.networks.tries import SteppedPairs


def score(stepper, pairs):
    """log p of pairs, each distinct source read once."""
    sources, targets = zip(*pairs, strict=True)
    return SteppedPairs(stepper).log_probs(flat(sources), flat(targets))


def random_pairs(count, vocabulary=(9, 8), longest=6, seed=3):
    """Pairs of ids below the sizes of two vocabularies; sources repeat, and either side may be empty."""
    draw = np.random.default_rng(seed)

    def phrase(words):
        return [int(i) for i in draw.choice([0, *range(2, words)], size=draw.integers(0, longest + 1))]

    sources = [phrase(vocabulary[0]) for _ in range(max(count // 4, 1))]
    return [(sources[draw.integers(len(sources))], phrase(vocabulary[1])) for _ in range(count)]
