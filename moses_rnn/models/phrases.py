"""Scorers of phrase pairs: a network's score, and the paper's word penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, Self, TypeVar

import numpy as np
import torch
from torch import OutOfMemoryError

from moses_rnn.errors import MosesRnnError, ScoreError, says_out_of_memory, shown
from moses_rnn.models.base import LARGEST_SCORE, ROUNDING, Scorer, Tally
from moses_rnn.models.rare_words import RareWords
from moses_rnn.networks.batches import Ints, Lengths, Values, reverse_each
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.tries import PairNetwork
from moses_rnn.networks.vocabulary import UNKNOWN_ID, Ids, Vocabulary
from moses_rnn.table.table_blocks import Pairs, Phrases

Item = TypeVar("Item")
Result = TypeVar("Result")

PAIRS = 8192  # scored together


class PairModel(Protocol):
    """What scorers of pairs know of their model, which is one network or an ensemble."""

    name: str  # of the score
    meaning: str  # description of the score
    unbounded: bool  # whether the score is not a log-probability and may be above 0
    inverse: bool  # whether it reads target phrases and writes source phrases
    right_to_left: bool  # whether it writes a target's last word first
    source_vocabulary: Vocabulary  # words that it reads
    target_vocabulary: Vocabulary  # words that it writes
    rare: RareWords | None  # annotation of rare words; None: they are <unk>


class PhraseScorer:
    """The score of a network of phrase pairs: usually log p(target | source), or that of the inverse direction.

    It is conditioned on the whole other phrase; words outside the shortlists count as ``<unk>``. Among pairs scored
    together, each distinct source is read once, and each distinct target prefix of a source is computed once.
    """

    def __init__(self, model: PairModel, network: PairNetwork) -> None:
        self.name, self.meaning, self.unbounded = model.name, model.meaning, model.unbounded
        self._inverse, self._right_to_left = model.inverse, model.right_to_left
        self._network = network
        self._read, self._written = model.source_vocabulary.reader(), model.target_vocabulary.reader()

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Return one natural log score per pair. Raises as `Scorer` does."""
        read, written = pairs.sides(inverse=self._inverse)
        tally = tally or Tally()
        score, device = partial(self._score_rows, read, written, tally), self._network.device
        every = range(len(read))
        parts = [
            part
            for first in every[::PAIRS]
            for part in within_memory(score, every[first : first + PAIRS], device, tally)
        ]
        scores = np.concatenate([np.zeros(0), *parts])
        check_scores(self, scores, pairs)
        return scores

    def _score_rows(self, read: Phrases, written: Phrases, tally: Tally, rows: Sequence[int]) -> Values:
        some = slice(rows[0], rows[-1] + 1)
        sources, targets = self._read(read[some]), self._written(written[some])
        written_ids = (reverse_each(*targets), targets[1]) if self._right_to_left else targets
        values = self._network.log_probs(sources, written_ids)
        tally.unknown += int(np.count_nonzero(unknown_words(*sources) + unknown_words(*targets)))
        return values


def within_memory(
    work: Callable[[Sequence[Item]], Result], items: Sequence[Item], device: torch.device, tally: Tally
) -> list[Result]:
    """Return the result of some work in one part; if the device's memory is too small, in several.

    The parts are halves of the items, or halves of halves, one after the other.
    """
    try:
        return [work(items)]
    except (OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        if len(items) == 1:
            too_small = f"the memory of {device} is too small for a single phrase"
            raise MosesRnnError(f"{too_small}: {error}") from error
    tally.oom_splits += 1
    if device.type == "cuda":
        torch.cuda.empty_cache()
    half = len(items) // 2
    return [part for some in (items[:half], items[half:]) for part in within_memory(work, some, device, tally)]


def check_scores(scorer: Scorer, scores: Values, pairs: Pairs) -> None:
    """Raise ScoreError, naming the pair, for scores that are not finite or not log-probabilities as they should be."""
    good = (scores > -LARGEST_SCORE) & (scores < (LARGEST_SCORE if scorer.unbounded else ROUNDING))
    if not good.all():
        row = int(np.argmin(good))
        expected = "a finite number" if scorer.unbounded else "a log-probability"
        pair = shown(b" ||| ".join((pairs.sources[row], pairs.targets[row])))
        raise ScoreError(f"{scorer.name}: expected {expected}, found {scores[row]} for {pair}", row)


def unknown_words(ids: Ids, lengths: Lengths) -> Ints:
    """Return the number of words outside the shortlist for each phrase."""
    unknown = np.append(0, np.cumsum(ids == UNKNOWN_ID))
    ends = np.cumsum(lengths)
    counts: Ints = unknown[ends] - unknown[ends - lengths]
    return counts


class WordPenaltyScorer:
    """The paper's word penalty: minus the number of target words outside the shortlist."""

    name = "WordPenalty"
    unbounded = False
    meaning = "-n for n target words outside the shortlist"

    def __init__(self, target_vocabulary: Vocabulary) -> None:
        self._ids = target_vocabulary.reader()

    def make_scorer(self, _compute: Compute) -> Self:
        """Return itself: it needs no device."""
        return self

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Return one natural log score per pair."""
        counts = unknown_words(*self._ids(pairs.targets))
        if tally is not None:
            tally.unknown += int(np.count_nonzero(counts))
        penalties: Values = -counts.astype(np.float64)
        return penalties


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out; torch raises a plain RuntimeError for a CPU, pinned memory and CUDA's libraries."""
    return not isinstance(error, RuntimeError) or isinstance(error, OutOfMemoryError) or says_out_of_memory(error)
