"""What the scripts of all peers share: pairs, minibatches as toolkits make them, and the naive reference beside."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1]))
from score import naive, untrained
from stages import Pair, pairs_of, timed

from moses_rnn.files.streams import read_blocks
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.scorers.open import Model
from moses_rnn.table.phrase_forms import words

Ids = list[int]
Score = Callable[[list[tuple[Ids, Ids]]], object]
PAIRS, BATCHES = 64, 10  # in a minibatch, and sorted together


def minibatches(pairs: Sequence[tuple[Ids, Ids]]) -> Iterator[list[tuple[Ids, Ids]]]:
    """Minibatches of 64 pairs, sorted over ten; each sorted by its sources, longest first."""
    for first in range(0, len(pairs), PAIRS * BATCHES):
        group = sorted(pairs[first : first + PAIRS * BATCHES], key=lambda pair: -len(pair[1]))
        for start in range(0, len(group), PAIRS):
            yield sorted(group[start : start + PAIRS], key=lambda pair: -len(pair[0]))


def padded(phrases: Sequence[Ids], padding: int) -> torch.Tensor:
    """Phrases as rows."""
    ids = torch.full((len(phrases), max(map(len, phrases))), padding)
    for row, phrase in zip(ids, phrases, strict=True):
        row[: len(phrase)] = torch.tensor(phrase)
    return ids


def compare(name: str, score_of: Callable[[Model], Score]) -> None:
    """Time a peer and the naive reference of `benchmarks/score.py` on the same pairs, in turn; print both rates.

    Args:
        name: of the peer.
        score_of: makes what scores a minibatch of ids, without end symbols, at the sizes of a network.
    """
    parser = argparse.ArgumentParser(description=f"Phrase pairs a second with {name}, sizes near the paper's")
    parser.add_argument("table")
    parser.add_argument("--pairs", type=int, default=2560)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    everything = (pair for pair in pairs_of(read_blocks(given.table), given.table) if all(map(words, pair)))
    pairs = list(itertools.islice(everything, given.pairs))
    model = untrained(pairs_of(read_blocks(given.table), given.table), "paper")
    score = score_of(model)

    def peer() -> None:
        of_ids = [_ids(model, pair) for pair in pairs]
        with torch.inference_mode():
            for batch in minibatches(of_ids):
                score(batch)

    seconds = {name: float("inf"), "naive": float("inf")}
    for _ in range(given.rounds):
        seconds["naive"] = min(seconds["naive"], timed(lambda: naive(model, pairs)))
        seconds[name] = min(seconds[name], timed(peer))
    for who, taken in seconds.items():
        print(f"{who:<12}{len(pairs) / taken:>8,.0f} pairs/s{seconds['naive'] / taken:>8.2f} × naive")


def _ids(model: Model, pair: Pair) -> tuple[Ids, Ids]:
    def of(vocabulary: Vocabulary, phrase: bytes) -> Ids:
        return vocabulary.ids(words(phrase))

    return of(model.source_vocabulary, pair[0]), of(model.target_vocabulary, pair[1])
