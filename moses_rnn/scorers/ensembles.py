"""Ensembles of models: from several folders to a network of their own, and to the scorer of its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moses_rnn.errors import CheckpointError
from moses_rnn.networks.ensembles import COMBINATIONS, GEOMETRIC, MEAN_LOG, EnsembleStepper, Map, Member
from moses_rnn.networks.folders import read_record
from moses_rnn.networks.hardware import HERE, Compute
from moses_rnn.networks.trie_scoring import SteppedPairs
from moses_rnn.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_rnn.scorers.annotated import AnnotatedScorer, annotated_meaning
from moses_rnn.scorers.base import Description, Scorer, Scores, Tally
from moses_rnn.scorers.open import Model, open_model
from moses_rnn.scorers.phrases import PhraseScorer, meaning_of
from moses_rnn.scorers.rare_words import RareWords
from moses_rnn.table.table_blocks import Pairs

__all__ = [
    "COMBINATIONS",
    "GEOMETRIC",
    "MEAN_LOG",
    "Ensemble",
    "MeanScorer",
    "Writer",
    "make_ensemble",
    "open_ensemble",
    "open_writer",
]


class MeanScorer:
    """The mean of several scorers' log-probabilities: of a pair, (1/M) Σ_m log p_m.

    It is what the combination "mean-log" gives word by word, summed, and needs nothing but the members' own scores, so
    that each is computed as it would be alone.

    Args:
        members: at least one, of a score each.
        name: of the mean.
        meaning: of the mean.
        unbounded: whether the members' scores are no log-probabilities.
    """

    num_scores = 1

    def __init__(self, members: Sequence[Scorer], name: str, meaning: str, unbounded: bool = False) -> None:
        self.name, self.meaning, self.unbounded = name, meaning, unbounded
        self._members = members

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Scores:
        """Natural logarithms; pairs × 1. As unknown counts what is so to the member that knows the fewest pairs."""
        tallies = [Tally() for _ in self._members]
        scores = [member.log_probs(pairs, own) for member, own in zip(self._members, tallies, strict=True)]
        if tally is not None:
            tally.unknown += max(own.unknown for own in tallies)
            tally.halvings += sum(own.halvings for own in tallies)
        mean: Scores = np.mean(scores, axis=0)
        return mean


@dataclass(frozen=True)
class Ensemble:
    """Models of one direction that write the same words; what they read may differ.

    Its words of the source are those that any member knows.
    """

    models: Sequence[Model]
    combination: str

    @property
    def inverse(self) -> bool:
        """Whether it reads target texts and writes source texts."""
        return self.models[0].inverse

    @property
    def rare(self) -> RareWords | None:
        """How its members learned rare words; None: they are <unk>."""
        return self.models[0].rare

    @property
    def source_vocabulary(self) -> Vocabulary:
        """Words that some member reads."""
        words = dict.fromkeys(word for model in self.models for word in model.source_vocabulary.words)
        return Vocabulary([UNKNOWN, END, *(word for word in words if word not in (UNKNOWN, END))])

    @property
    def target_vocabulary(self) -> Vocabulary:
        """Words that all members write."""
        return self.models[0].target_vocabulary

    @property
    def unbounded(self) -> bool:
        """Whether its members' scores are no log-probabilities."""
        return self.models[0].unbounded

    @property
    def name(self) -> str:
        """Of its score."""
        return "ENS" + "Inverse" * self.inverse

    @property
    def title(self) -> str:
        """For the meaning of its score."""
        return f"{self.combination} ensemble of {len(self.models)} ({', '.join(model.title for model in self.models)})"

    @property
    def learned_sentences(self) -> bool:
        """Whether its members learned from sentences, not from phrases."""
        return self.models[0].learned_sentences

    def make_stepper(self, compute: Compute) -> EnsembleStepper:
        """The members, arranged to step together.

        Raises:
            CheckpointError: one of them does not write word by word.
        """
        vocabulary = self.source_vocabulary
        members = [Member(model.make_stepper(compute), _ids_of(vocabulary, model)) for model in self.models]
        return EnsembleStepper(members, self.combination)

    def describe(self) -> Description:
        """Its score; a network of pairs is not arranged for that."""
        if self.combination == MEAN_LOG:
            meanings = dict.fromkeys(model.describe().meaning for model in self.models)
            mean = f"mean of {len(self.models)} models' {' and '.join(meanings)}"
            return Description(self.name, mean, self.unbounded)
        meaning = meaning_of(self.title, inverse=self.inverse)
        return Description(self.name, annotated_meaning(meaning, self.rare) if self.rare else meaning)

    def make_scorer(self, compute: Compute = HERE) -> Scorer:
        """The scorer of its score."""
        if self.combination == MEAN_LOG:
            return MeanScorer([model.make_scorer(compute) for model in self.models], *self.describe())
        meaning = meaning_of(self.title, inverse=self.inverse)
        scorer = PhraseScorer(self, SteppedPairs(self.make_stepper(compute)), self.name, meaning)
        return AnnotatedScorer(scorer, self, self.rare) if self.rare else scorer


Writer = Model | Ensemble  # what writes translations, and scores them


def _ids_of(vocabulary: Vocabulary, model: Model) -> Map:
    """A model's ids of words."""
    known = model.source_vocabulary
    ids = known.ids(vocabulary.words)
    ids[1] = 1  # a vocabulary knows no word that is spelled as the end symbol
    return np.array(ids, dtype=np.int64)


def open_ensemble(folders: Sequence[Path], combination: str = GEOMETRIC) -> Ensemble:
    """Read and check the folders of several models.

    Raises:
        CheckpointError: one cannot be read, or differs from the first one in its direction, its unit or the words that
            it writes.
    """
    return make_ensemble([open_model(folder) for folder in folders], combination)


def make_ensemble(models: Sequence[Model], combination: str = GEOMETRIC) -> Ensemble:
    """The same of models that are open; raises as `open_ensemble`."""
    first = models[0]
    for model in models[1:]:
        for what, of_first, of_other in (
            ("direction", first.direction, model.direction),
            ("unit", first.unit, model.unit),
            ("words in target.vocab", *(each.target_vocabulary.sha256() for each in (first, model))),
            ("score", *(_score(each) for each in (first, model))),
            ("rare words", *(_rare_words(each) for each in (first, model))),
        ):
            if of_first != of_other:
                raise CheckpointError(
                    f"{model.folder}: expected the {what} of {first.folder} in an ensemble, "
                    f"{of_first}, found {of_other}",
                    advice="Train the members on the same texts with the same shortlists, and different --seed.",
                )
    return Ensemble(models, combination)


def _score(model: Model) -> str:
    """Of which kind it is: means of different kinds would be of nothing."""
    return model.name if model.unbounded else "log p"


def _rare_words(model: Model) -> str:
    """How they are annotated, and by which words: what decides what members read."""
    if model.rare is None:
        return "<unk>"
    return f"{model.rare.kind}, window {model.rare.window}, source.vocab {model.source_vocabulary.sha256()}"


def open_writer(folders: Sequence[Path], combination: str = GEOMETRIC) -> Writer:
    """A model of a single folder, or the ensemble of several; raises as `open_ensemble`."""
    return open_model(folders[0]) if len(folders) == 1 else open_ensemble(folders, combination)


def recorded_hashes(folder: Path) -> object:
    """What a model's config.json says of its other files; raises as `open_model`, which reads them too."""
    return read_record(folder).get("files")
