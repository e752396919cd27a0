"""Several language models of one vocabulary as a single one: log p of a word is log Σ_m λ_m p_m, or the mean log p_m.

Unlike the ensembles of networks that write, of which all words' probabilities are at hand, only those of the words that
came are combined here: what would have to be normalised afterwards is not offered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.networks.ensembles import ARITHMETIC, MEAN_LOG
from moses_rnn.scorers.base import Scores, Tally
from moses_rnn.scorers.kenlm import KenlmScorer
from moses_rnn.scorers.language_models import NetworkLanguageModel, Values, sums
from moses_rnn.scorers.open import Model
from moses_rnn.table.table_blocks import Pairs, Phrases

COMBINATIONS = ARITHMETIC, MEAN_LOG
Member = NetworkLanguageModel | KenlmScorer
__all__ = ["ARITHMETIC", "COMBINATIONS", "MEAN_LOG", "Mixture", "check_mixture", "combined"]


class Mixture:
    """Language models together.

    Args:
        members: at least one, networks of the same vocabulary or n-gram models.
        combination: one of COMBINATIONS.
        shares: λ_m of the arithmetic combination, which sum to 1; None: equal ones.

    Raises:
        ValueError: the shares do not fit.
    """

    name = "ENS"
    num_scores = 1
    unbounded = False

    def __init__(
        self, members: Sequence[Member], combination: str = ARITHMETIC, shares: Sequence[float] | None = None
    ) -> None:
        if shares and combination != ARITHMETIC:
            raise ValueError(f"expected no shares in a mixture by {combination}, found {list(shares)}")
        if shares and (len(shares) != len(members) or min(shares) <= 0 or not math.isclose(sum(shares), 1)):
            raise ValueError(f"expected {len(members)} positive shares that sum to 1, found {list(shares)}")
        self.members = members
        self._shares = shares
        self._combination = combination
        meanings = "; ".join(dict.fromkeys(member.meaning for member in members))
        weighted = f" by {', '.join(map('{:g}'.format, shares))}" if shares else ""
        self.meaning = f"{combination} mixture, word by word{weighted}, of {len(members)} language models: {meanings}"

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        log_probs = np.stack([member.word_log_probs(sentences) for member in self.members])
        return combined(log_probs, self._combination, self._shares)

    def log_probs(self, pairs: Pairs, _tally: Tally | None = None) -> Scores:
        """Natural logarithms; targets × 1."""
        return sums(self.word_log_probs(pairs.targets), pairs.targets)


def combined(log_probs: Values, combination: str = ARITHMETIC, shares: Sequence[float] | None = None) -> Values:
    """What several models give together to words; members × n to n."""
    if combination == ARITHMETIC:
        weights = np.log(shares or [1 / len(log_probs)] * len(log_probs))
        together: Values = np.logaddexp.reduce(log_probs + weights[:, None])
    else:
        together = log_probs.mean(0)
    return together


def check_mixture(models: Sequence[Model], combination: str) -> None:
    """Refuse networks that cannot be one, alone or beside n-gram models.

    Raises:
        CheckpointError: one is no language model, or has other words than the first.
        InputError: there is no such combination.
    """
    for model in models:
        first = models[0]
        if model.architecture.reads_sources:
            raise CheckpointError(
                f"{model.folder}: expected a language model beside {first.folder}, found one of pairs"
            )
        _check_words(first.folder, model, first.target_vocabulary.sha256())
    if combination not in COMBINATIONS:
        expected = f"expected language models to be combined by {' or '.join(COMBINATIONS)}"
        raise InputError(f"{expected}, found {combination}")


def _check_words(first: Path, model: Model, expected: str) -> None:
    found = model.target_vocabulary.sha256()
    if found != expected:
        raise CheckpointError(
            f"{model.folder}: expected the words in target.vocab of {first} in an ensemble, {expected}, found {found}",
            advice="Train the members on the same text with the same shortlist, and different --seed.",
        )
