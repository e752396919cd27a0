"""Scorers of phrase pairs: a network's score, and the paper's word penalty."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
import torch
from torch import OutOfMemoryError

from moses_rnn.errors import MosesRnnError, ScoreError, shown
from moses_rnn.models.base import LARGEST_SCORE, ROUNDING, Scorer, Tally
from moses_rnn.models.rare_words import RareWords
from moses_rnn.networks.batches import Ints, Lengths, Values, reverse_each
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.tries import PairNetwork
from moses_rnn.networks.vocabulary import UNKNOWN_ID, Ids, Vocabulary
from moses_rnn.table.table_blocks import Pairs, PhraseIds, Phrases

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
        self._read = PhraseIds(model.source_vocabulary.id_of)
        self._written = PhraseIds(model.target_vocabulary.id_of)

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Return one natural log score per pair. Raises as `Scorer` does."""
        read, written = pairs.sides(inverse=self._inverse)
        tally = tally or Tally()
        parts = [
            self._within_memory(read[first : first + PAIRS], written[first : first + PAIRS], tally)
            for first in range(0, len(read), PAIRS)
        ]
        scores = np.concatenate([np.zeros(0), *parts])
        check_scores(self, scores, pairs)
        return scores

    def _within_memory(self, read: Phrases, written: Phrases, tally: Tally) -> Values:
        """Score pairs; if the device's memory is too small, score their halves one after the other."""
        try:
            return self._score(read, written, tally)
        except (OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            if len(read) == 1:
                too_small = f"the memory of {self._network.device} is too small for a single phrase"
                raise MosesRnnError(f"{too_small}: {error}") from error
        tally.oom_splits += 1
        if self._network.device.type == "cuda":
            torch.cuda.empty_cache()
        half = len(read) // 2
        halves = [self._within_memory(read[part], written[part], tally) for part in (slice(half), slice(half, None))]
        return np.concatenate(halves)

    def _score(self, read: Phrases, written: Phrases, tally: Tally) -> Values:
        sources, targets = self._read(read), self._written(written)
        written_ids = (reverse_each(*targets), targets[1]) if self._right_to_left else targets
        values = self._network.log_probs(sources, written_ids)
        tally.unknown += int(np.count_nonzero(unknown_words(*sources) + unknown_words(*targets)))
        return values


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
        self._ids = PhraseIds(target_vocabulary.id_of)

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
    """Whether memory ran out; on a CPU, torch raises a plain RuntimeError."""
    return not isinstance(error, RuntimeError) or isinstance(error, OutOfMemoryError) or "allocate memory" in str(error)
