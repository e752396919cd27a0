"""Several language models of one vocabulary as a single one: log p of a word is log Σ_m p_m / M, or the mean log p_m.

Unlike the ensembles of networks that write, of which all words' probabilities are at hand, only those of the words that
came are combined here: what would have to be normalised afterwards is not offered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from moses_rnn.errors import CheckpointError
from moses_rnn.inference.ensembles import ARITHMETIC, MEAN_LOG
from moses_rnn.producers.base import Phrases, Scores, Tally
from moses_rnn.producers.dynamic import DynamicRnnlm
from moses_rnn.producers.language_models import Marks, NetworkLanguageModel, Values, sums
from moses_rnn.producers.open import OpenModel

COMBINATIONS = ARITHMETIC, MEAN_LOG
__all__ = ["ARITHMETIC", "COMBINATIONS", "MEAN_LOG", "Mixture", "check_mixture", "combined"]


class Mixture:
    """Language models together.

    Args:
        members: at least one, of the same vocabulary.
        combination: one of COMBINATIONS.
    """

    name = "ENS"
    num_scores = 1

    def __init__(self, members: Sequence[NetworkLanguageModel], combination: str = ARITHMETIC) -> None:
        self.members = members
        self._combination = combination
        meanings = "; ".join(dict.fromkeys(member.meaning for member in members))
        self.meaning = f"{combination} mixture, word by word, of {len(members)} language models: {meanings}"

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        log_probs = np.stack([member.word_log_probs(sentences) for member in self.members])
        return combined(log_probs, self._combination)

    def log_probs(self, _sources: Phrases, targets: Phrases, _tally: Tally | None = None) -> Scores:
        """Natural logarithms; targets × 1."""
        return sums(self.word_log_probs(targets), targets)

    def unknown(self, sentences: Phrases) -> Marks:
        """Which words are outside the shortlist; as `word_log_probs`."""
        return self.members[0].unknown(sentences)

    @property
    def learns(self) -> bool:
        """Whether a member goes on learning."""
        return any(isinstance(member, DynamicRnnlm) for member in self.members)

    def learn(self, sentence: bytes) -> None:
        """Let those members that can learn do so, each for itself."""
        for member in self.members:
            if isinstance(member, DynamicRnnlm):
                member.learn(sentence)


def combined(log_probs: Values, combination: str = ARITHMETIC) -> Values:
    """What several models give together to words; members × n to n."""
    if combination == ARITHMETIC:
        together: Values = np.logaddexp.reduce(log_probs) - math.log(len(log_probs))
    else:
        together = log_probs.mean(0)
    return together


def check_mixture(models: Sequence[OpenModel], combination: str) -> None:
    """Refuse models that cannot be one.

    Raises:
        CheckpointError: one is no language model, or has other words than the first; there is no such combination.
    """
    first = models[0]
    for model in models:
        if model.reads_sources:
            raise CheckpointError(
                f"{model.folder}: expected a language model beside {first.folder}, found one of pairs"
            )
        _check_words(first.folder, model, first.target_vocabulary.sha256())
    if combination not in COMBINATIONS:
        raise CheckpointError(
            f"{first.folder}: expected language models to be combined by {' or '.join(COMBINATIONS)}, "
            f"found {combination}"
        )


def _check_words(first: Path, model: OpenModel, expected: str) -> None:
    found = model.target_vocabulary.sha256()
    if found != expected:
        raise CheckpointError(
            f"{model.folder}: expected the words in target.vocab of {first} in an ensemble, {expected}, found {found}",
            advice="Train the members on the same text with the same shortlist, and different --seed.",
        )
