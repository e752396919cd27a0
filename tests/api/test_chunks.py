"""Pairs from anywhere, scored in order and not all at once."""

import itertools
import threading

import numpy as np
import pytest

from moses_rnn.api.chunks import score_chunks
from moses_rnn.api.pairs import BytesPair


class Minus:
    unbounded = False

    def log_probs(self, pairs):
        return -np.array(pairs.targets, np.float64)


def scored(numbers, threads, size):
    return score_chunks((BytesPair(f"pairs[{i}]", b"", b"%d" % i) for i in numbers), Minus(), size, threads)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 4, 5, 11])
def test_scores_come_in_order(count, threads):
    chunks = list(scored(range(count), threads, 4))
    assert [*itertools.chain(*chunks)] == [-i for i in range(count)]
    assert [len(chunk) for chunk in chunks[:-1]] == [4] * (len(chunks) - 1)


def test_a_stream_is_read_a_few_chunks_ahead():
    taken = []
    stream = scored((taken.append(i) or i for i in itertools.count()), 2, 10)
    next(stream)
    assert len(taken) < 100
    stream.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("scoring")]
