"""What pairs cost the network: by the length of their targets, by how often they were seen, and word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from moses_rnn.analysis.correlation import Floats
from moses_rnn.analysis.phrase_samples import Pair
from moses_rnn.analysis.scored_table import ALL, Pairs, split_by_count
from moses_rnn.errors import ScoreError, shown
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.table_blocks import PhraseIds
from moses_rnn.networks.batches import Batch
from moses_rnn.producers.open import Model

LENGTHS = ("1 word", "2 words", "3 words", "4 and 5 words", "6 and more words")
LONGEST_OF = (1, 2, 3, 5)  # words of all but the last of these classes
BIN = 1.0  # nats
BINS = 20  # the last one holds all that costs more
FEWEST = 30  # pairs that have a word at a position, for a mean


@dataclass(frozen=True)
class CostClass:
    """Pairs of one kind: how many, what they cost in all, over how many words with ``</s>``, and how it is spread."""

    pairs: int
    nats: float
    words: int
    bins: npt.NDArray[np.int64]


def _cost_class(nats: Floats, lengths: npt.NDArray[np.int64]) -> CostClass:
    """Pairs whose `nats` are minus their log-probabilities, and `lengths` words of their targets."""
    bins = np.bincount(np.clip(nats / BIN, 0, BINS - 1).astype(np.int64), minlength=BINS)
    return CostClass(len(nats), float(nats.sum()), int(lengths.sum()) + len(lengths), bins)


def costs_by_class(pairs: Pairs, lengths: npt.NDArray[np.int64]) -> dict[str, CostClass]:
    """Costs of a table's pairs, whose targets have these lengths in the network's words: all, by length, by count."""
    nats, by_length = -pairs.logs[:, 1], np.searchsorted(LONGEST_OF, lengths)
    parts = dict(split_by_count(pairs.counts))
    parts = {ALL: parts.pop(ALL), **{name: by_length == i for i, name in enumerate(LENGTHS)}, **parts}
    return {name: _cost_class(nats[part], lengths[part]) for name, part in parts.items() if part.any()}


@dataclass(frozen=True)
class PositionCost:
    """What the words at a place of a target cost on average; `place` counts from 1."""

    place: int
    words: int
    nats: float


def costs_by_position(model: Model, pairs: Sequence[Pair]) -> list[PositionCost]:
    """Means over a sample in the network's words, for places at which enough targets have a word, or their ``</s>``.

    Raises:
        ScoreError: a word has no log-probability.
    """
    if not pairs:
        return []
    in_order = sorted(pairs, key=lambda pair: -len(words(pair.written)))
    targets = Batch.from_flat(*PhraseIds(model.target_vocabulary.id_of())([pair.written for pair in in_order]))
    sources, source_of = _sources(model, [pair.read for pair in in_order])
    with torch.inference_mode():
        log_probs = model.network.word_log_probs(sources, targets, source_of)
    wrong = (~log_probs.isfinite()).nonzero().flatten()
    if len(wrong):
        pair = in_order[int(targets.rows()[wrong[0]])]
        found = f"{float(log_probs[wrong[0]])} for {shown(b' ||| '.join((pair.read, pair.written)))}"
        raise ScoreError(f"{model.name}: expected the log-probability of each word, found {found}")
    places = enumerate(torch.split(log_probs.double(), targets.active), start=1)
    return [PositionCost(place, len(one), -float(one.mean())) for place, one in places if len(one) >= FEWEST]


def _sources(model: Model, phrases: Sequence[bytes]) -> tuple[Batch, torch.Tensor]:
    """Longest first, and the row of each phrase."""
    ids, lengths = PhraseIds(model.source_vocabulary.id_of())(phrases)
    order = np.argsort(-lengths, kind="stable")
    rows = np.empty(len(order), np.int64)
    rows[order] = np.arange(len(order))
    parts = np.split(ids, np.cumsum(lengths)[:-1])
    return Batch.from_flat(np.concatenate([parts[i] for i in order]), lengths[order]), torch.from_numpy(rows)
