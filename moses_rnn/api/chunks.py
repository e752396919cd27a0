"""Split iterables into chunks, and score chunks of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

import numpy as np

from moses_rnn.api.pairs import BytesPair
from moses_rnn.models.base import Scorer, score_named
from moses_rnn.networks.own_settings import own_settings
from moses_rnn.score.workers import ThreadWorkers, map_in_order
from moses_rnn.table.table_blocks import Floats, Pairs

CHUNK = 4096  # pairs: enough to share prefixes, few enough for several threads

Item = TypeVar("Item")


def in_chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items; the last may be shorter."""
    left = iter(items)
    while chunk := list(islice(left, size)):
        yield chunk


def score_chunks(pairs: Iterable[BytesPair], scorer: Scorer, size: int = CHUNK, threads: int = 1) -> Iterator[Floats]:
    """Yield the scores of chunks, in order, from any number of pairs; score a few chunks ahead.

    Several threads share the scorer. An error of a pair names it.
    """
    most = math.inf if scorer.unbounded else 0.0  # a log p may be rounded to above 0

    def score(chunk: list[BytesPair]) -> Floats:
        links = [pair.alignment or b"" for pair in chunk]
        read = Pairs([pair.source for pair in chunk], [pair.target for pair in chunk], links)
        return np.minimum(scorer.log_probs(read), most)

    @own_settings()
    def work(chunk: list[BytesPair]) -> Floats:
        return score_named(len(chunk), lambda part: score(chunk[part]), lambda row: chunk[row].name)

    chunks = in_chunks(pairs, size)
    first = [*islice(chunks, 2)]
    if len(first) < 2:  # starting threads would take longer than scoring
        yield from map(work, first)
        return
    with ThreadWorkers([work] * threads) as workers:
        for _, scores in map_in_order(chain(first, chunks), workers):
            yield scores
