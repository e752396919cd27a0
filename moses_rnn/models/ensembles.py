"""Combine networks that write the same words.

M members with distributions p_m over the same K words, combined word by word:

    geometric   log p = log softmax_y( (1/M) Σ_m log p_m(y) )     normalised; equals the mean of logits
    mean-log    log p = (1/M) Σ_m log p_m(y)                      as in Jean et al.'s code; not a distribution
    arithmetic  log p = log (1/M) Σ_m p_m(y)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from moses_rnn.errors import CheckpointError
from moses_rnn.models.annotated import make_pair_scorer
from moses_rnn.models.base import Scorer, Tally
from moses_rnn.models.model import Model
from moses_rnn.models.open import open_model
from moses_rnn.networks.batches import Ints, Lengths, Values, take_rows
from moses_rnn.networks.compute import HERE, Compute, choose_precision
from moses_rnn.networks.steps import Candidates, NodeBlock, Stepper
from moses_rnn.networks.tries import SteppedPairs, distinct_phrases
from moses_rnn.networks.vocabulary import END, END_ID, UNKNOWN, UNKNOWN_ID, Ids, Vocabulary
from moses_rnn.options import PretrainedOptions
from moses_rnn.table.table_blocks import Pairs

GEOMETRIC, MEAN_LOG, ARITHMETIC = COMBINATIONS = "geometric", "mean-log", "arithmetic"
Member = tuple[Stepper, Ints]  # with its id of each source word of the ensemble
EncodedTuple = tuple[Any, ...]  # of each member; one row per source


class EnsemblePrefixes(NamedTuple):
    """Prefixes of targets, for each member."""

    members: tuple[Any, ...]

    @property
    def sources(self) -> Tensor:
        """Row of each prefix's source in the encoded sources."""
        sources: Tensor = self.members[0].sources
        return sources


class EnsembleStepper(Stepper):
    """Steps members together, which share target words and device, and combines them by one of COMBINATIONS."""

    def __init__(self, members: Sequence[Member], combination: str) -> None:
        self._members, self._combination = members, combination
        self._steppers = [stepper for stepper, _ in members]
        self.device, self.vocabulary_size = self._steppers[0].device, self._steppers[0].vocabulary_size

    def encode(self, ids: Ids, lengths: Lengths) -> tuple[EncodedTuple, Ints]:
        """See `Stepper`; each member reads equal sources once."""
        (distinct, of_distinct), row_of = distinct_phrases(ids, lengths)
        encoded = []
        for stepper, source_ids in self._members:
            of_member, member_row_of = stepper.encode(source_ids[distinct], of_distinct)
            encoded.append(take_rows(of_member, torch.from_numpy(member_row_of).to(self.device)))
        return tuple(encoded), row_of

    def start(self, encoded: EncodedTuple) -> EnsemblePrefixes:
        """Return the empty prefix of each source."""
        return EnsemblePrefixes(tuple(stepper.start(own) for stepper, own in zip(self._steppers, encoded, strict=True)))

    def step(self, encoded: EncodedTuple, prefixes: EnsemblePrefixes, rows: Tensor, words: Tensor) -> EnsemblePrefixes:
        """See `Stepper`."""
        longer = (stepper.step(*own, rows, words) for stepper, *own in self._each(encoded, prefixes))
        return EnsemblePrefixes(tuple(longer))

    def next_log_probs(
        self, encoded: EncodedTuple, prefixes: EnsemblePrefixes, candidates: Candidates | None = None
    ) -> Tensor:
        """See `Stepper`; each member is normalised over the same words."""
        each = [stepper.next_log_probs(*own, candidates) for stepper, *own in self._each(encoded, prefixes)]
        combined = self._combined(each)
        return torch.log_softmax(combined, 1) if self._combination == GEOMETRIC else combined

    def word_log_probs(
        self,
        encoded: EncodedTuple,
        prefixes: EnsemblePrefixes,
        rows: Tensor,
        words: Tensor,
        blocks: Sequence[NodeBlock],
    ) -> Tensor:
        """See `Stepper`; only the geometric combination needs probabilities of all words."""
        if self._combination == GEOMETRIC:
            return super().word_log_probs(encoded, prefixes, rows, words, blocks)
        each = [stepper.word_log_probs(*own, rows, words, blocks) for stepper, *own in self._each(encoded, prefixes)]
        return self._combined([log_probs.double() for log_probs in each])

    def alignment(self, encoded: EncodedTuple, prefixes: EnsemblePrefixes) -> Tensor | None:
        """Return the alignment of each prefix's next word, averaged over the members that have one."""
        alphas = [stepper.alignment(*own) for stepper, *own in self._each(encoded, prefixes)]
        there = [alpha for alpha in alphas if alpha is not None]
        return torch.stack(there).mean(0) if there else None

    def _each(self, encoded: EncodedTuple, prefixes: EnsemblePrefixes) -> Iterator[tuple[Any, ...]]:
        return zip(self._steppers, encoded, prefixes.members, strict=True)

    def _combined(self, members: Sequence[Tensor]) -> Tensor:
        """Combine the members' log-probabilities; the geometric combination is not yet normalised."""
        log_probs = torch.stack(list(members))
        if self._combination == ARITHMETIC:
            return torch.logsumexp(log_probs, 0) - math.log(len(log_probs))
        return log_probs.mean(0)


class MeanScorer:
    """The mean of several scorers' log-probabilities, (1/M) Σ_m log p_m for each pair.

    It equals the sum of the combination "mean-log" over words, and needs only the members' own scores, so each member
    scores as it would alone.
    """

    def __init__(self, members: Sequence[Scorer], ensemble: Ensemble) -> None:
        self.name, self.meaning, self.unbounded = ensemble.name, ensemble.meaning, ensemble.unbounded
        self._members = members

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Return one natural log score per pair; `unknown` is that of the member that knows the fewest pairs."""
        tallies = [Tally() for _ in self._members]
        scores = [member.log_probs(pairs, own) for member, own in zip(self._members, tallies, strict=True)]
        if tally is not None:
            tally.unknown += max(own.unknown for own in tallies)
            tally.oom_splits += sum(own.oom_splits for own in tallies)
        mean: Values = np.mean(scores, axis=0)
        return mean


class Ensemble:
    """Models of one direction that write the same words, combined by one of COMBINATIONS.

    The words they read may differ: the ensemble reads those that any of them knows.
    """

    def __init__(self, models: Sequence[Model], combination: str = GEOMETRIC) -> None:
        first = models[0]
        self.models, self.combination = models, combination
        self.inverse, self.right_to_left, self.rare = first.inverse, first.right_to_left, first.rare
        self.learned_sentences, self.unbounded = first.learned_sentences, first.unbounded
        self.target_vocabulary = first.target_vocabulary
        self.source_vocabulary = first.source_vocabulary  # of subwords, the members have the same
        if not first.of_subwords:
            read = dict.fromkeys(word for model in models for word in model.source_vocabulary.words)
            self.source_vocabulary = Vocabulary([UNKNOWN, END, *(word for word in read if word not in (UNKNOWN, END))])
        self.name = "ENSInverse" if self.inverse else "ENS"
        self.title = f"{combination} ensemble of {len(models)} ({', '.join(model.title for model in models)})"
        self.meaning = first.describe_score(self.title)
        if combination == MEAN_LOG:
            meanings = dict.fromkeys(model.meaning for model in models)
            self.meaning = f"mean of {len(models)} models' {' and '.join(meanings)}"

    def choose_compute(
        self, device: str = "cpu", precision: str | None = None, *, floors_long: bool = False
    ) -> Compute:
        """Choose how the members compute together, always in torch; see `Model`."""
        width = max(model.config.width for model in self.models)
        return Compute(device, choose_precision(precision or "fp32", device, width), floors_long=floors_long)

    def make_stepper(self, compute: Compute, *, any_order: bool = False) -> EnsembleStepper:
        """Make a stepper for all members together; see `Model`."""
        words = self.source_vocabulary.words
        members: list[Member] = []
        for model in self.models:
            id_of = model.source_vocabulary.id_of
            ids = np.array([id_of.get(word, UNKNOWN_ID) for word in words], dtype=np.int64)
            ids[END_ID] = END_ID  # a vocabulary does not map the spelling of the end symbol
            members.append((model.make_stepper(compute, any_order=any_order), ids))
        return EnsembleStepper(members, self.combination)

    def make_scorer(self, compute: Compute = HERE) -> Scorer:
        """Make the scorer of the ensemble."""
        if self.combination == MEAN_LOG:
            return MeanScorer([model.make_scorer(compute) for model in self.models], self)
        return make_pair_scorer(self, SteppedPairs(self.make_stepper(compute, any_order=True)))


AnyModel = Model | Ensemble  # of pairs


def open_models(
    folders: Sequence[Path], combination: str = GEOMETRIC, pretrained: PretrainedOptions | None = None
) -> AnyModel:
    """Open the model of one folder, or the ensemble of several; raises as `open_model` and `make_ensemble` do."""
    models = [open_model(folder, pretrained=pretrained) for folder in folders]
    _check_alike(models, "form of phrases", lambda model: str(model.form))
    return models[0] if len(models) == 1 else make_ensemble(models, combination)


def make_ensemble(models: Sequence[Model], combination: str = GEOMETRIC) -> Ensemble:
    """Make an ensemble; raise CheckpointError unless the models go together.

    They must agree in direction, unit and target words. Except for "mean-log", they must also write word by word, and
    in the same order.
    """
    _check_alike(models, "direction", lambda model: model.direction)
    _check_alike(models, "unit", lambda model: model.unit)
    _check_alike(models, "words in target.vocab", lambda model: model.target_vocabulary.sha256())
    _check_alike(models, "score", lambda model: model.name if model.unbounded else "log p")  # else a mean of nothing
    _check_alike(models, "rare words", _rare_words)
    if combination != MEAN_LOG:
        _check_steps(models)
    return Ensemble(models, combination)


def _check_steps(models: Sequence[Model]) -> None:
    for model in models:
        if model.architecture.stepper is None:
            raise CheckpointError(
                f"{model.folder}: expected a network that writes word by word, found: {model.network_title}",
                advice="The combination mean-log also takes such networks.",
            )
        if model.right_to_left != models[0].right_to_left:
            raise CheckpointError(
                f"{model.folder}: expected a network that writes in the order of {models[0].folder}, found the other",
                advice="The combination mean-log also takes both orders, but only to score.",
            )


def _check_alike(models: Sequence[Model], what: str, of: Callable[[Model], str]) -> None:
    for model in models[1:]:
        expected, found = of(models[0]), of(model)
        if found != expected:
            raise CheckpointError(
                f"{model.folder}: expected the {what} of {models[0].folder} in an ensemble, {expected}, found {found}",
                advice="Train the members on the same texts with the same options, except for --seed.",
            )


def _rare_words(model: Model) -> str:
    """Describe how rare words are annotated, which must be equal in all members."""
    if model.rare is None:
        return "<unk>"
    return f"{model.rare.kind}, window {model.rare.window}, source.vocab {model.source_vocabulary.sha256()}"
