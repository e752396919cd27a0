"""Learning to rank the right target of a source above the same target with one word replaced."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.errors import InputError
from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.learning_curves import RANKED_WRONG
from moses_rnn.networks.network import Drop, keep
from moses_rnn.networks.ranker import Ranker, hinge
from moses_rnn.networks.slots import Slotted, in_slots
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Corpus, Hashes, Positions, mix
from moses_rnn.training.pairs import epoch_batches
from moses_rnn.training.ranks import Workers
from moses_rnn.training.task import Cost, Task

LEARNING, HELD_OUT = 0, 1  # random streams of corruptions
CORRUPTIONS = 10  # of each held-out pair
EVALUATION_PAIRS = 2048
FIRST_WORD = END_ID + 1  # of the shortlist


class RankedPairs(Task):
    """The task of a ranker: each pair with another corruption in each step, the held-out ones with ten that stay.

    No pair is longer than the network has slots.

    Raises:
        InputError: there is no other word to replace a word by.
    """

    measure = RANKED_WRONG

    def __init__(self, model: Ranker, corpus: Corpus, config: TrainingConfig) -> None:
        words = len(corpus.target_vocabulary) - FIRST_WORD
        if words < 2:
            raise InputError(f"expected two target words at least, of which one can replace the other, found {words}")
        super().__init__(model, config, {"corpus": corpus.digest}, len(corpus.training))
        self.corpus = corpus

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `epoch_batches`."""
        return epoch_batches(self.corpus, self.config, epoch, first)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """The hinge loss; a pair's corruption follows from it, the step and the seed, whoever computes it."""
        sources, targets, lengths = self._slotted(rows)
        wrong = self._corrupted(targets, lengths, hashes_of(rows, self.config.seed, step, LEARNING))
        right, wrong_scores = (self._scores(sources, each, self.drop(step, part)) for each in (targets, wrong))
        loss = hinge(right, wrong_scores).sum()
        return Cost(loss, loss.item(), len(rows))

    def held_out(self, workers: Workers) -> dict[str, float]:
        """Of the corruptions of held-out pairs the share that scores at least as much as the pair, and the loss."""
        rows = self.corpus.held_out
        blocks = (rows[first : first + EVALUATION_PAIRS] for first in range(0, len(rows), EVALUATION_PAIRS))
        costs = workers.each(self._exact_cost, blocks)
        wrong, loss = (sum(column) / (CORRUPTIONS * len(rows)) for column in zip(*costs, strict=True))
        return {RANKED_WRONG.key: wrong, "ranked_right": 1 - wrong, RANKED_WRONG.beside: loss}

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, float]:
        """How many corruptions do not score less, or NaN if that cannot be told; and their summed loss."""
        sources, targets, lengths = self._slotted(rows)
        right = self._scores(sources, targets)
        errors, loss = 0.0, 0.0
        for number in range(CORRUPTIONS):
            hashes = hashes_of(rows, self.config.seed, number, HELD_OUT)
            wrong = self._scores(sources, self._corrupted(targets, lengths, hashes))
            loss += hinge(right, wrong).double().sum().item()
            errors += (right <= wrong).sum().item()
        return (errors if np.isfinite(loss) else float("nan")), loss

    def _slotted(self, rows: Positions) -> tuple[Slotted, Slotted, Lengths]:
        """Sources and targets in their slots, and the words of each target."""
        slots, (source, target) = self.model.config.slots, (self.corpus.source, self.corpus.target)
        flat, lengths = target.take(rows)
        sources = in_slots(*source.take(rows), slots, len(self.corpus.source_vocabulary))
        return sources, in_slots(flat, lengths, slots, len(self.corpus.target_vocabulary)), lengths

    def _corrupted(self, targets: Slotted, lengths: Lengths, hashes: Hashes) -> Slotted:
        last_only = self.model.config.corrupt == "last"
        return corrupted(targets, lengths, hashes, len(self.corpus.target_vocabulary), last_only=last_only)

    def _scores(self, sources: Slotted, targets: Slotted, drop: Drop = keep) -> Tensor:
        x, y = (torch.from_numpy(side).to(self.device) for side in (sources, targets))
        network: Ranker = self.model
        return network.scores(x, y, self.product_dtype, drop)


def hashes_of(rows: Positions, *seeds: int) -> Hashes:
    """Random numbers of 64 bits, one for each pair of a corpus."""
    key = np.random.SeedSequence(seeds).generate_state(1, np.uint64)
    return mix(mix(rows.astype(np.uint64)) + key)


def corrupted(targets: Slotted, lengths: Lengths, hashes: Hashes, words: int, *, last_only: bool) -> Slotted:
    """Targets with one word replaced by another of the shortlist, each as likely; never by itself.

    Args:
        targets: in their slots; pairs × S.
        lengths: words of each, at least one.
        hashes: random numbers of 64 bits, which decide; pairs.
        words: size of the vocabulary.
        last_only: whether the last word is replaced, not any of them.
    """
    every = np.arange(len(targets))
    places = lengths - 1 if last_only else _below(lengths, hashes)
    replaced = targets[every, places]
    in_shortlist = replaced >= FIRST_WORD
    other = FIRST_WORD + _below(words - FIRST_WORD - in_shortlist, mix(hashes))
    result = targets.copy()
    result[every, places] = other + (in_shortlist & (other >= replaced))
    return result


def _below(bounds: npt.NDArray[np.int64], hashes: Hashes) -> npt.NDArray[np.int64]:
    """Numbers from 0 to below the bounds."""
    return (hashes % bounds.astype(np.uint64)).astype(np.int64)
