"""Several models as one: networks that write the same words, and language models of one vocabulary.

M members with distributions p_m over the same K words, combined word by word:

    geometric   log p = log softmax_y( (1/M) Σ_m log p_m(y) )     normalised; equals the mean of logits
    mean-log    log p = (1/M) Σ_m log p_m(y)                      of Jean et al.'s released code; no distribution
    arithmetic  log p = log Σ_m λ_m p_m(y)                        λ_m = 1/M, or given
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.hardware import HERE, Compute, choose_precision
from moses_rnn.networks.steps import Columns, NodeBlock, Stepper
from moses_rnn.networks.trie_scoring import SteppedPairs
from moses_rnn.networks.tries import build_trie, take_phrases
from moses_rnn.networks.vocabulary import END, UNKNOWN, Ids, Vocabulary
from moses_rnn.scorers.annotated import AnnotatedScorer, annotated_meaning
from moses_rnn.scorers.base import Description, Scorer, Scores, Tally
from moses_rnn.scorers.kenlm import KenlmScorer
from moses_rnn.scorers.language_models import NetworkLanguageModel, Values, sums
from moses_rnn.scorers.open import Model, meaning_of, open_model, read_record
from moses_rnn.scorers.phrases import PhraseScorer
from moses_rnn.scorers.rare_words import RareWords
from moses_rnn.table.table_blocks import Pairs, Phrases

GEOMETRIC, MEAN_LOG, ARITHMETIC = COMBINATIONS = "geometric", "mean-log", "arithmetic"
Map = npt.NDArray[np.int64]  # of ids to a member's ids


class Member(NamedTuple):
    """A network of an ensemble."""

    stepper: Stepper[Any, Any]
    source_ids: Map  # what the ensemble's ids of source words are to it


class EnsembleTerms(NamedTuple):
    """What depends on the sources alone; a row each, for every member."""

    members: tuple[Any, ...]

    def take(self, rows: Tensor) -> EnsembleTerms:
        """The same for chosen rows, repeated at will."""
        return EnsembleTerms(tuple(terms.take(rows) for terms in self.members))


class EnsemblePrefixes(NamedTuple):
    """Beginnings of targets, as every member has them."""

    sources: Tensor  # row of each one's source among the terms
    members: tuple[Any, ...]

    def take(self, rows: slice) -> EnsemblePrefixes:
        """Some of them."""
        return EnsemblePrefixes(self.sources[rows], tuple(prefixes.take(rows) for prefixes in self.members))


class EnsembleStepper(Stepper[EnsembleTerms, EnsemblePrefixes]):
    """Members that step together.

    Args:
        members: at least one, of the same target words, on the same device.
        combination: one of COMBINATIONS.
        shares: λ_m of the arithmetic combination, which sum to 1; None: equal ones.

    Raises:
        ValueError: there is no such combination, or the shares do not fit.
    """

    def __init__(self, members: Sequence[Member], combination: str, shares: Sequence[float] | None = None) -> None:
        if combination not in COMBINATIONS:
            raise ValueError(f"expected a combination of {', '.join(COMBINATIONS)}, found {combination!r}")
        shares = [1 / len(members)] * len(members) if shares is None else shares
        if len(shares) != len(members) or min(shares) <= 0 or not math.isclose(sum(shares), 1, rel_tol=1e-6):
            raise ValueError(f"expected {len(members)} positive shares that sum to 1, found {shares}")
        self._members = members
        self._steppers = [member.stepper for member in members]
        self._combination = combination
        self.device = self._steppers[0].device
        self.vocabulary_size = self._steppers[0].vocabulary_size
        self._log_shares = torch.tensor(shares, dtype=torch.float64, device=self.device).log()

    def read(self, ids: Ids, lengths: Lengths) -> tuple[EnsembleTerms, npt.NDArray[np.int64]]:
        """See `Stepper`; equal sources are read once by each member."""
        leaf_of = build_trie(ids, lengths).leaf_of
        first = np.unique(leaf_of, return_index=True)[1]  # of each distinct source
        distinct, of_distinct = take_phrases(ids, lengths, first)
        terms = []
        for stepper, source_ids in self._members:
            of_member, row_of = stepper.read(source_ids[distinct], of_distinct)
            terms.append(of_member.take(torch.from_numpy(row_of).to(self.device)))
        return EnsembleTerms(tuple(terms)), leaf_of

    def start(self, terms: EnsembleTerms) -> EnsemblePrefixes:
        """The empty prefix of each source."""
        prefixes = [stepper.start(of_member) for stepper, of_member in self._with(terms)]
        return EnsemblePrefixes(prefixes[0].sources, tuple(prefixes))

    def step(self, terms: EnsembleTerms, prefixes: EnsemblePrefixes, rows: Tensor, words: Tensor) -> EnsemblePrefixes:
        """Chosen rows of the prefixes, each with one word more; `rows` and `words` are as many."""
        longer = [
            stepper.step(of_member, before, rows, words)
            for (stepper, of_member), before in zip(self._with(terms), prefixes.members, strict=True)
        ]
        return EnsemblePrefixes(longer[0].sources, tuple(longer))

    def next_log_probs(
        self, terms: EnsembleTerms, prefixes: EnsemblePrefixes, columns: Columns | None = None
    ) -> Tensor:
        """See `Stepper`; each member is normalised over the same words."""
        log_probs = [
            stepper.next_log_probs(of_member, of_prefixes, columns)
            for (stepper, of_member), of_prefixes in zip(self._with(terms), prefixes.members, strict=True)
        ]
        combined = self._combined(torch.stack(log_probs))
        return torch.log_softmax(combined, 1) if self._combination == GEOMETRIC else combined

    def word_log_probs(
        self,
        terms: EnsembleTerms,
        prefixes: EnsemblePrefixes,
        rows: Tensor,
        words: Tensor,
        blocks: Sequence[NodeBlock],
    ) -> Tensor:
        """See `Stepper`; only the geometric combination needs the probabilities of all words."""
        if self._combination == GEOMETRIC:
            return super().word_log_probs(terms, prefixes, rows, words, blocks)
        log_probs = [
            stepper.word_log_probs(of_member, of_prefixes, rows, words, blocks).double()
            for (stepper, of_member), of_prefixes in zip(self._with(terms), prefixes.members, strict=True)
        ]
        return self._combined(torch.stack(log_probs))

    def alignment(self, terms: EnsembleTerms, prefixes: EnsemblePrefixes) -> Tensor | None:
        """The mean alignment of the members that have one, of the word that follows each prefix."""
        alphas = [
            stepper.alignment(of_member, of_prefixes)
            for (stepper, of_member), of_prefixes in zip(self._with(terms), prefixes.members, strict=True)
        ]
        there = [alpha for alpha in alphas if alpha is not None]
        return torch.stack(there).mean(0) if there else None

    def _combined(self, log_probs: Tensor) -> Tensor:
        """Of members × anything; the geometric one not yet normalised."""
        if self._combination == ARITHMETIC:
            shape = (-1, *[1] * (log_probs.dim() - 1))
            return torch.logsumexp(log_probs + self._log_shares.view(shape), 0)
        return log_probs.mean(0)

    def _with(self, terms: EnsembleTerms) -> list[tuple[Stepper[Any, Any], Any]]:
        return list(zip(self._steppers, terms.members, strict=True))


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

    def choose_compute(
        self, device: str = "cpu", precision: str | None = None, *, floors_long: bool = False
    ) -> Compute:
        """How its members compute together, which is by torch; see `Model`."""
        width = max(model.config.width for model in self.models)
        return Compute(device, choose_precision(precision or "fp32", device, width), floors_long=floors_long)

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


# -- language models: only the probabilities of the words that came are combined, so nothing is normalised afterwards

MIXTURES = ARITHMETIC, MEAN_LOG  # combinations of them


class Mixture:
    """Language models together.

    Args:
        members: at least one, networks of the same vocabulary or n-gram models.
        combination: one of MIXTURES.
        shares: λ_m of the arithmetic combination, which sum to 1; None: equal ones.

    Raises:
        ValueError: the shares do not fit.
    """

    name = "ENS"
    num_scores = 1
    unbounded = False

    def __init__(
        self,
        members: Sequence[NetworkLanguageModel | KenlmScorer],
        combination: str = ARITHMETIC,
        shares: Sequence[float] | None = None,
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
    if combination not in MIXTURES:
        expected = f"expected language models to be combined by {' or '.join(MIXTURES)}"
        raise InputError(f"{expected}, found {combination}")


def _check_words(first: Path, model: Model, expected: str) -> None:
    found = model.target_vocabulary.sha256()
    if found != expected:
        raise CheckpointError(
            f"{model.folder}: expected the words in target.vocab of {first} in an ensemble, {expected}, found {found}",
            advice="Train the members on the same text with the same shortlist, and different --seed.",
        )
