"""What sampling and search share: target phrases are written word by word, for many sources together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from moses_rnn.inference.encdec import LOGITS_AT_ONCE, EncDecScorer, SourceTerms
from moses_rnn.inference.tries import build_trie

Ids = Sequence[int]  # of a phrase, without an end symbol
MAX_WORDS = 50  # a phrase of a table has seven; what a network writes without end is no phrase
PREFIXES_AT_ONCE = 8192  # whose states are in memory


@dataclass(frozen=True)
class Hypothesis:
    """A target phrase that a network wrote, or as much of it as the length limit allows.

    `log_prob` is the model's own log p(words, ``</s>`` | source), natural. Of a phrase that has not `ended` it is that
    of the words alone, which no phrase that begins with them exceeds.
    """

    words: tuple[int, ...]  # ids without </s>
    log_prob: float
    ended: bool


def source_terms(scorer: EncDecScorer, sources: Sequence[Ids]) -> SourceTerms:
    """What the decoder needs of each source; equal ones are encoded once."""
    flat = np.array([i for source in sources for i in source], dtype=np.int64)
    trie = build_trie(flat, np.array([len(source) for source in sources], dtype=np.int64))
    with torch.inference_mode():
        return scorer.encode(trie).take(torch.from_numpy(trie.leaf_of).to(scorer.device))


def source_blocks(sources: Sequence[Ids], prefixes_of_each: int) -> Iterator[Sequence[Ids]]:
    """Sources that are decoded together, at least one."""
    count = max(PREFIXES_AT_ONCE // prefixes_of_each, 1)
    for first in range(0, len(sources), count):
        yield sources[first : first + count]


def row_blocks(prefixes: int, words: int) -> Iterator[slice]:
    """Rows of prefixes whose distributions over words are in memory at once, at least one."""
    count = max(LOGITS_AT_ONCE // words, 1)
    for first in range(0, prefixes, count):
        yield slice(first, min(first + count, prefixes))
